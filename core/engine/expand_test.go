package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// pages expands something page by page and returns what they hold.
func (f *fixture) pages(req engine.ExpandRequest) (found []engine.Found, total int) {
	f.t.Helper()
	req.Session = f.id
	for {
		res, err := f.engine.Expand(f.t.Context(), req)
		if err != nil {
			f.t.Fatal(err)
		}
		short := 0
		for _, h := range res.Found {
			if !h.Whole {
				short++
			}
		}
		if req.Tokens > 0 && res.Tokens > req.Tokens || res.Tokens != wordCounter(res.Text) || strings.Count(res.Text, " ...\n") != short {
			f.t.Errorf("a page of %d tokens costs %d, %d are shortened: %.200q", req.Tokens, res.Tokens, short, res.Text)
		}
		if found = append(found, res.Found...); res.Next == 0 {
			return found, res.Total
		}
		if res.Next <= req.Offset || len(found) > 5000 {
			f.t.Fatalf("behind %d comes %d", req.Offset, res.Next)
		}
		req.Offset = res.Next
	}
}

// TestExpandBounds: what may be expanded is accepted up to its bounds, and anything beyond is refused and named.
func TestExpandBounds(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("twelve bytes"))
	id := f.entry("twelve").ID
	for name, c := range map[string]struct {
		req  engine.ExpandRequest
		says string
	}{
		"an entry":            {engine.ExpandRequest{ID: id}, ""},
		"none":                {engine.ExpandRequest{ID: " # "}, "id"},
		"neighbours":          {engine.ExpandRequest{ID: id, Before: engine.MaxFound, After: engine.MaxFound}, ""},
		"too many in front":   {engine.ExpandRequest{ID: id, Before: engine.MaxFound + 1}, "before"},
		"too many behind":     {engine.ExpandRequest{ID: id, After: engine.MaxFound + 1}, "after"},
		"fewer than none":     {engine.ExpandRequest{ID: id, Before: -1}, "before"},
		"fewer than none too": {engine.ExpandRequest{ID: id, After: -1}, "after"},
		"most tokens":         {engine.ExpandRequest{ID: id, Tokens: engine.MaxAnswer}, ""},
		"too many tokens":     {engine.ExpandRequest{ID: id, Tokens: engine.MaxAnswer + 1}, "tokens"},
		"negative tokens":     {engine.ExpandRequest{ID: id, Tokens: -1}, "tokens"},
		"too few tokens":      {engine.ExpandRequest{ID: id, Tokens: 1}, "tokens"},
		"too few for many":    {engine.ExpandRequest{ID: id, Before: 1, Tokens: 1}, "tokens"},
		"its end":             {engine.ExpandRequest{ID: id, Offset: len("twelve bytes")}, ""},
		"behind its end":      {engine.ExpandRequest{ID: id, Offset: len("twelve bytes") + 1}, "offset"},
		"negative offset":     {engine.ExpandRequest{ID: id, Offset: -1}, "offset"},
	} {
		c.req.Session = f.id
		_, err := f.engine.Expand(t.Context(), c.req)
		if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want that it names %q", name, err, c.says)
		}
	}
	broken := &failing{Store: f.store, err: errors.New("disk on fire")}
	f.parts.Store, f.cfg.Failure = broken, engine.FailStrict
	broken.err = nil
	f.restart()
	f.assemble(1000)
	broken.err = errors.New("disk on fire")
	for _, id := range []string{"0", id} {
		if _, err := f.engine.Expand(t.Context(), engine.ExpandRequest{Session: f.id, ID: id, After: 1}); !errors.Is(err, broken.err) {
			t.Errorf("expand %q of a store that cannot be read: %v", id, err)
		}
	}
}

// TestExpandInPages: the pages of a text are all of it, whatever their size, and each is text.
func TestExpandInPages(t *testing.T) {
	for name, text := range map[string]string{"words": strings.Repeat("one two three ", 300), "long letters": strings.Repeat("äöü 漢字 ", 300), "no words": strings.Repeat("漢", 2000), "short": "all of it"} {
		f := newFixture(t)
		f.ingest(user(text), assistant("yes"))
		for _, tokens := range []int{0, 60, 100, 333} {
			found, total := f.pages(engine.ExpandRequest{ID: "0", Tokens: tokens})
			var got strings.Builder
			for _, h := range found {
				got.WriteString(h.Excerpt)
				if !utf8.ValidString(h.Excerpt) || h.Whole != (len(h.Excerpt) == len(text)) {
					t.Errorf("%s: a page is no text, or is said to be all of it: %q", name, h.Excerpt)
				}
			}
			if got.String() != text || total != len(text) {
				t.Errorf("%s in pages of %d tokens: %d of %d bytes, total %d", name, tokens, got.Len(), len(text), total)
			}
		}
	}
	f := newFixture(t)
	f.ingest(user("a 漢字 text"))
	for offset, want := range map[int]string{0: "a 漢字 text", 1: " 漢字 text", 2: "漢字 text", 3: "漢字 text", 4: "漢字 text", 5: "字 text", 7: "字 text", 8: " text"} {
		if res, err := f.engine.Expand(t.Context(), engine.ExpandRequest{Session: f.id, ID: "0", Offset: offset}); err != nil || res.Found[0].Excerpt != want {
			t.Errorf("from byte %d: %+v, %v, want %q", offset, res.Found, err, want)
		}
	}
}

// TestExpandNeighbours: an entry is shown with so many in front of it and behind it as there are and were asked for, in order, on as many pages as it takes.
func TestExpandNeighbours(t *testing.T) {
	f := newFixture(t)
	for n := range 40 {
		f.ingest(user(fmt.Sprintf("m%d %s", 2*n, strings.Repeat("word ", 20))), assistant(fmt.Sprintf("m%d %s", 2*n+1, strings.Repeat("word ", 90))))
	}
	for _, c := range []struct{ at, before, after, from, to int }{
		{10, 3, 2, 7, 13}, {10, 0, 1, 10, 12}, {10, 1, 0, 9, 11}, {1, 5, 1, 0, 3}, {0, 1, 0, 0, 1}, {79, 2, 50, 77, 80}, {40, 50, 50, 0, 80}, {45, 44, 34, 1, 80},
	} {
		for _, tokens := range []int{150, 260, 1000, engine.MaxAnswer} {
			found, total := f.pages(engine.ExpandRequest{ID: fmt.Sprint(c.at), Before: c.before, After: c.after, Tokens: tokens})
			var got, want []string
			for _, h := range found {
				name, _, _ := strings.Cut(h.Excerpt, " ")
				got = append(got, name)
			}
			for n := c.from; n < c.to; n++ {
				want = append(want, fmt.Sprint("m", n))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%d before and %d after %d, in %d tokens (-want +got):\n%s", c.before, c.after, c.at, tokens, diff)
			}
			if total < len(want) || total > 1+c.before+c.after {
				t.Errorf("%d before and %d after %d: a total of %d", c.before, c.after, c.at, total)
			}
		}
	}
}

// TestExpandSummaryOfSpans: a summary of what was said before and after a rewind expands to what it stands for, and to nothing that was taken back, in pages of any size.
func TestExpandSummaryOfSpans(t *testing.T) {
	f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.Recall.ResetHistory = false })
	talk := func(what string, n int) (out []message.Message) {
		for i := range n {
			out = append(out, user(fmt.Sprintf("%s question %d", what, i)), assistant(fmt.Sprintf("%s answer %d %s", what, i, strings.Repeat("word ", 10*i))))
		}
		return out
	}
	first, taken, then, last := talk("first", 4), talk("taken", 3), talk("then", 5), talk("last", 40)
	f.assemble(4000, transcript("", join(first, taken)...))
	f.assemble(4000, transcript("", join(first, then)...))
	f.assemble(4000, transcript("", join(first, then[:6], last)...))
	f.compact(200)
	d, err := f.engine.Describe(t.Context(), engine.DescribeRequest{Session: f.id})
	if err != nil || len(d.Summaries) != 1 || len(d.Summaries[0].Of) != 3 {
		t.Fatalf("%+v, %v", d.Summaries, err)
	}
	var want []string
	for _, m := range join(first, then[:6], last) {
		want = append(want, strings.Join(strings.Fields(m.Text())[:3], " "))
	}
	want = want[:d.Summaries[0].Covers]
	for _, tokens := range []int{150, 400, 2000, engine.MaxAnswer} {
		found, total := f.pages(engine.ExpandRequest{ID: d.Summaries[0].ID, Tokens: tokens})
		var got []string
		for _, h := range found {
			got = append(got, strings.Join(strings.Fields(h.Excerpt)[:3], " "))
		}
		if diff := cmp.Diff(want, got); diff != "" || total != len(want) {
			t.Errorf("in %d tokens, a total of %d (-want +got):\n%s", tokens, total, diff)
		}
	}
}

// TestExpandOfAFork: a fork expands what it shows of its parent, and nothing that the parent says later or of another session.
func TestExpandOfAFork(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("parent question"), assistant("parent answer"))
	f.say(core.SessionID{Agent: f.id.Agent, Session: "other"}, false, user("of the other one"))
	child := core.SessionID{Agent: "helper", Session: "child"}
	if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork, TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	f.say(child, false, user("task"))
	res, err := f.engine.Expand(t.Context(), engine.ExpandRequest{Session: child, ID: f.entry("parent answer").ID})
	if err != nil || len(res.Found) != 1 || res.Found[0].Excerpt != "parent answer" || res.Found[0].Session != f.id.Session {
		t.Errorf("%+v, %v", res, err)
	}
	f.id.Session = "other"
	if res, err := f.engine.Expand(t.Context(), engine.ExpandRequest{Session: child, ID: f.entry("other one").ID}); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("of another session: %+v, %v", res.Found, err)
	}
}

// TestDescribeSaysWhatThereIs: a description has the number of entries and turns, of what is shown, shortened and not shown, the times of the first and the last,
// and every summary; its text says the same.
func TestDescribeSaysWhatThereIs(t *testing.T) {
	day := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	host := &clock{now: day}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Host = host })
	describe := func() engine.DescribeResult {
		t.Helper()
		d, err := f.engine.Describe(t.Context(), engine.DescribeRequest{Session: f.id})
		if err != nil || d.Tokens != wordCounter(d.Text) {
			t.Fatalf("%+v, %v", d, err)
		}
		return d
	}
	if d := describe(); d.Entries != 0 || !d.First.IsZero() || d.Text != "0 messages in 0 turns; 0 shown (0 of them shortened), 0 stored but not shown.\n" {
		t.Errorf("of nothing: %+v", d)
	}
	talk := []message.Message{message.New(message.System, "rules")}
	for n := range 30 {
		talk = append(talk, user(fmt.Sprintf("question %d of some words", n)), assistant(fmt.Sprintf("answer %d of some words", n)))
	}
	talk[len(talk)-1].Time = day.Add(2 * time.Hour)
	f.assemble(1000, transcript("", talk[:3]...))
	if d := describe(); d.Entries != 3 || d.Turns != 1 || d.Shown != 3 || d.First != day || d.Last != day || !strings.HasPrefix(d.Text, "3 messages in 1 turns, 2026-01-02 03:04 to 2026-01-02 03:04; 3 shown (0 ") {
		t.Errorf("of three: %+v", d)
	}
	host.now = day.Add(time.Hour)
	var res core.AssembleResult
	for n := 5; n <= len(talk); n += 2 {
		res = f.assemble(200, transcript("", talk[:n]...))
	}
	visible := len(slices.DeleteFunc(strings.Split(shown(res), " | "), func(s string) bool { return strings.HasPrefix(s, "[") }))
	d := describe()
	if d.Entries != 61 || d.Turns != 30 || d.First != day || d.Last != day.Add(2*time.Hour) || d.Shown != visible || d.Left != 61-visible || d.Left == 0 {
		t.Errorf("%d are shown: %+v", visible, d)
	}
	if want := fmt.Sprintf("61 messages in 30 turns, 2026-01-02 03:04 to 2026-01-02 05:04; %d shown (0 of them shortened), %d stored but not shown.\n", visible, 61-visible); d.Text != want {
		t.Errorf("it says %q, want %q", d.Text, want)
	}
	f.compact(200)
	f.assemble(200)
	d = describe()
	if len(d.Summaries) != 1 || d.Summaries[0].Head != "summary number 1" || d.Left != 0 || d.Shown+d.Summaries[0].Covers != 61 {
		t.Fatalf("after a compaction: %+v", d)
	}
	if want := fmt.Sprintf("- summary #%s of %d messages, %d tokens, 2026-01-02 04:04:\n", d.Summaries[0].ID, d.Summaries[0].Covers, d.Summaries[0].Tokens); !strings.Contains(d.Text, want) {
		t.Errorf("it says %q, want %q in it", d.Text, want)
	}
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("question 29").ID}})
	if d := describe(); d.Shown < 0 || d.Shown > d.Entries || d.Entries != 61 {
		t.Errorf("before the window is found anew: %+v", d)
	}
}

// TestExpandTotalOfNeighbours: the number of neighbours is that of those that there are and that may be shown, not of the places asked for.
func TestExpandTotalOfNeighbours(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("one"), assistant("two"))
	f.say(f.id, true, user("tick"))
	f.ingest(user("three"), assistant("four"))
	for _, c := range []struct{ before, after, total int }{{1, 1, 2}, {engine.MaxFound, engine.MaxFound, 4}, {0, 1, 2}, {2, 0, 2}} {
		res, err := f.engine.Expand(t.Context(), engine.ExpandRequest{Session: f.id, ID: "3", Before: c.before, After: c.after})
		if err != nil || res.Total != c.total || len(res.Found) != c.total {
			t.Errorf("%d before, %d after: %d of %d, error %v, want %d", c.before, c.after, len(res.Found), res.Total, err, c.total)
		}
	}
}
