package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// unseen is an entry that no answer may show, and why.
type unseen struct {
	entry core.Entry
	why   string
}

// scriptHidden looks for heartbeats, and for what was erased, reset or forked away.
func scriptHidden(s *script) string {
	r, _ := s.engine.(engine.Recaller)
	said, text := s.talk(s.id, 4, 3)
	if text != "" {
		return text
	}
	for _, role := range []message.Role{message.User, message.Assistant} {
		if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: s.message(role, "the budget report of the timer"), Heartbeat: true}); err != nil {
			return fmt.Sprintf("ingest: error %v", err)
		}
	}
	after, text := s.talk(s.id, 2, 3)
	if text != "" {
		return text
	}
	var hidden []unseen
	for _, e := range s.held(s.id) {
		if e.Type == core.TypeHeartbeat {
			hidden = append(hidden, unseen{e, "a heartbeat"})
		}
	}
	if f, ok := s.engine.(engine.Forgetter); ok {
		if _, err := f.Forget(s.ctx(), engine.ForgetRequest{Scope: s.id.Scope(), Entries: []string{said[3].ID}}); err != nil {
			return fmt.Sprintf("forget: error %v", err)
		}
		hidden = append(hidden, unseen{said[3], "erased"})
	}
	away, text := s.takenBack(r)
	if text != "" {
		return text
	}
	for _, h := range append(hidden, away...) {
		if text := s.findsNothing(r, h); text != "" {
			return text
		}
	}
	if s.restarts() {
		s.reopen(true)
		r, _ = s.engine.(engine.Recaller)
		for i, h := range append(hidden, away...) {
			if text := s.findsNothing(r, h); i%2 == 0 && text != "" {
				return "after a restart: " + text
			}
		}
	}
	around, err := r.Expand(s.ctx(), engine.ExpandRequest{Session: s.id, ID: after[0].ID, Before: 6, After: 1, Tokens: engine.MaxAnswer})
	if err != nil || !slices.ContainsFunc(around.Found, func(f engine.Found) bool { return f.ID == after[0].ID }) {
		return fmt.Sprintf("expand with neighbours: %d entries, error %v", len(around.Found), err)
	}
	for _, h := range hidden {
		if shows(around.Found, around.Text, h.entry) {
			return fmt.Sprintf("an entry expanded with its neighbours shows %q, %s", h.entry.ID, h.why)
		}
	}
	return s.summaryTakenBack()
}

// takenBack lets a host take messages back in two ways, and begin its transcript later in a third, which takes nothing back.
func (s *script) takenBack(r engine.Recaller) ([]unseen, string) {
	var out []unseen
	for _, c := range []struct {
		why   string
		keep  [2]int // what stays of six messages
		front bool   // the new ones stand in front
		whole bool
	}{
		{"forked away", [2]int{0, 2}, false, false}, {"forked away", [2]int{0, 2}, false, true}, {"reset", [2]int{0, 0}, false, true},
		{"replaced", [2]int{2, 6}, true, true}, {"", [2]int{2, 6}, false, false},
	} {
		id := core.SessionID{Agent: "agent-a", Session: fmt.Sprintf("%s %v %v", c.why, c.keep, c.whole)}
		t := s.transcript(6)
		now := &core.Transcript{Messages: slices.Clone(t.Messages[c.keep[0]:c.keep[1]]), Whole: c.whole}
		if more := s.transcript(2).Messages; c.front {
			now.Messages = slices.Concat(more, now.Messages)
		} else {
			now.Messages = append(now.Messages, more...)
		}
		for _, transcript := range []*core.Transcript{t, now} {
			if _, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: 8000, Transcript: transcript}); err != nil {
				return nil, fmt.Sprintf("assemble: error %v", err)
			}
		}
		in := slices.Concat(t.Messages[c.keep[0]:c.keep[1]], now.Messages)
		if c.why == "" {
			in = slices.Concat(t.Messages, now.Messages)
		}
		var there []core.Entry
		var gone []unseen
		for _, e := range s.held(id) {
			if slices.ContainsFunc(in, func(m message.Message) bool { return m.Text() == e.Text() }) {
				there = append(there, e)
			} else {
				gone = append(gone, unseen{e, c.why})
			}
		}
		if !s.comb.ResetHistory {
			out = append(out, gone[:min(len(gone), 2)]...)
		}
		d, err := r.Describe(s.ctx(), engine.DescribeRequest{Session: id})
		if err != nil || c.why != "" && d.Entries != len(there) {
			return nil, fmt.Sprintf("describe of a session of which a part is %s: %d entries, error %v, want the %d in force", c.why, d.Entries, err, len(there))
		}
		for _, e := range there[:min(len(there), 2)] {
			res, err := r.Search(s.ctx(), engine.SearchRequest{Session: id, Query: marksIn(e.Text())[0], Limit: engine.MaxFound})
			if err != nil || !shows(res.Found, res.Text, e) {
				return nil, fmt.Sprintf("search for an entry in force finds %d, and not that one, error %v (whole: %v, kept: %v)", len(res.Found), err, c.whole, c.keep)
			}
		}
		if c.front || s.comb.ResetHistory {
			continue // where positions are not in the order of the conversation, or all of them are shown
		}
		for _, at := range []int{0, len(there) - 1} {
			if text := s.inOneRow(r, there, at, 6); text != "" {
				return nil, fmt.Sprintf("where messages are %s: %s", cmp.Or(c.why, "not shown by a host"), text)
			}
		}
	}
	return out, ""
}

// shows reports whether an answer shows an entry: as one that was found, or in its text.
func shows(found []engine.Found, text string, e core.Entry) bool {
	mark := marksIn(e.Text())[0]
	return strings.Contains(text, mark) || slices.ContainsFunc(found, func(f engine.Found) bool { return f.ID == e.ID || strings.Contains(f.Excerpt, mark) })
}

// findsNothing asks for an entry in every way there is.
func (s *script) findsNothing(r engine.Recaller, h unseen) string {
	id := h.entry.SessionID()
	for _, query := range []string{marksIn(h.entry.Text())[0], h.entry.Text(), "the budget report from the transcript"} {
		res, err := r.Search(s.ctx(), engine.SearchRequest{Session: id, Query: query, Limit: engine.MaxFound, Tokens: engine.MaxAnswer})
		if err != nil || shows(res.Found, quotedIn(res.Text), h.entry) {
			return fmt.Sprintf("search for %.40q finds %d entries, error %v; %q, %s, is among them: %v", query, len(res.Found), err, h.entry.ID, h.why, err == nil)
		}
	}
	for _, name := range []string{h.entry.ID, fmt.Sprintf("#%d", h.entry.Seq)} {
		for _, before := range []int{0, 1} {
			res, err := r.Expand(s.ctx(), engine.ExpandRequest{Session: id, ID: name, Before: before})
			if !errors.Is(err, core.ErrNotFound) || len(res.Found) > 0 || res.Text != "" {
				return fmt.Sprintf("expand of %q, %s: %d entries, error %v, want ErrNotFound", name, h.why, len(res.Found), err)
			}
		}
	}
	return ""
}

// quotedIn returns the quotations in a text: what stands between them may repeat what was asked.
func quotedIn(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, ">") }), "\n")
}

// cites looks whether a text for a model names every entry that it quotes: by "#" and the id or, in the session that asks, the position.
func cites(asker core.SessionID, found []engine.Found, text string) string {
	for _, f := range found {
		names := []string{f.ID}
		if f.Session == asker.Session {
			names = append(names, fmt.Sprint(f.Seq))
		}
		named := slices.ContainsFunc(names, func(name string) bool {
			for rest := text; ; {
				at := strings.Index(rest, "#"+name)
				if at < 0 {
					return false
				}
				if rest = rest[at+1+len(name):]; rest == "" || !entryIDs.MatchString(rest[:1]) {
					return true
				}
			}
		})
		if !named {
			return fmt.Sprintf("the text quotes entry %q, at %d, without a citation that finds it: %.200q", f.ID, f.Seq, text)
		}
	}
	return ""
}

// alikeButCase are queries that one entry holds as it stands, and others in another case.
var alikeButCase = []string{"ERR_Boat", "src/Kestrel.go", "The Granite Ferry"}

// scriptFound looks at the order, the bounds and the numbers of searches.
func scriptFound(s *script) string {
	r, _ := s.engine.(engine.Recaller)
	want := map[string]string{}
	for n := range 7 {
		for _, query := range alikeButCase {
			says := strings.ToLower(query)
			if n == 3 {
				says = query
			}
			res, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: s.message([]message.Role{message.User, message.Assistant}[n%2], says)})
			if err != nil || len(res.IDs) != 1 {
				return fmt.Sprintf("ingest: %+v, error %v", res, err)
			}
			if n == 3 {
				want[query] = res.IDs[0]
			}
		}
	}
	for _, query := range alikeButCase {
		for _, limit := range []int{1, 0} {
			res, err := r.Search(s.ctx(), engine.SearchRequest{Session: s.id, Query: query, Limit: limit})
			if err != nil || len(res.Found) == 0 || res.Found[0].ID != want[query] {
				return fmt.Sprintf("search for %q finds %d entries, error %v; the first is not %q, which alone says that as it stands: %+v", query, len(res.Found), err, want[query], res.Found)
			}
		}
	}
	id := sessionOf(2)
	entries, text := s.talk(id, 20, 100)
	if text != "" {
		return text
	}
	res, err := r.Search(s.ctx(), engine.SearchRequest{Session: id, Query: "budget report"})
	if err != nil || len(res.Found) == 0 || len(res.Found) > engine.DefaultFound || res.Tokens > engine.DefaultAnswer || res.Next == 0 {
		return fmt.Sprintf("search without a limit finds %d of %d entries in %d tokens, goes on at %d, error %v; the limits are %d and %d", len(res.Found), len(entries), res.Tokens, res.Next, err, engine.DefaultFound, engine.DefaultAnswer)
	}
	for _, c := range []struct{ from, to, want int }{{12, -1, 8}, {-1, 5, 5}, {7, 8, 1}} {
		req := engine.SearchRequest{Session: id, Query: "budget report", Limit: engine.MaxFound, Tokens: engine.MaxAnswer}
		found := 0
		if c.from >= 0 {
			req.From = entries[c.from].Time
		}
		if c.to >= 0 {
			req.To = entries[c.to].Time
		}
		for {
			res, err := r.Search(s.ctx(), req)
			if found += len(res.Found); err != nil || found > c.want || len(res.Found) == 0 {
				return fmt.Sprintf("search from entry %d to entry %d (-1 is without a bound) finds %d of %d entries, error %v, want %d", c.from, c.to, found, len(entries), err, c.want)
			}
			if req.Offset = res.Next; res.Next == 0 {
				break
			}
		}
		if found != c.want {
			return fmt.Sprintf("search from entry %d to entry %d (-1 is without a bound) finds %d of %d entries, want %d", c.from, c.to, found, len(entries), c.want)
		}
	}
	return inTurn(func() string { return s.foundToTheEnd(r, id, entries) }, func() string { return s.oddQueries(r) }, func() string { return s.foundByAll(r) })
}

// oddlyWritten are what people look for as it stands. Each has a meaning in some language of queries.
var oddlyWritten = []string{`C:\tmp\new*.go`, `"quoted" (a|b`, "50%_off", "-flag", "o'neill", "NOT harbour", "title:kestrel^2", "[a-z]+", "lantern AND", "{$ne: 1}"}

// oddQueries looks for what means something to a database, in what somebody said and in what a tool answered.
func (s *script) oddQueries(r engine.Recaller) string {
	id := core.SessionID{Agent: "agent-odd", Session: "oddly written"}
	for n, says := range oddlyWritten {
		m := s.message(message.User, "look at "+says+" here")
		if n%2 == 1 {
			call := s.message(message.Assistant, "looks")
			call.Parts = append(call.Parts, message.Part{Kind: message.ToolCall, CallID: fmt.Sprintf("call_%d", n), Name: "look", Args: "{}"})
			if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: call}); err != nil {
				return fmt.Sprintf("ingest: error %v", err)
			}
			text := m.Text()
			m = s.message(message.Tool, "")
			m.Parts = []message.Part{{Kind: message.ToolResult, CallID: fmt.Sprintf("call_%d", n), Name: "look", Text: text}}
		}
		if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: m}); err != nil {
			return fmt.Sprintf("ingest: error %v", err)
		}
	}
	for _, query := range oddlyWritten {
		res, err := r.Search(s.ctx(), engine.SearchRequest{Session: id, Query: query})
		if err != nil || len(res.Found) == 0 || !strings.Contains(res.Found[0].Excerpt, query) {
			return fmt.Sprintf("search for %q finds %d entries, error %v, and not first what says that: %+v", query, len(res.Found), err, res.Found)
		}
	}
	return ""
}

// scriptNeighbours expands an entry with as many neighbours as may be asked for, page by page.
func scriptNeighbours(s *script) string {
	r, _ := s.engine.(engine.Recaller)
	list := s.transcript(2*engine.MaxFound + 8).Messages
	if e, ok := s.engine.(core.BatchIngester); ok {
		if _, err := e.IngestBatch(s.ctx(), core.IngestBatchRequest{Session: s.id, Messages: list}); err != nil {
			return fmt.Sprintf("ingest batch: error %v", err)
		}
	} else {
		for _, m := range list {
			if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: m}); err != nil {
				return fmt.Sprintf("ingest: error %v", err)
			}
		}
	}
	entries := s.held(s.id)
	if len(entries) != len(list) {
		return fmt.Sprintf("of %d messages %d are stored", len(list), len(entries))
	}
	long, text := s.talk(sessionOf(2), 1, 900)
	if text != "" {
		return text
	}
	if page, err := r.Expand(s.ctx(), engine.ExpandRequest{Session: sessionOf(2), ID: long[0].ID}); err != nil || page.Next == 0 || page.Tokens > engine.DefaultAnswer {
		return fmt.Sprintf("a long entry expanded without a bound: %d tokens, it goes on at %d, error %v; the bound is then %d", page.Tokens, page.Next, err, engine.DefaultAnswer)
	}
	last := len(entries) - 1
	for _, c := range []struct{ at, before, after, tokens int }{
		{engine.MaxFound + 3, engine.MaxFound, engine.MaxFound, 1000}, {20, 7, 0, engine.MaxAnswer}, {20, 0, 9, engine.MaxAnswer}, {2, engine.MaxFound, 1, engine.MaxAnswer}, {last - 1, 1, engine.MaxFound, engine.MaxAnswer},
	} {
		want := entries[max(c.at-c.before, 0):min(c.at+c.after+1, len(entries))]
		req := engine.ExpandRequest{Session: s.id, ID: entries[c.at].ID, Before: c.before, After: c.after, Tokens: c.tokens}
		got := 0
		for {
			page, err := r.Expand(s.ctx(), req)
			if err != nil || len(page.Found) == 0 || page.Total != len(want) || got+len(page.Found) > len(want) {
				return fmt.Sprintf("entry %d of %d with %d before and %d after, from %d on: %d of %d, error %v, want %d in all", c.at, len(entries), c.before, c.after, got, len(page.Found), page.Total, err, len(want))
			}
			for i, f := range page.Found {
				if f.ID != want[got+i].ID {
					return fmt.Sprintf("entry %d of %d with %d before and %d after: number %d is at %d, want %d", c.at, len(entries), c.before, c.after, got+i, f.Seq, want[got+i].Seq)
				}
			}
			if text := s.trueText(s.id, page.Found, page.Text, page.Tokens, c.tokens); text != "" {
				return "expand with neighbours: " + text
			}
			got += len(page.Found)
			if req.Offset = page.Next; page.Next == 0 {
				break
			}
		}
		if got != len(want) {
			return fmt.Sprintf("entry %d of %d with %d before and %d after: %d are shown, want %d", c.at, len(entries), c.before, c.after, got, len(want))
		}
	}
	return ""
}

// inTheirOrder compacts a session that has room for more than one summary, and looks at the order in which they are listed, and each of them expanded.
func (s *script) inTheirOrder(r engine.Recaller) string {
	const budget = 2500
	id := core.SessionID{Agent: "agent-a", Session: "in their order"}
	for range 2 {
		if _, text := s.talk(id, 24, 25); text != "" {
			return text
		}
		if _, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: budget}); err != nil {
			return fmt.Sprintf("assemble: error %v", err)
		}
		if _, err := s.engine.Compact(s.ctx(), core.CompactRequest{Session: id, Budget: budget, Force: true}); err != nil {
			return fmt.Sprintf("compact: error %v", err)
		}
	}
	d, err := r.Describe(s.ctx(), engine.DescribeRequest{Session: id})
	if err != nil {
		return fmt.Sprintf("describe: error %v", err)
	}
	newest := int64(-1) // the position up to which the summaries so far stand for entries
	for n, sum := range d.Summaries {
		req := engine.ExpandRequest{Session: id, ID: sum.ID, Tokens: 1000}
		for covers := 0; ; {
			page, err := r.Expand(s.ctx(), req)
			if err != nil || len(page.Found) == 0 || page.Total != sum.Covers {
				return fmt.Sprintf("summary %d of %d, for %d entries, expands to %d of %d, error %v", n+1, len(d.Summaries), sum.Covers, len(page.Found), page.Total, err)
			}
			for _, f := range page.Found {
				if f.Seq <= newest {
					return fmt.Sprintf("describe lists the oldest summary first, and each is expanded from its oldest entry on; in number %d of %d the entry at %d comes behind the one at %d", n+1, len(d.Summaries), f.Seq, newest)
				}
				newest = f.Seq
			}
			covers += len(page.Found)
			if req.Offset = page.Next; page.Next > 0 {
				continue
			}
			if covers != sum.Covers {
				return fmt.Sprintf("summary %d of %d stands for %d entries, and expands to %d", n+1, len(d.Summaries), sum.Covers, covers)
			}
			break
		}
	}
	return s.givenBack(r, id, d)
}

// givenBack erases all that the newest of several summaries stands for, and all behind it, so that what an earlier one stands for has to be shown again: each entry is
// shown, left, or stood for.
func (s *script) givenBack(r engine.Recaller, id core.SessionID, d engine.DescribeResult) string {
	f, ok := s.engine.(engine.Forgetter)
	if n := len(d.Summaries); !ok || n < 2 || len(d.Summaries[n-1].Of) == 0 {
		return ""
	}
	var gone []string
	for _, e := range s.held(id) {
		if e.Type == core.TypeMessage && e.Seq >= d.Summaries[len(d.Summaries)-1].Of[0].From {
			gone = append(gone, e.ID)
		}
	}
	if _, err := f.Forget(s.ctx(), engine.ForgetRequest{Scope: id.Scope(), Entries: gone}); err != nil {
		return fmt.Sprintf("forget: error %v", err)
	}
	for range 2 {
		if _, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: 2500}); err != nil {
			return fmt.Sprintf("assemble after the newest entries were erased: error %v", err)
		}
		d, err := r.Describe(s.ctx(), engine.DescribeRequest{Session: id})
		if err != nil {
			return fmt.Sprintf("describe: error %v", err)
		}
		there := d.Shown + d.Left
		for _, sum := range d.Summaries {
			there += sum.Covers
		}
		if there != d.Entries {
			return fmt.Sprintf("all that the newest summary stood for, and all behind it, was erased; of %d entries %d are shown, left, or stood for: %+v", d.Entries, there, d)
		}
		if _, text := s.talk(id, 2, 25); text != "" {
			return text
		}
	}
	return ""
}
