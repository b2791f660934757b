package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// talk ingests n turns; turn 3 holds an error code in the middle of a long result.
func talk(f *fixture, n int) {
	f.t.Helper()
	for i := range n {
		f.ingest(user(fmt.Sprintf("question %d about topic%d", i, i)))
		if i == 3 {
			long := strings.Repeat("nothing to see on this line\n", 400) + "fatal: E-4711/b in module kestrel\n" + strings.Repeat("nor on this one\n", 400)
			f.ingest(message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: "c", Name: "run", Args: `{"cmd":"make -C src/kestrel"}`}}},
				message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: "c", Name: "run", Text: long}}})
		}
		f.ingest(assistant(fmt.Sprintf("answer %d", i)))
	}
}

func TestSearchFindsWhatTheWindowDoesNotShow(t *testing.T) {
	f := newFixture(t)
	talk(f, 40)
	f.assemble(400)
	res, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "E-4711/b"})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Found) != 1 || !strings.Contains(res.Found[0].Excerpt, "fatal: E-4711/b in module kestrel") || res.Found[0].Whole {
		t.Fatalf("found %+v", res.Found)
	}
	if !strings.Contains(res.Text, fmt.Sprintf(" #%d]", res.Found[0].Seq)) || wordCounter(res.Text) != res.Tokens || res.Tokens > engine.DefaultAnswer {
		t.Errorf("%d tokens: %.300s", res.Tokens, res.Text)
	}
	res, err = f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "make -C src/kestrel"})
	if err != nil || len(res.Found) == 0 || !strings.Contains(res.Found[0].Excerpt, "call run") {
		t.Errorf("arguments of a call: %+v, %v", res.Found, err)
	}
}

// A citation of the session itself is the entry's position, which is short; expanding takes it like an id, and shows no more than an id would.
func TestCitationsAreShort(t *testing.T) {
	f := newFixture(t)
	talk(f, 4)
	found, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "E-4711/b"})
	if err != nil || len(found.Found) == 0 {
		t.Fatalf("found %+v, error %v", found, err)
	}
	want := found.Found[0]
	for _, id := range []string{want.ID, "#" + want.ID, fmt.Sprint(want.Seq), fmt.Sprint("#", want.Seq)} {
		got, err := f.engine.Expand(t.Context(), engine.ExpandRequest{Session: f.id, ID: id})
		if err != nil || len(got.Found) != 1 || got.Found[0].ID != want.ID {
			t.Errorf("expand %q = %+v, error %v, want entry %s", id, got.Found, err, want.ID)
		}
	}
	other := core.SessionID{Agent: f.id.Agent, Session: "another"}
	for _, id := range []string{fmt.Sprint(want.Seq), "9999", "-1", "9223372036854775807", "99999999999999999999"} {
		if got, err := f.engine.Expand(t.Context(), engine.ExpandRequest{Session: other, ID: id}); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("expand %q in another session = %+v, error %v, want ErrNotFound", id, got.Found, err)
		}
	}
}

// What an agent looked up is not found in place of what it looked up.
func TestSearchFindsSourcesNotAnswers(t *testing.T) {
	f := newFixture(t)
	talk(f, 4)
	for i, name := range []string{core.ToolSearch, core.ToolExpand, core.ToolDescribe} {
		id := fmt.Sprint("look", i)
		f.ingest(user("what was the code of kestrel?"),
			message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: id, Name: name, Args: `{"query":"E-4711/b kestrel"}`}}},
			message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: id, Name: name, Text: "#x fatal: E-4711/b in module kestrel"}}})
	}
	res, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "E-4711/b"})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Found) != 1 || !strings.Contains(res.Found[0].Excerpt, "nothing to see on this line") {
		t.Errorf("found %+v, want only the result that says it first", res.Found)
	}
}

func TestSearchPages(t *testing.T) {
	f := newFixture(t)
	talk(f, 40)
	seen := map[string]bool{}
	offset, pages := 0, 0
	for {
		res, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "question", Limit: 7, Offset: offset, Tokens: 300})
		if err != nil {
			t.Fatal(err)
		}
		if res.Tokens > 300 {
			t.Errorf("a page costs %d tokens", res.Tokens)
		}
		for _, h := range res.Found {
			if seen[h.ID] {
				t.Errorf("%s is on two pages", h.ID)
			}
			seen[h.ID] = true
		}
		pages++
		if offset = res.Next; offset == 0 {
			break
		}
	}
	if len(seen) != 40 || pages < 6 {
		t.Errorf("%d entries on %d pages", len(seen), pages)
	}
}

func TestSearchShowsNothingOfOthers(t *testing.T) {
	f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.Recall.AcrossSessions = false })
	talk(f, 4)
	for _, id := range []core.SessionID{{Agent: "main", Session: "s2"}, {Agent: "other", Session: "s1"}} {
		res, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: id, Query: "question"})
		if err != nil || len(res.Found) > 0 {
			t.Errorf("%s finds %+v, %v", id, res.Found, err)
		}
	}
	mine, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "question 1"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.engine.Expand(t.Context(), engine.ExpandRequest{Session: core.SessionID{Agent: "other", Session: "s1"}, ID: mine.Found[0].ID})
	if !errors.Is(err, core.ErrNotFound) {
		t.Errorf("another agent expands it: %v", err)
	}
	// What the host took back is not found any more, and what was erased neither.
	f.assemble(1000, transcript("", user("question 0 about topic0"), assistant("something else")))
	if _, err := f.engine.Forget(t.Context(), engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("question 0 about topic0").ID}}); err != nil {
		t.Fatal(err)
	}
	res, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "question"})
	if err != nil || len(res.Found) > 0 {
		t.Errorf("found %+v, %v", res.Found, err)
	}
}

func TestExpandShowsAllOfIt(t *testing.T) {
	f := newFixture(t)
	talk(f, 6)
	found, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "E-4711/b"})
	if err != nil {
		t.Fatal(err)
	}
	var whole strings.Builder
	req := engine.ExpandRequest{Session: f.id, ID: "#" + found.Found[0].ID, Tokens: 500}
	for pages := 0; ; pages++ {
		res, err := f.engine.Expand(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if res.Tokens > 500 || pages > 100 {
			t.Fatalf("page %d costs %d tokens", pages, res.Tokens)
		}
		whole.WriteString(res.Found[0].Excerpt)
		if req.Offset = res.Next; req.Offset == 0 {
			break
		}
	}
	if want := strings.Repeat("nothing to see on this line\n", 400) + "fatal: E-4711/b in module kestrel\n" + strings.Repeat("nor on this one\n", 400); whole.String() != want {
		t.Errorf("%d bytes, want %d", whole.Len(), len(want))
	}
	res, err := f.engine.Expand(t.Context(), engine.ExpandRequest{Session: f.id, ID: found.Found[0].ID, Before: 2, After: 1})
	if err != nil || len(res.Found) != 4 || res.Total != 4 || res.Found[0].Excerpt != "question 3 about topic3" {
		t.Errorf("neighbours: %+v, %v", res, err)
	}
}

func TestExpandSummary(t *testing.T) {
	f := newFixture(t)
	talk(f, 30)
	f.assemble(300)
	c, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Force: true})
	if err != nil || !c.Compacted {
		t.Fatalf("%+v, %v", c, err)
	}
	d, err := f.engine.Describe(t.Context(), engine.DescribeRequest{Session: f.id})
	if err != nil {
		t.Fatal(err)
	}
	if d.Entries != 62 || d.Turns != 30 || len(d.Summaries) != 1 || d.Tokens != wordCounter(d.Text) {
		t.Fatalf("described as %+v", d)
	}
	n, offset := 0, 0
	for {
		res, err := f.engine.Expand(t.Context(), engine.ExpandRequest{Session: f.id, ID: d.Summaries[0].ID, Offset: offset, Tokens: 300})
		if err != nil {
			t.Fatal(err)
		}
		if res.Total != d.Summaries[0].Covers {
			t.Fatalf("total %d, want %d", res.Total, d.Summaries[0].Covers)
		}
		n += len(res.Found)
		if offset = res.Next; offset == 0 {
			break
		}
	}
	if n != d.Summaries[0].Covers {
		t.Errorf("%d entries, the summary stands for %d", n, d.Summaries[0].Covers)
	}
}

func TestRecallerRefuses(t *testing.T) {
	f := newFixture(t)
	talk(f, 2)
	for name, err := range map[string]error{
		"query":  second(f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: " "})),
		"limit":  second(f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "x", Limit: 51})),
		"offset": second(f.engine.Expand(t.Context(), engine.ExpandRequest{Session: f.id, ID: "x", Offset: -1})),
		"id":     second(f.engine.Expand(t.Context(), engine.ExpandRequest{Session: f.id})),
		"tokens": second(f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "x", Tokens: 1 << 20})),
	} {
		if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := f.engine.Expand(t.Context(), engine.ExpandRequest{Session: f.id, ID: "nobody"}); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("an unknown id: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }
