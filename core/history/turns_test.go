package history

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core/message"
)

func TestProviderTurns(t *testing.T) {
	gemini := Policy{ValidateGemini: true}
	anthropic := Policy{ValidateAnthropic: true}
	wire := Policy{ValidateAnthropic: true, MergeUserTurns: true}
	first := Policy{AssistantFirstFix: true}
	opened := Policy{AssistantFirstFix: true, ValidateAnthropic: true}
	named := user("x")
	named.Name = "bob"
	summary := message.Message{Role: message.User, Type: message.CompactionSummary, Parts: []message.Part{text("s")}}
	hosted := tool(result("a"))
	hosted.Format = message.FormatPi

	runRules(t, []ruleCase{
		{"off", Policy{}, []message.Message{says("a"), says("b"), user("c"), user("d")}, nil},
		{
			"assistants", gemini,
			[]message.Message{at(1, says("a")), at(2, stopped(calls(call("x")), "toolUse")), tool(result("x")), user("c"), user("d")},
			[]message.Message{at(2, stopped(calls(text("a"), call("x")), "toolUse")), tool(result("x")), user("c"), user("d")},
		},
		{
			"users", anthropic,
			[]message.Message{at(5, user("a")), user("b"), user("c"), says("d"), named, user("e")},
			[]message.Message{at(5, msg(message.User, text("a"), text("b"), text("c"))), says("d"), named, user("e")},
		},
		{"typed messages stay apart", wire, []message.Message{summary, user("a"), summary}, nil},
		{
			"dangling calls", anthropic,
			[]message.Message{calls(text("a"), call("x"), call("y")), tool(result("y")), calls(call("z")), user("u"), stopped(calls(call("z")), stopError)},
			[]message.Message{calls(text("a"), call("y")), tool(result("y")), says(CallsOmitted), user("u")},
		},
		{
			"dangling calls with thinking", anthropic,
			[]message.Message{calls(think("t"), call("x"), call("y")), tool(result("y"))},
			[]message.Message{calls(think("t")), tool(result("y"))},
		},
		{"results beside users", anthropic, []message.Message{calls(call("x")), tool(result("x")), user("a")}, nil},
		{
			"results and users are one on the wire", wire,
			[]message.Message{calls(call("x"), call("y")), tool(result("x")), tool(text("a"), result("y")), user("b")},
			[]message.Message{calls(call("x"), call("y")), tool(result("x"), result("y"), text("a"), text("b"))},
		},
		{"not where each result has its message", wire, []message.Message{calls(call("a")), hosted, user("b")}, nil},
		{"no assistant first", first, []message.Message{system("s"), user("a"), says("b")}, nil},
		{"a summary speaks first", first, []message.Message{summary, says("b")}, nil},
		{
			"assistant first", first,
			[]message.Message{system("s"), at(9, says("a"))},
			[]message.Message{system("s"), at(9, user(SessionStart)), at(9, says("a"))},
		},
		{
			"assistant first, twice", opened, // the opening stays as it was while the assistant goes on
			[]message.Message{system("s"), at(9, says("a")), at(11, says("b"))},
			[]message.Message{system("s"), at(9, user(SessionStart)), at(11, msg(message.Assistant, text("a"), text("b")))},
		},
	}, ProviderTurns)
}

func TestMergedMessage(t *testing.T) {
	a, b := at(1, user("a")), at(2, user("b"))
	a.ID, a.Key, a.Format, a.Raw = "ia", "ka", message.FormatPi, []byte(`{"a":1}`)
	a.Parts[0].Raw = []byte(`{"type":"text","text":"a"}`)
	b.ID, b.Key, b.Format, b.Raw = "ib", "kb", message.FormatPi, []byte(`{"b":1}`)
	own := user("c")

	got := join([]message.Message{a, b})
	want := at(2, msg(message.User, a.Parts[0], b.Parts[0]))
	want.ID, want.Key, want.Format, want.Raw, want.Edited = "ia", "ka", message.FormatPi, b.Raw, true
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("two of one format, -want +got:\n%s", d)
	}
	got = join([]message.Message{a, own})
	if string(got.Raw) != string(a.Raw) || !got.Edited || got.Parts[0].Raw == nil || !got.Time.Equal(a.Time) {
		t.Errorf("with a message of no host: %+v", got)
	}
	b.Format = message.FormatAnthropic
	if got = join([]message.Message{a, b}); got.Parts[0].Raw != nil {
		t.Error("bytes of one format ended up in a message of another")
	}
}

func TestRewriteCallIDs(t *testing.T) {
	long := strings.Repeat("x", 50)
	for _, row := range []struct {
		name     string
		policy   Policy
		in, want []string
	}{
		{"strict", Policy{SanitizeCallIDs: IDsStrict}, []string{"call_1", "plain", ""}, []string{"call1", "plain", "toolcall"}},
		{"long", Policy{SanitizeCallIDs: IDsStrict}, []string{long}, []string{long[:40]}},
		{"native of another provider", Policy{SanitizeCallIDs: IDsStrict}, []string{"toolu_1", "functions.read:0", "functions.read:x"}, []string{"toolu1", "functions.read:0", "functionsreadx"}},
		{"native", Policy{SanitizeCallIDs: IDsStrict, KeepNativeIDs: true}, []string{"toolu_1", "toolu_1-"}, []string{"toolu_1", "toolu1"}},
		{"nine", Policy{SanitizeCallIDs: IDsStrict9}, []string{"abc_defghij", "ab"}, []string{"abcdefghi", "fb8e20fc2"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var in []message.Message
			for _, id := range row.in {
				in = append(in, calls(call(id)), tool(result(id)))
			}
			out := RewriteCallIDs(in, row.policy)
			for i, want := range row.want {
				if got := out[2*i].Parts[0].CallID; got != want {
					t.Errorf("id %q became %q, want %q", row.in[i], got, want)
				}
				if got := out[2*i+1].Parts[0].CallID; got != want {
					t.Errorf("the result of %q got %q, want %q", row.in[i], got, want)
				}
			}
		})
	}
}

func TestRewrittenIDsAreUniqueAndFollowed(t *testing.T) {
	for _, mode := range []string{IDsStrict, IDsStrict9} {
		policy := Policy{SanitizeCallIDs: mode, KeepNativeIDs: true, RepairPairs: true}
		var in []message.Message
		for range 4 {
			in = append(in, calls(call("a_1"), call("a1"), call("a_1"), call("toolu_x")), tool(result("a_1"), result("a1"), result("a_1")), tool(result("toolu_x")))
		}
		out := RewriteCallIDs(in, policy)
		if v := Check(out, policy); len(v) > 0 {
			t.Errorf("%s: %v", mode, v)
		}
		// What is written depends on what stands before it.
		if d := cmp.Diff(RewriteCallIDs(in[:6], policy), out[:6]); d != "" {
			t.Errorf("%s: later messages changed earlier ids:\n%s", mode, d)
		}
	}
}
