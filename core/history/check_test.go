package history

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core/message"
)

// TestCheckFinds shows each rule of Check one list of messages that breaks it and no other.
func TestCheckFinds(t *testing.T) {
	pairs := Policy{RepairPairs: true}
	unsigned := think("t")
	unsigned.Signature = ""
	for _, row := range []struct {
		name   string
		policy Policy
		in     []message.Message
		want   []string
	}{
		{"nothing", pairs, []message.Message{user("x"), calls(call("a"), call("b")), tool(result("b")), tool(result("a"))}, nil},
		{"no policy", Policy{}, []message.Message{says(""), tool(result("a"))}, nil},
		{"no result", pairs, []message.Message{calls(call("a")), user("x")}, []string{RuleCallUnanswered}},
		{"no result at the end", pairs, []message.Message{calls(call("a"), call("a")), tool(result("a"))}, []string{RuleCallUnanswered}},
		{"late result", pairs, []message.Message{calls(call("a")), user("x"), tool(result("a"))}, []string{RuleCallUnanswered, RuleResultUnasked}},
		{"no call", pairs, []message.Message{user("x"), tool(result("a"))}, []string{RuleResultUnasked}},
		{"result first", pairs, []message.Message{tool(result("a")), calls(call("a")), tool(result("a"))}, []string{RuleResultEarly}},
		{"two results", pairs, []message.Message{calls(call("a")), tool(result("a"), result("a"))}, []string{RuleResultTwice}},
		{"tool message of text", pairs, []message.Message{tool(text("x"))}, []string{RuleMisplaced}},
		{"a user calls", pairs, []message.Message{msg(message.User, text("x"), call("a"))}, []string{RuleMisplaced}},
		{"an assistant has results", pairs, []message.Message{calls(text("x"), result("a"))}, []string{RuleMisplaced}},
		{"assistants", Policy{ValidateGemini: true}, []message.Message{says("x"), says("y")}, []string{RuleRoleOrder}},
		{"users", Policy{ValidateAnthropic: true}, []message.Message{user("x"), user("y")}, []string{RuleRoleOrder}},
		{"results and users", Policy{MergeUserTurns: true}, []message.Message{tool(result("a")), user("y")}, []string{RuleRoleOrder}},
		{"text and results", Policy{MergeUserTurns: true}, []message.Message{tool(text("x"), result("a"))}, []string{RuleResultsFirst}},
		{"assistant first", Policy{AssistantFirstFix: true}, []message.Message{system("s"), says("x")}, []string{RuleAssistantFirst}},
		{"empty", Policy{Clean: true}, []message.Message{user(" ")}, []string{RuleEmpty}},
		{"no name", Policy{Clean: true}, []message.Message{calls(named("", call("a")))}, []string{RuleInvalidCall}},
		{"unsigned", Policy{PreserveSignatures: true}, []message.Message{calls(unsigned)}, []string{RuleUnsigned}},
		{"old thinking", Policy{DropThinking: true}, []message.Message{calls(think("t")), user("x")}, []string{RuleThinkingHistory}},
		{"id twice", Policy{SanitizeCallIDs: IDsStrict}, []message.Message{calls(call("a"), call("a"))}, []string{RuleCallID}},
		{"id form", Policy{SanitizeCallIDs: IDsStrict9}, []message.Message{calls(call("a"))}, []string{RuleCallID}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []string
			for _, v := range Check(row.in, row.policy) {
				got = append(got, v.Rule)
				if !strings.Contains(v.String(), v.Rule) || v.Index < 0 || v.Index > len(row.in) {
					t.Errorf("violation %+v reads %q", v, v)
				}
			}
			if d := cmp.Diff(row.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// TestApply follows one conversation through the rules of each provider.
func TestApply(t *testing.T) {
	in := []message.Message{
		system("be brief"),
		says("welcome"),
		user("read both"),
		calls(think("two files"), call("r_1"), call("r_2")),
		tool(result("r_2")),
		says(NoReply),
		user(" "),
		user("HEARTBEAT.md"), says(HeartbeatOK),
		user("and now?"),
		user("hello?"),
		stopped(calls(text("wait"), call("r_1")), stopAborted),
		user("go on"),
	}
	lost := func(id string) message.Message {
		m := missing(id)
		return m
	}
	with := func(id, old string) message.Message {
		p := result(old)
		p.CallID = id
		return tool(p)
	}
	asked := msg(message.User, text("and now?"), text("hello?"), text("go on"))
	for provider, want := range map[string][]message.Message{
		"none": {
			in[0], in[1], in[2], in[3], lost("r_1"), in[4], in[5], in[6], in[7], in[8], in[9], in[10], in[12],
		},
		"openai-responses": {
			in[0], in[1], in[2], calls(think("two files"), call("r1"), call("r2")), lost("r1"), with("r2", "r_2"), in[9], in[10], in[12],
		},
		"openai": {
			in[0], user(SessionStart), in[1], in[2], calls(call("r1"), call("r2")), lost("r1"), with("r2", "r_2"), asked,
		},
		"google": {
			in[0], user(SessionStart), in[1], in[2], calls(think("two files"), call("r1"), call("r2")), lost("r1"), with("r2", "r_2"),
			in[9], in[10], in[12],
		},
		"anthropic": {
			in[0], user(SessionStart), in[1], in[2], calls(think("two files"), call("r1"), call("r2")),
			tool(slices.Concat(lost("r1").Parts, with("r2", "r_2").Parts, asked.Parts)...),
		},
	} {
		t.Run(provider, func(t *testing.T) {
			policy, err := PolicyFor(provider)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, Apply(in, policy)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}
