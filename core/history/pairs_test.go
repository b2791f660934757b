package history

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core/message"
)

func TestRepairPairs(t *testing.T) {
	repair := Policy{RepairPairs: true, SyntheticResults: true}
	strip := Policy{RepairPairs: true}
	second := result("a")
	second.Text = "another"
	adopted := result("a")
	adopted.Text, adopted.IsError = "result of ", true
	lost := missing("a").Parts[0]
	lostB := missing("b").Parts[0]
	claude := func(m message.Message) message.Message {
		m.Format = message.FormatAnthropic
		return m
	}

	runRules(t, []ruleCase{
		{"off", Policy{}, []message.Message{tool(result("a"))}, nil},
		{"in order", repair, []message.Message{calls(call("a"), call("b")), tool(result("a")), tool(result("b")), user("x")}, nil},
		{"several in one message", repair, []message.Message{calls(call("a"), call("b")), tool(text("x"), result("a"), result("b"), text("y"))}, nil},
		{"ids repeat from turn to turn", repair, []message.Message{calls(call("a")), tool(result("a")), calls(call("a")), tool(second)}, nil},
		{"ids repeat in one message", repair, []message.Message{calls(call("a"), call("a")), tool(result("a")), tool(second)}, nil},
		{
			"order of the calls", repair,
			[]message.Message{calls(call("a"), call("b")), tool(result("b")), tool(result("a"))},
			[]message.Message{calls(call("a"), call("b")), tool(result("a")), tool(result("b"))},
		},
		{
			"order inside one message", repair,
			[]message.Message{calls(call("a"), call("b")), tool(result("b"), text("x"), result("a"))},
			[]message.Message{calls(call("a"), call("b")), tool(result("a"), result("b"), text("x"))},
		},
		{
			"what came between follows", repair,
			[]message.Message{calls(call("a")), user("x"), system("y"), tool(result("a")), says("z")},
			[]message.Message{calls(call("a")), tool(result("a")), user("x"), system("y"), says("z")},
		},
		{
			"missing", repair,
			[]message.Message{user("x"), at(7, calls(call("a"), call("b"))), tool(result("b")), user("y")},
			[]message.Message{user("x"), at(7, calls(call("a"), call("b"))), at(7, missing("a")), tool(result("b")), user("y")},
		},
		{
			"missing in one message", repair,
			[]message.Message{calls(call("a"), call("b"), call("c")), tool(result("b"), result("c"), text("x"))},
			[]message.Message{calls(call("a"), call("b"), call("c")), tool(lost, result("b"), result("c"), text("x"))},
		},
		{
			"all missing, results share a message", repair,
			[]message.Message{claude(calls(call("a"), call("b")))},
			[]message.Message{claude(calls(call("a"), call("b"))), tool(lost, lostB)},
		},
		{
			"results over two messages that could share one", repair,
			[]message.Message{calls(call("a"), call("b"), call("c")), tool(result("a"), result("c")), tool(result("b"), text("x"))},
			[]message.Message{calls(call("a"), call("b"), call("c")), tool(result("a"), result("b"), result("c"), text("x"))},
		},
		{
			"orphans", repair,
			[]message.Message{tool(result("z")), calls(call("a")), tool(result("z")), tool(result("a")), tool(result("y"), text("x"))},
			[]message.Message{calls(call("a")), tool(result("a")), user("x")},
		},
		{
			"duplicates", repair,
			[]message.Message{calls(call("a")), tool(result("a")), tool(second), user("x"), tool(second)},
			[]message.Message{calls(call("a")), tool(result("a")), user("x")},
		},
		{
			"a recorded result replaces a synthetic one", repair,
			[]message.Message{calls(call("a")), missing("a"), tool(result("a"))},
			[]message.Message{calls(call("a")), tool(result("a"))},
		},
		{
			"adopted", repair,
			[]message.Message{calls(call("a")), tool(result("")), tool(result(""))},
			[]message.Message{calls(call("a")), tool(adopted)},
		},
		{
			"not adopted by one of two, nor by an answered one", repair,
			[]message.Message{calls(call("a"), call("b")), tool(result("")), tool(result("a")), calls(call("c")), tool(result("")), tool(result("c"))},
			[]message.Message{calls(call("a"), call("b")), tool(result("a")), missing("b"), calls(call("c")), tool(result("c"))},
		},
		{
			"not adopted by the first of two", repair,
			[]message.Message{calls(call("a"), call("b")), tool(result("")), tool(result("b"))},
			[]message.Message{calls(call("a"), call("b")), missing("a"), tool(result("b"))},
		},
		{
			"of two synthetic ones the first stays", repair,
			[]message.Message{calls(call("a")), at(1, missing("a")), at(2, missing("a"))},
			[]message.Message{calls(call("a")), at(1, missing("a"))},
		},
		{
			"a duplicate does not move back", repair,
			[]message.Message{calls(call("a")), calls(call("a")), tool(result("a")), tool(second)},
			[]message.Message{calls(call("a")), missing("a"), calls(call("a")), tool(result("a"))},
		},
		{
			"text stays with the newest of two owners", repair,
			[]message.Message{calls(call("a")), calls(call("b")), tool(result("a"), result("b"), text("x"))},
			[]message.Message{calls(call("a")), tool(result("a")), calls(call("b")), tool(result("b"), text("x"))},
		},
		{
			"text of several messages stays in order", repair,
			[]message.Message{calls(call("a"), call("b"), call("c")), tool(result("b"), text("x")), tool(result("c"), result("a"), text("y"))},
			[]message.Message{calls(call("a"), call("b"), call("c")), tool(result("a"), result("b"), result("c"), text("x"), text("y"))},
		},
		{
			"moved back", repair,
			[]message.Message{calls(call("a")), calls(call("b")), tool(result("a")), tool(result("b"))},
			[]message.Message{calls(call("a")), tool(result("a")), calls(call("b")), tool(result("b"))},
		},
		{
			"two could own it", repair,
			[]message.Message{calls(call("a")), calls(call("a")), calls(call("b")), tool(result("a")), tool(result("b"))},
			[]message.Message{calls(call("a")), missing("a"), calls(call("a")), missing("a"), calls(call("b")), tool(result("b"))},
		},
		{
			"only an earlier call can own it", repair,
			[]message.Message{calls(call("b")), tool(result("a")), tool(result("b")), calls(call("a"))},
			[]message.Message{calls(call("b")), tool(result("b")), calls(call("a")), missing("a")},
		},
		{
			"failed and unanswered", repair,
			[]message.Message{user("x"), stopped(calls(call("a"), call("b")), stopAborted), tool(result("a")), says("y")},
			[]message.Message{user("x"), says("y")},
		},
		{"failed but answered", repair, []message.Message{stopped(calls(call("a")), stopError), tool(result("a"))}, nil},
		{
			"text stays without its result", repair,
			[]message.Message{stopped(calls(call("a"), call("b")), stopError), tool(result("a"), text("stop!"))},
			[]message.Message{user("stop!")},
		},
		{
			"taken out instead", strip,
			[]message.Message{calls(text("x"), call("a"), call("b")), tool(result("b")), calls(call("c"))},
			[]message.Message{calls(text("x"), call("b")), tool(result("b")), says(CallsOmitted)},
		},
		{
			"with thinking all or none", strip,
			[]message.Message{calls(think("t"), text("x"), call("a"), call("b")), tool(result("b"), text("y"))},
			[]message.Message{calls(think("t"), text("x")), user("y")},
		},
		{
			"parts in the wrong roles", repair,
			[]message.Message{msg(message.User, text("x"), call("a")), msg(message.User, result("a")), calls(text("y"), result("a"))},
			[]message.Message{user("x"), says("y")},
		},
	}, func(m []message.Message, p Policy) []message.Message { return RepairPairs(m, p, false) })
}

func TestRepairPairsOpenTail(t *testing.T) {
	repair := Policy{RepairPairs: true, SyntheticResults: true}
	runRules(t, []ruleCase{
		{"awaiting results", repair, []message.Message{user("x"), calls(call("a"))}, nil},
		{
			"earlier ones do not", repair,
			[]message.Message{calls(call("a")), calls(call("b"))},
			[]message.Message{calls(call("a")), missing("a"), calls(call("b"))},
		},
		{
			"some have come", repair,
			[]message.Message{calls(call("a"), call("b")), tool(result("b"))},
			[]message.Message{calls(call("a"), call("b")), missing("a"), tool(result("b"))},
		},
		{
			"somebody went on", repair,
			[]message.Message{calls(call("a")), user("x")},
			[]message.Message{calls(call("a")), missing("a"), user("x")},
		},
		{"failed", repair, []message.Message{user("x"), stopped(calls(call("a")), stopError)}, []message.Message{user("x")}},
	}, func(m []message.Message, p Policy) []message.Message { return RepairPairs(m, p, true) })
}

// TestTextOfAResultFormats tells the formats apart in which what stands beside a result is the user's, and those in
// which it is part of the result.
func TestTextOfAResultFormats(t *testing.T) {
	image := message.Part{Kind: message.Image, Raw: []byte(`{"type":"image"}`)}
	orphan := tool(result("z"), image)
	for format, want := range map[string]int{message.FormatAnthropic: 1, message.FormatPi: 0, message.FormatOpenAI: 0} {
		orphan.Format, orphan.Raw = format, []byte(`{}`)
		got := RepairPairs([]message.Message{orphan}, Policy{RepairPairs: true}, false)
		if len(got) != want {
			t.Errorf("%s: got %d messages, want %d", format, len(got), want)
		}
		if want == 1 && (got[0].Role != message.User || !got[0].Edited || !cmp.Equal(got[0].Parts, []message.Part{image})) {
			t.Errorf("%s: got %+v, want the picture of an edited user message", format, got[0])
		}
	}
}

func TestGroups(t *testing.T) {
	for _, row := range []struct {
		name string
		in   []message.Message
		want []Group
	}{
		{"nothing", nil, nil},
		{
			"a call and its results", []message.Message{user("x"), calls(call("a"), call("b")), tool(result("a")), tool(result("b")), says("y")},
			[]Group{{0, 1}, {1, 4}, {4, 5}},
		},
		{
			"a result of no call", []message.Message{tool(result("a")), calls(call("a")), tool(result("z")), tool(result("a"))},
			[]Group{{0, 1}, {1, 2}, {2, 3}, {3, 4}},
		},
		{
			"a result of an earlier call", []message.Message{calls(call("a")), tool(result("a")), calls(call("b")), tool(result("a"))},
			[]Group{{0, 2}, {2, 3}, {3, 4}},
		},
		{"several in one", []message.Message{calls(call("a"), call("b")), tool(result("a"), result("b"), text("x"))}, []Group{{0, 2}}},
		{"without an id", []message.Message{calls(call("a")), tool(result("")), calls(call("a"), call("b")), tool(result(""))}, []Group{{0, 2}, {2, 3}, {3, 4}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if d := cmp.Diff(row.want, Groups(row.in)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}
