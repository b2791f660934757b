package history

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core/message"
)

// ruleCase is a rule's input and what it makes of it. A row whose want is nil expects the input back.
type ruleCase struct {
	name     string
	policy   Policy
	in, want []message.Message
}

func runRules(t *testing.T, rows []ruleCase, rule func([]message.Message, Policy) []message.Message) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			got := rule(r.in, r.policy)
			want := r.want
			if want == nil {
				want = r.in
				if !same(got, r.in) {
					t.Error("copied what it did not change")
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func named(name string, p message.Part) message.Part {
	p.Name = name
	return p
}

func at(second int64, m message.Message) message.Message {
	m.Time = time.Unix(second, 0).UTC()
	return m
}

func TestSanitize(t *testing.T) {
	clean := Policy{Clean: true}
	image := message.Part{Kind: message.Image, Raw: []byte(`{"type":"image"}`)}
	unsigned := message.Part{Kind: message.Thinking, Text: "hm"}
	badArgs := call("a")
	badArgs.Args = `{"path":`
	noArgs := call("a")
	noArgs.Args = ""
	custom := badArgs
	custom.Raw = []byte(`{"id":"a","type":"custom","custom":{"name":"read","input":"{\"path\":"}}`)
	empty := result("a")
	empty.Text = " "
	picture := empty
	picture.Raw = []byte(`{"type":"tool_result","content":[{"type":"image","source":{}}]}`)
	filled := empty
	filled.Text = EmptyResult
	summary := at(50, message.Message{Role: message.User, Type: message.CompactionSummary})
	cleared := think("hm")
	cleared.Signature = "!"
	plain := think("hm")
	plain.Signature = ""
	wide := says("x")
	wide.Usage.Output = 1

	runRules(t, []ruleCase{
		{"nothing asked for", Policy{}, []message.Message{user(" "), says("")}, nil},
		{"clean messages stay", clean, []message.Message{system(""), user("a"), says("b"), tool(result("x"))}, nil},
		{
			"blank user text goes, empty users go", clean,
			[]message.Message{user("\n"), msg(message.User, text(""), text("a")), msg(message.User), msg(message.User, text(""), image)},
			[]message.Message{msg(message.User, text("a")), msg(message.User, image)},
		},
		{
			"empty assistants go, failed or not", clean,
			[]message.Message{says(" "), stopped(calls(), stopError), stopped(says(""), stopAborted), says("x")},
			[]message.Message{says("x")},
		},
		{
			"cut off while thinking", clean,
			[]message.Message{stopped(calls(think("a")), stopLength), stopped(calls(think("a")), stopAborted), calls(think("a"))},
			[]message.Message{calls(think("a"))},
		},
		{
			"silent replies go, their calls stay", clean,
			[]message.Message{says(" NO_REPLY\n"), calls(think("a"), text(NoReply)), calls(text(NoReply), call("a")), says("NO_REPLY?")},
			[]message.Message{calls(call("a")), says("NO_REPLY?")},
		},
		{
			"pictures of an assistant go", clean,
			[]message.Message{calls(text("look"), image), calls(image)},
			[]message.Message{calls(text("look"))},
		},
		{
			"a copy nobody produced goes", clean,
			[]message.Message{says("x"), stopped(says("x"), "stop"), says("x"), stopped(wide, "stop")},
			[]message.Message{says("x"), says("x"), stopped(wide, "stop")},
		},
		{"empty result", clean, []message.Message{tool(empty)}, []message.Message{tool(filled)}},
		{"a picture is a result", clean, []message.Message{tool(picture), tool(empty, image)}, nil},
		{
			"calls that cannot be replayed go", clean,
			[]message.Message{calls(text("x"), call(" "), badArgs, noArgs, named("two words", call("a")), named("", call("a"))), calls(badArgs)},
			[]message.Message{calls(text("x"))},
		},
		{"free text of a custom call", clean, []message.Message{calls(custom)}, nil},
		{
			"names are trimmed", clean,
			[]message.Message{calls(named(" read ", call("a"))), tool(named("read ", result("a")))},
			[]message.Message{calls(call("a")), tool(named("read", result("a")))},
		},
		{
			"tools that are gone", Policy{Clean: true, AllowedTools: []string{"write"}},
			[]message.Message{calls(call("a"), call("b"), named("write", call("c"))), user("x"), tool(result("a")), calls(call("d")), calls(call("e")), tool(result("d"))},
			[]message.Message{calls(call("a"), named("write", call("c"))), user("x"), tool(result("a")), tool(result("d"))},
		},
		{
			"a summary without text stays", clean,
			[]message.Message{summary, {Role: message.User, Type: "custom", Parts: []message.Part{text("")}}}, nil,
		},
		{
			"reasoning of earlier turns", Policy{DropReasoning: true},
			[]message.Message{user("1"), calls(think("a"), text("x")), calls(think("b")), user("2"), calls(think("c"), call("a")), tool(result("a")), calls(think("d"))},
			[]message.Message{user("1"), says("x"), says(ReasoningOmitted), user("2"), calls(think("c"), call("a")), tool(result("a")), calls(think("d"))},
		},
		{
			"text beside results starts a turn", Policy{DropThinking: true},
			[]message.Message{user("1"), calls(think("a"), call("a")), tool(result("a"), text("2")), calls(think("c"))},
			[]message.Message{user("1"), calls(call("a")), tool(result("a"), text("2")), calls(think("c"))},
		},
		{"only one turn", Policy{DropThinking: true}, []message.Message{calls(think("a"), text("x")), user(" ")}, nil},
		{
			"unsigned thinking", Policy{PreserveSignatures: true},
			[]message.Message{user("1"), calls(unsigned, think("s"), text("x")), calls(unsigned)},
			[]message.Message{user("1"), calls(think("s"), text("x")), says(ReasoningOmitted)},
		},
		{
			"thinking from before a compaction", Policy{PreserveSignatures: true},
			[]message.Message{summary, at(10, user("1")), at(20, calls(think("s"), text("x"))), at(60, calls(think("t"), text("y"))), at(61, user("2")), at(49, calls(think("u")))},
			[]message.Message{summary, at(10, user("1")), at(20, says("x")), at(60, calls(think("t"), text("y"))), at(61, user("2")), at(49, calls(think("u")))},
		},
		{
			"signatures that are no base64", Policy{Base64Signatures: true},
			[]message.Message{calls(think("a"), cleared)},
			[]message.Message{calls(think("a"), plain)},
		},
	}, Sanitize)
}

func TestEditedMessagesAreMarked(t *testing.T) {
	m := msg(message.User, text(""), text("a"))
	m.Raw = []byte(`{"role":"user"}`)
	got := Sanitize([]message.Message{m}, Policy{Clean: true})
	if len(got) != 1 || !got[0].Edited {
		t.Errorf("Sanitize = %+v, want one edited message", got)
	}
	p := named(" x ", call("a"))
	p.Raw = []byte(`{}`)
	got = Sanitize([]message.Message{calls(p)}, Policy{Clean: true})
	if got[0].Parts[0].Raw != nil {
		t.Error("a changed part keeps its original bytes")
	}
}

func TestIsBase64(t *testing.T) {
	for s, want := range map[string]bool{
		"": true, "YQ==": true, "YWI=": true, "YWJj": true, "+/+/": true,
		"YQ": false, "YQ=": false, "Y===": false, "====": false, "Y-_j": false, "Y=Jj": false,
	} {
		if got := isBase64(s); got != want {
			t.Errorf("isBase64(%q) = %v, want %v", s, got, want)
		}
	}
}
