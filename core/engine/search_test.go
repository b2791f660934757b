package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// search returns what a search finds, best first, as the first line of each.
func (f *fixture) search(req engine.SearchRequest) []string {
	f.t.Helper()
	if req.Session == (core.SessionID{}) {
		req.Session = f.id
	}
	res, err := f.engine.Search(f.t.Context(), req)
	if err != nil {
		f.t.Fatal(err)
	}
	out := []string{}
	for _, h := range res.Found {
		line, _, _ := strings.Cut(h.Excerpt, "\n")
		out = append(out, line)
	}
	return out
}

// TestSearchBounds: what a search may be asked is accepted up to its bounds, and anything beyond is refused and named.
func TestSearchBounds(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("the port is 8471"))
	word := "port "
	for name, c := range map[string]struct {
		req  engine.SearchRequest
		says string
	}{
		"as usual":         {engine.SearchRequest{Query: "port"}, ""},
		"nothing":          {engine.SearchRequest{Query: " \n"}, "query"},
		"a long query":     {engine.SearchRequest{Query: strings.Repeat(word, 16<<10/len(word))}, ""},
		"the longest":      {engine.SearchRequest{Query: strings.Repeat("p", 16<<10)}, ""},
		"too long":         {engine.SearchRequest{Query: strings.Repeat("p", 16<<10+1)}, "query"},
		"one entry":        {engine.SearchRequest{Query: "port", Limit: 1}, ""},
		"most entries":     {engine.SearchRequest{Query: "port", Limit: engine.MaxFound}, ""},
		"too many entries": {engine.SearchRequest{Query: "port", Limit: engine.MaxFound + 1}, "limit"},
		"fewer than none":  {engine.SearchRequest{Query: "port", Limit: -1}, "limit"},
		"negative offset":  {engine.SearchRequest{Query: "port", Offset: -1}, "offset"},
		"most tokens":      {engine.SearchRequest{Query: "port", Tokens: engine.MaxAnswer}, ""},
		"too many tokens":  {engine.SearchRequest{Query: "port", Tokens: engine.MaxAnswer + 1}, "tokens"},
		"negative tokens":  {engine.SearchRequest{Query: "port", Tokens: -1}, "tokens"},
		"too few tokens":   {engine.SearchRequest{Query: "port", Tokens: 1}, "tokens"},
	} {
		c.req.Session = f.id
		_, err := f.engine.Search(t.Context(), c.req)
		if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want that it names %q", name, err, c.says)
		}
	}
	if got := f.search(engine.SearchRequest{Query: "port", Offset: 1}); len(got) != 0 {
		t.Errorf("behind the last one: %q", got)
	}
}

// TestSearchByTime: a search between two times finds what was said from the first on and before the second.
func TestSearchByTime(t *testing.T) {
	for name, searcher := range map[string]core.Searcher{"read": nil, "indexed": &index{}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Searcher = searcher })
			day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
			for n := 1; n <= 4; n++ {
				m := user(fmt.Sprintf("report of day %d", n))
				m.Time = day(n)
				f.ingest(m, assistant("fine"))
			}
			for _, c := range []struct {
				from, to time.Time
				want     string
			}{
				{time.Time{}, time.Time{}, "4 3 2 1"}, {day(2), time.Time{}, "4 3 2"}, {time.Time{}, day(2), "1"}, {day(2), day(4), "3 2"}, {day(3), day(3), ""},
			} {
				got := f.search(engine.SearchRequest{Query: "report of", From: c.from, To: c.to})
				for i := range got {
					got[i] = got[i][len(got[i])-1:]
				}
				if searcher != nil {
					slices.Sort(got)
					slices.Reverse(got)
				}
				if s := strings.Join(got, " "); s != c.want {
					t.Errorf("from %v to %v: days %q, want %q", c.from, c.to, s, c.want)
				}
			}
		})
	}
}

// TestSearchShowsNewsFirst: among equals comes first what the window does not show, or shows shortened, and then what it shows, in its place, in front or quoted.
func TestSearchShowsNewsFirst(t *testing.T) {
	p := &proposer{}
	f := newFixture(t, func(_ *engine.Config, parts *engine.Parts) { parts.Retriever = p })
	host := []message.Message{message.New(message.System, "kestrel in the rules"), user("kestrel in the beginning"), assistant("noted"), user("kestrel in the past"), assistant("noted")}
	for n := range 40 {
		host = append(host, user(fmt.Sprintf("question %d of many words to fill the window", n)), assistant(fmt.Sprintf("answer %d of as many words as that", n)))
	}
	long := resulting("c", "kestrel in the result\n"+strings.Repeat("a line of it\n", 400))
	host = append(host, user("read it"), calling("c"), long, assistant("kestrel in the present"))
	f.assemble(600, transcript("now", host...))
	want := []string{"kestrel in the result", "kestrel in the past", "kestrel in the beginning", "kestrel in the present", "kestrel in the rules"}
	for _, query := range []string{"kestrel in", "kestrel in the", "KESTREL"} {
		if diff := cmp.Diff(want, ofKestrels(f.search(engine.SearchRequest{Query: query, Limit: engine.MaxFound}))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
	past := f.entry("kestrel in the past")
	p.candidates = []core.Candidate{{Entry: past, Score: 1, Source: "proposer"}}
	if got := shown(f.assemble(600, transcript("what of the past?", host...), full)); !strings.Contains(got, "kestrel in the past") {
		t.Fatalf("nothing is recalled: %q", got)
	}
	want = []string{"kestrel in the result", "kestrel in the beginning", "kestrel in the present", "kestrel in the past", "kestrel in the rules"}
	if diff := cmp.Diff(want, ofKestrels(f.search(engine.SearchRequest{Query: "kestrel in", Limit: engine.MaxFound}))); diff != "" {
		t.Errorf("when one is quoted (-want +got):\n%s", diff)
	}
}

// ofKestrels are the hits that are about them.
func ofKestrels(hits []string) []string {
	return slices.DeleteFunc(hits, func(s string) bool { return !strings.HasPrefix(s, "kestrel") })
}

// TestSearchFindsSummaries: a summary is found as long as what it stands for is, behind what the window does not show where it is shown.
func TestSearchFindsSummaries(t *testing.T) {
	f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.Recall.ResetHistory = false })
	f.ingest(user("give me a summary number"), assistant("which?"))
	for n := range 10 {
		f.ingest(user(fmt.Sprintf("question %d", n)), assistant(fmt.Sprintf("answer %d", n)))
	}
	f.assemble(1000)
	f.compact(60)
	f.assemble(1000)
	if diff := cmp.Diff([]string{"give me a summary number", "summary number 1"}, f.search(engine.SearchRequest{Query: "summary number"})); diff != "" {
		t.Errorf("one summary (-want +got):\n%s", diff)
	}
	for n := range 10 {
		f.ingest(user(fmt.Sprintf("question 1%d", n)), assistant(fmt.Sprintf("answer 1%d", n)))
	}
	f.compact(60)
	f.assemble(1000)
	if diff := cmp.Diff([]string{"summary number 1", "give me a summary number", "summary number 2"}, f.search(engine.SearchRequest{Query: "summary number"})); diff != "" {
		t.Errorf("two summaries, of which the second is shown (-want +got):\n%s", diff)
	}
	if other := f.search(engine.SearchRequest{Session: core.SessionID{Agent: "main", Session: "other"}, Query: "summary number"}); len(other) != 0 {
		t.Errorf("another session finds %q", other)
	}
	f.assemble(1000, transcript("", user("anew"), assistant("yes")))
	if got := f.search(engine.SearchRequest{Query: "summary number"}); len(got) != 0 {
		t.Errorf("after a reset: %q", got)
	}
}

// TestSearchAcrossSessions: with recall across sessions a search finds what any session of the agent says, its summaries too, and nothing of another agent.
func TestSearchAcrossSessions(t *testing.T) {
	for _, across := range []bool{true, false} {
		f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.Recall.AcrossSessions = across })
		f.ingest(user("kestrel, a summary number"), assistant("noted"))
		for n := range 10 {
			f.ingest(user(fmt.Sprintf("question %d", n)), assistant(fmt.Sprintf("answer %d", n)))
		}
		f.compact(60)
		for _, agent := range []string{"main", "other"} {
			want := []string{}
			if across && agent == "main" {
				want = []string{"kestrel, a summary number", "summary number 1"}
			}
			got := f.search(engine.SearchRequest{Session: core.SessionID{Agent: agent, Session: "another"}, Query: "summary number"})
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("across %t, agent %s (-want +got):\n%s", across, agent, diff)
			}
		}
	}
}

// index is a searcher that finds every entry with a word of the query, the oldest first; what hides it does not know of some.
type index struct {
	store core.Store
	hides string
	err   error
}

func (x *index) Attach(store core.Store) error { x.store = store; return nil }

func (x *index) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	if x.err != nil {
		return nil, x.err
	}
	var out []core.Hit
	for e, err := range core.All(ctx, x.store, q.Scope, false) {
		if err != nil {
			return nil, err
		}
		if e.Type.Hidden() || q.Exclude != nil && q.Exclude(e.ID) || x.hides != "" && strings.Contains(e.Text(), x.hides) ||
			!q.From.IsZero() && e.Time.Before(q.From) || !q.To.IsZero() && !e.Time.Before(q.To) {
			continue
		}
		if slices.ContainsFunc(strings.Fields(q.Text), func(w string) bool { return strings.Contains(e.Text(), w) }) && len(out) < q.Limit {
			out = append(out, core.Hit{Entry: e, Score: 1 / float64(len(out)+1)})
		}
	}
	return out, nil
}

// TestSearchAsksOn: what a searcher finds first may have been taken back, or be in the window already: what is neither is found all the same.
func TestSearchAsksOn(t *testing.T) {
	talk := func(what string, n int) (out []message.Message) {
		for i := range n {
			out = append(out, user(fmt.Sprintf("kestrel %s %d", what, i)), assistant(fmt.Sprintf("noted %s %d", what, i)))
		}
		return out
	}
	t.Run("taken back", func(t *testing.T) {
		f := newFixture(t, func(c *engine.Config, p *engine.Parts) { c.Recall.ResetHistory, p.Searcher = false, &index{} })
		f.assemble(1000, transcript("", talk("of before", 18)...))
		f.assemble(1000, transcript("", talk("of now", 2)...))
		if diff := cmp.Diff([]string{"kestrel of now 0"}, f.search(engine.SearchRequest{Query: "about the kestrel", Limit: 1})); diff != "" {
			t.Errorf("found (-want +got):\n%s", diff)
		}
	})
	t.Run("shown", func(t *testing.T) {
		f := newFixture(t, func(c *engine.Config, p *engine.Parts) { c.Recall.AcrossSessions, p.Searcher = true, &index{} })
		f.ingest(talk("in the window", 25)...)
		f.say(core.SessionID{Agent: "main", Session: "z"}, false, user("kestrel of elsewhere"), user("the other kestrel of elsewhere"))
		f.assemble(4000)
		want := []string{"kestrel of elsewhere", "the other kestrel of elsewhere", "kestrel in the window 0"}
		if diff := cmp.Diff(want, f.search(engine.SearchRequest{Query: "about the kestrel", Limit: 3})); diff != "" {
			t.Errorf("found (-want +got):\n%s", diff)
		}
	})
}

// TestSearchForIdentifiers: an identifier is found as it stands, also where the searcher does not know it; a searcher that cannot search is done without, and one
// that fails is an error.
func TestSearchForIdentifiers(t *testing.T) {
	fault := errors.New("no answer")
	x := &index{hides: "E-4711"}
	broken := &failing{Store: memory.New()}
	f := newFixture(t, func(c *engine.Config, p *engine.Parts) { c.Failure, p.Store, p.Searcher = engine.FailStrict, broken, x })
	f.ingest(user("the error is E-4711/b"), assistant("an error of that kind"), user("E-471 is another error"))
	for query, want := range map[string][]string{
		"E-4711/b":       {"the error is E-4711/b"},
		"e-4711/B":       {"the error is E-4711/b"},
		"E-471":          {"E-471 is another error"},
		"error E-4711/b": {"an error of that kind", "E-471 is another error"},
		"E-9":            {},
	} {
		if diff := cmp.Diff(want, f.search(engine.SearchRequest{Query: query})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
	broken.err = fault
	x.hides, x.err = "", nil
	x.store = broken.Store
	if _, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "E-9"}); !errors.Is(err, fault) {
		t.Errorf("a store that cannot be read: %v", err)
	}
	broken.err = nil
	x.err = fmt.Errorf("the index: %w", errors.ErrUnsupported)
	if diff := cmp.Diff([]string{"the error is E-4711/b"}, f.search(engine.SearchRequest{Query: "E-4711/b"})); diff != "" {
		t.Errorf("a searcher that cannot (-want +got):\n%s", diff)
	}
	x.err = fault
	if _, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "error"}); !errors.Is(err, fault) {
		t.Errorf("a searcher that fails: %v", err)
	}
}

// TestSearchSharesItsRoom: every entry of a page gets some of the room, a page costs no more than was asked for, says where a text goes on, and the pages together
// hold every hit once, also where fewer fit than were asked for.
func TestSearchSharesItsRoom(t *testing.T) {
	f := newFixture(t)
	for n := range 12 {
		f.ingest(user(fmt.Sprintf("kestrel number %d is here\n%s", n, strings.Repeat("and much more of it\n", 60))), assistant("noted"))
	}
	f.ingest(user("kestrel number 12 is short"))
	for _, tokens := range []int{40, 100, 250, 400, 1000} {
		seen, offset := map[string]bool{}, 0
		for page := 0; page == 0 || offset > 0; page++ {
			res, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "kestrel number", Limit: 4, Offset: offset, Tokens: tokens})
			if err != nil || page > 20 {
				t.Fatalf("page %d: %v", page, err)
			}
			if res.Tokens > tokens || res.Tokens != wordCounter(res.Text) {
				t.Errorf("a page of %d costs %d", tokens, res.Tokens)
			}
			if tokens >= 250 && len(res.Found) < 4 && res.Next > 0 {
				t.Errorf("a page of %d tokens has %d of 4", tokens, len(res.Found))
			}
			short, least, most := 0, tokens, 0
			for _, h := range res.Found {
				if n := wordCounter(h.Excerpt); !h.Whole {
					least, most = min(least, n), max(most, n)
				}
				if seen[h.ID] || !strings.Contains(h.Excerpt, "kestrel number") {
					t.Errorf("%q: twice, or not what was looked for", h.Excerpt)
				}
				seen[h.ID] = true
				if !h.Whole {
					short++
				}
				if long := wordCounter(h.Excerpt) < h.Tokens-5; long == h.Whole {
					t.Errorf("%d of %d tokens are shown, and it says that this is all: %t", wordCounter(h.Excerpt), h.Tokens, h.Whole)
				}
				if n := wordCounter(h.Excerpt); n > max(tokens/2, 64) {
					t.Errorf("%d of %d tokens are one entry's", n, tokens)
				}
			}
			if tokens >= 250 && most > 2*least {
				t.Errorf("of a page of %d tokens one entry has %d, another %d", tokens, most, least)
			}
			if n := strings.Count(res.Text, " ...\n"); n != short {
				t.Errorf("%d entries are shortened, the text says so of %d", short, n)
			}
			offset = res.Next
		}
		if len(seen) != 13 {
			t.Errorf("pages of %d tokens: %d entries, want 13", tokens, len(seen))
		}
	}
}

// TestSearchFindsWhatWasSaid: with a searcher or without one, no heartbeat is found, nothing that a client put in, and no answer of a search.
func TestSearchFindsWhatWasSaid(t *testing.T) {
	for name, searcher := range map[string]core.Searcher{"read": nil, "indexed": &index{}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Searcher = searcher })
			f.say(f.id, true, user("tick of the kestrel"))
			f.ingest(user("where is the kestrel?"), message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: "c", Name: core.ToolSearch, Args: `{"query":"kestrel"}`}}},
				message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: "c", Name: core.ToolSearch, Text: "the kestrel was found"}}})
			f.ingest(user("<system-reminder>\nThe kestrel is on the list of tasks.\n</system-reminder>"), assistant("the kestrel is here"))
			got := f.search(engine.SearchRequest{Query: "the kestrel"})
			slices.Sort(got)
			if diff := cmp.Diff([]string{"the kestrel is here", "where is the kestrel?"}, got); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSearchForWhatIsPartlyTakenBack: a summary is not found any more once one message of those that it stands for was taken back, by its own session or by
// one that was spawned later; where what was taken back is recalled, it is.
func TestSearchForWhatIsPartlyTakenBack(t *testing.T) {
	for _, told := range []bool{false, true} {
		for _, agent := range []string{"main", "helper"} {
			for what, kept := range map[string]int{"all": 0, "one": 7, "none": 8} {
				t.Run(fmt.Sprintf("%s, %s, %t", what, agent, told), func(t *testing.T) {
					f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.Recall.ResetHistory = told })
					var host []message.Message
					for n := range 5 {
						host = append(host, user(fmt.Sprintf("question %d", n)), assistant(fmt.Sprintf("answer %d", n)))
					}
					f.assemble(1000, transcript("", host...))
					f.compact(40)
					d, err := f.engine.Describe(t.Context(), engine.DescribeRequest{Session: f.id})
					if err != nil || len(d.Summaries) != 1 || d.Summaries[0].Covers != 8 {
						t.Fatalf("%+v, %v", d, err)
					}
					f.assemble(1000, transcript("", append(host[:kept:kept], user("another way"), assistant("so be it"))...))
					child := core.SessionID{Agent: agent, Session: "child"}
					if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, TTL: time.Hour}); err != nil {
						t.Fatal(err)
					}
					for _, id := range []core.SessionID{f.id, child} {
						got := f.search(engine.SearchRequest{Session: id, Query: "summary number"})
						if found := slices.Contains(got, "summary number 1"); found != (told || what == "none") {
							t.Errorf("%s finds %q", id, got)
						}
					}
				})
			}
		}
	}
}

// TestSearchAsItStands: entries that hold a query byte for byte come before those in which only the case differs, also where an index finds enough of those.
func TestSearchAsItStands(t *testing.T) {
	for name, searcher := range map[string]core.Searcher{"read": nil, "indexed": &index{}, "unknown to the index": &index{hides: "ERR_Boat again"}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Searcher = searcher })
			for n := range 30 {
				if n == 15 {
					f.ingest(user("ERR_Boat again"), assistant("the Boat again"))
				}
				f.ingest(user(fmt.Sprintf("err_boat again %d", n)), assistant(fmt.Sprintf("the boat again %d", n)))
			}
			for query, want := range map[string]string{"ERR_Boat": "ERR_Boat again", "the Boat again": "the Boat again"} {
				if got := f.search(engine.SearchRequest{Query: query, Limit: engine.MaxFound}); len(got) == 0 || got[0] != want {
					t.Errorf("%q finds %d, the first of them %.100q", query, len(got), got)
				}
			}
			if got := f.search(engine.SearchRequest{Query: "ERR_Boat", Limit: 1}); len(got) != 1 || got[0] != "ERR_Boat again" {
				t.Errorf("a page of one: %q", got)
			}
			if got := f.search(engine.SearchRequest{Query: "err_BOAT"}); len(got) == 0 && searcher == nil {
				t.Error("what differs in case alone is not found")
			}
		})
	}
}

// hasty is a searcher that goes on without the one that knows.
type hasty struct {
	found []core.Hit
}

func (h hasty) Search(context.Context, core.SearchQuery) ([]core.Hit, error) {
	return h.found, fmt.Errorf("hasty: %w: the remote has not answered yet", core.ErrPartial)
}

// TestSearchWithoutTheSlowest: what a searcher does not wait for is found all the same, beside what it found.
func TestSearchWithoutTheSlowest(t *testing.T) {
	h := &hasty{}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Searcher = h })
	talk(f, 12)
	f.ingest(user("a heron stood there"))
	for entry, err := range core.All(t.Context(), f.store, f.id.Scope(), true) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(entry.Text(), "heron") {
			h.found = []core.Hit{{Entry: entry, Score: 1}}
		}
	}
	if got := f.search(engine.SearchRequest{Query: "question 7 about topic7", Limit: 3}); len(got) != 3 || got[0] != "question 7 about topic7" || !slices.Contains(got, "a heron stood there") {
		t.Errorf("found %q", got)
	}
}
