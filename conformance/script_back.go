package conformance

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// trueFound compares what an answer shows of an entry with what is stored.
func (s *script) trueFound(f engine.Found, e core.Entry) string {
	switch {
	case f.ID != e.ID, f.Session != e.Session, f.Turn != e.Turn, f.Seq != e.Seq, f.Role != e.Role, f.Type != e.Type, !f.Time.Equal(e.Time), f.Tokens != e.Tokens:
		return fmt.Sprintf("the answer shows %+v of the entry %q (session %q, turn %d, seq %d, %s, %s, %v, %d tokens)", f, e.ID, e.Session, e.Turn, e.Seq, e.Role, e.Type, e.Time, e.Tokens)
	case !strings.Contains(e.Text(), strings.TrimSpace(strings.Trim(f.Excerpt, "… "))) && !strings.Contains(f.Excerpt, "…"):
		return fmt.Sprintf("the excerpt of %q is %.80q, it says %.80q", e.ID, f.Excerpt, e.Text())
	case f.Whole != (strings.TrimSpace(f.Excerpt) == strings.TrimSpace(e.Text())):
		return fmt.Sprintf("the excerpt of %q is whole: %v, it has %d of %d bytes", e.ID, f.Whole, len(f.Excerpt), len(e.Text()))
	}
	return ""
}

// trueText looks at the text for a model: every line of an entry is quoted, and every entry is cited.
func (s *script) trueText(asker core.SessionID, found []engine.Found, text string, tokens, bound int) string {
	if n := s.env.Count(text); n != tokens || n > bound {
		return fmt.Sprintf("the text costs %d tokens, the answer says %d, the bound is %d", n, tokens, bound)
	}
	for line := range strings.SplitSeq(text, "\n") {
		if len(marksIn(line)) > 0 && !strings.HasPrefix(line, ">") {
			return fmt.Sprintf("the text holds a line of an entry that is not quoted: %.80q", line)
		}
	}
	return cites(asker, found, text)
}

func scriptBack(s *script) string {
	r, _ := s.engine.(engine.Recaller)
	entries, text := s.talk(s.id, 10, 6)
	if text != "" {
		return text
	}
	byID := map[string]core.Entry{}
	for _, e := range entries {
		byID[e.ID] = e
	}
	for _, limit := range []int{1, 3, engine.MaxFound} {
		seen := map[string]bool{}
		score := math.Inf(1)
		req := engine.SearchRequest{Session: s.id, Query: "budget report", Limit: limit, Tokens: engine.MaxAnswer}
		for range len(entries) + 2 {
			res, err := r.Search(s.ctx(), req)
			if err != nil || len(res.Found) > limit {
				return fmt.Sprintf("search: %d found with a limit of %d, error %v", len(res.Found), limit, err)
			}
			for _, f := range res.Found {
				if seen[f.ID] {
					return fmt.Sprintf("search in pages of %d finds %q twice", limit, f.ID)
				}
				seen[f.ID] = true
				if f.Score > score {
					return fmt.Sprintf("search in pages of %d finds %q with score %v after one with %v", limit, f.ID, f.Score, score)
				}
				score = f.Score
				if text := s.trueFound(f, byID[f.ID]); text != "" {
					return "search: " + text
				}
			}
			if text := s.trueText(s.id, res.Found, res.Text, res.Tokens, engine.MaxAnswer); text != "" {
				return "search: " + text
			}
			if len(res.Found) == 0 && req.Offset > 0 {
				return fmt.Sprintf("search in pages of %d says that there is more at %d, and finds nothing there", limit, req.Offset)
			}
			if req.Offset = res.Next; res.Next == 0 {
				break
			}
		}
		if len(seen) != len(entries) {
			return fmt.Sprintf("search in pages of %d finds %d of %d entries", limit, len(seen), len(entries))
		}
	}
	res, err := r.Search(s.ctx(), engine.SearchRequest{Session: s.id, Query: "budget report", From: entries[2].Time, To: entries[5].Time, Limit: engine.MaxFound})
	if err != nil || len(res.Found) != 3 {
		return fmt.Sprintf("search in the time of 3 entries finds %d, error %v", len(res.Found), err)
	}
	if text := s.backExpand(r, entries); text != "" {
		return text
	}
	small, err := r.Search(s.ctx(), engine.SearchRequest{Session: s.id, Query: "budget report", Limit: engine.MaxFound, Tokens: 150})
	if err != nil {
		return fmt.Sprintf("search: error %v", err)
	}
	if text := s.trueText(s.id, small.Found, small.Text, small.Tokens, 150); text != "" {
		return "search bounded to 150 tokens: " + text
	}
	if text := s.backPages(r); text != "" {
		return text
	}
	if text := inTurn(func() string { return s.described(r) }, func() string { return s.describedAnew(r) }); text != "" {
		return text
	}
	shown, err := s.assemble(8000, nil)
	if err != nil {
		return fmt.Sprintf("assemble: error %v", err)
	}
	entries = s.held(s.id)
	d, err := r.Describe(s.ctx(), engine.DescribeRequest{Session: s.id})
	if err != nil {
		return fmt.Sprintf("describe: error %v", err)
	}
	if d.Session != s.id || d.Entries != len(entries) || d.Turns != 6 || d.Epoch != shown.Epoch || d.Shown != len(entries) || d.Left != 0 || d.Budget != 8000 || !d.First.Equal(entries[0].Time) || !d.Last.Equal(entries[len(entries)-1].Time) || d.Text == "" || d.Tokens != s.env.Count(d.Text) ||
		d.Shortened != 0 || len(d.Summaries) != 0 {
		return fmt.Sprintf("describe of %d entries in 6 turns, all shown, from %v to %v, epoch %d: %+v", len(entries), entries[0].Time, entries[len(entries)-1].Time, shown.Epoch, d)
	}
	return s.handedBackFound(r)
}

// backPages expands one long entry page by page.
func (s *script) backPages(r engine.Recaller) string {
	long, text := s.talk(s.id, 1, 120)
	if text != "" {
		return text
	}
	var whole strings.Builder
	req := engine.ExpandRequest{Session: s.id, ID: long[0].ID, Tokens: 200}
	for n := 0; ; n++ {
		page, err := r.Expand(s.ctx(), req)
		if err != nil || len(page.Found) != 1 || n > 100 || page.Total != len(long[0].Text()) {
			return fmt.Sprintf("page %d of an entry: %d entries, %d bytes in all, error %v, want %d", n+1, len(page.Found), page.Total, err, len(long[0].Text()))
		}
		if text := s.trueText(s.id, page.Found, page.Text, page.Tokens, 200); text != "" {
			return fmt.Sprintf("page %d of an entry: %s", n+1, text)
		}
		whole.WriteString(page.Found[0].Excerpt)
		if req.Offset = page.Next; page.Next == 0 {
			break
		}
	}
	if d := differText("the text", whole.String(), long[0].Text()); d != "" {
		return "an entry read page by page: " + d
	}
	res, err := r.Search(s.ctx(), engine.SearchRequest{Session: s.id, Query: marksIn(long[0].Text())[0], Tokens: 200})
	if err != nil {
		return fmt.Sprintf("search for an entry that is longer than the answer: error %v", err)
	}
	for _, f := range res.Found {
		if f.ID != long[0].ID {
			continue
		}
		if text := s.trueFound(f, long[0]); text != "" {
			return "search for an entry that is longer than the answer: " + text
		}
	}
	return s.backOrder(r)
}

// backOrder searches for words that several entries hold, and one of them, neither the oldest nor the newest, as they are asked for.
func (s *script) backOrder(r engine.Recaller) string {
	id := core.SessionID{Agent: "agent-a", Session: "in order"}
	const query = "granite ferry timetable"
	want := ""
	for n, says := range []string{"the ferry brought granite", "no timetable for the ferry", query + " of May", "granite, says the timetable", "the granite ferry sails"} {
		res, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: s.message([]message.Role{message.User, message.Assistant}[n%2], says)})
		if err != nil || len(res.IDs) != 1 {
			return fmt.Sprintf("ingest: %+v, error %v", res, err)
		}
		if strings.HasPrefix(says, query) {
			want = res.IDs[0]
		}
	}
	res, err := r.Search(s.ctx(), engine.SearchRequest{Session: id, Query: query, Limit: engine.MaxFound})
	if err != nil || len(res.Found) == 0 || res.Found[0].ID != want {
		return fmt.Sprintf("search for %q finds %d entries, error %v; the first is not %q, which says just that: %+v", query, len(res.Found), err, want, res.Found)
	}
	return ""
}

func (s *script) backExpand(r engine.Recaller, entries []core.Entry) string {
	for _, e := range entries[3:5] {
		for _, id := range []string{e.ID, "#" + e.ID, fmt.Sprint(e.Seq), fmt.Sprintf("#%d", e.Seq)} {
			res, err := r.Expand(s.ctx(), engine.ExpandRequest{Session: s.id, ID: id, Tokens: engine.MaxAnswer})
			if err != nil || len(res.Found) != 1 || res.Total != len(e.Text()) || res.Next != 0 || res.Found[0].Excerpt != e.Text() {
				return fmt.Sprintf("expand of %q: %+v, error %v, want all %d bytes", id, res, err, len(e.Text()))
			}
			if text := s.trueFound(res.Found[0], e); text != "" {
				return "expand: " + text
			}
			if text := s.trueText(s.id, res.Found, res.Text, res.Tokens, engine.MaxAnswer); text != "" {
				return "expand: " + text
			}
		}
	}
	e := entries[4]
	res, err := r.Expand(s.ctx(), engine.ExpandRequest{Session: s.id, ID: e.ID, Before: 2, After: 1, Tokens: engine.MaxAnswer})
	if err != nil || len(res.Found) != 4 || res.Total != 4 {
		return fmt.Sprintf("expand with 2 before and 1 after: %d entries of %d, error %v, want 4", len(res.Found), res.Total, err)
	}
	for i, f := range res.Found {
		if f.ID != entries[2+i].ID {
			return fmt.Sprintf("expand with neighbours shows %q at %d, want %q", f.ID, i, entries[2+i].ID)
		}
	}
	for _, id := range []string{"nobody", "99"} {
		if res, err := r.Expand(s.ctx(), engine.ExpandRequest{Session: s.id, ID: id}); !errors.Is(err, core.ErrNotFound) {
			return fmt.Sprintf("expand of the unknown %q: %d entries, error %v, want ErrNotFound", id, len(res.Found), err)
		}
	}
	for _, stranger := range []core.SessionID{sessionOf(2), {Agent: s.id.Agent, Session: "another"}} {
		if s.comb.AcrossSessions && stranger.Agent == s.id.Agent {
			continue
		}
		others, text := s.talk(stranger, 1, 3)
		if text != "" {
			return text
		}
		for _, of := range []struct{ from, to core.Entry }{{others[0], e}, {e, others[0]}} {
			for _, id := range []string{of.to.ID, "#" + of.to.ID} {
				res, err := r.Expand(s.ctx(), engine.ExpandRequest{Session: of.from.SessionID(), ID: id})
				if !errors.Is(err, core.ErrNotFound) || len(res.Found) > 0 || res.Text != "" {
					return fmt.Sprintf("session %s expands %q of session %s: %d entries, error %v, want ErrNotFound", of.from.SessionID(), id, of.to.SessionID(), len(res.Found), err)
				}
			}
		}
	}
	return ""
}

// reaches reports whether a search from a session finds an entry of the parent.
func (s *script) reaches(id core.SessionID, mark string) bool {
	if r, ok := s.engine.(engine.Recaller); ok {
		res, err := r.Search(s.ctx(), engine.SearchRequest{Session: id, Query: mark, Limit: engine.MaxFound})
		return err == nil && slices.ContainsFunc(res.Found, func(f engine.Found) bool { return strings.Contains(f.Excerpt, mark) })
	}
	return false
}

// startsFrom looks at what a subagent's first prompt shows: all of the parent's conversation where it is forked, nothing of it where it is not.
func (s *script) startsFrom(id core.SessionID, mark string, mode core.SpawnMode) string {
	if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: s.message(message.User, "begin")}); err != nil {
		return fmt.Sprintf("ingest into a subagent's session: error %v", err)
	}
	res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: 8000, PromptMode: core.PromptNone})
	if err != nil {
		return fmt.Sprintf("assemble for a subagent: error %v", err)
	}
	shows := slices.ContainsFunc(res.Messages, func(m message.Message) bool { return strings.Contains(m.Text(), mark) })
	if shows != (mode == core.SpawnFork) {
		return fmt.Sprintf("the first prompt of a subagent (%s) shows its parent's conversation: %v", mode, shows)
	}
	return ""
}

// scriptNested forks a fork, each for another agent.
func scriptNested(s *script) string {
	e, _ := s.engine.(core.SubagentHost)
	said, text := s.talk(s.id, 2, 4)
	if text != "" {
		return text
	}
	marks := []string{marksIn(said[0].Text())[0]}
	parent := s.id
	for n, agent := range []string{"agent-b", "agent-c", "agent-c"} {
		child := core.SessionID{Agent: agent, Session: fmt.Sprintf("nested-%d", n)}
		req := core.SpawnRequest{Parent: parent, Child: child, Mode: core.SpawnFork, TTL: time.Duration(9-n) * time.Hour}
		if _, err := e.PrepareSubagentSpawn(s.ctx(), req); err != nil {
			return fmt.Sprintf("prepare spawn: error %v", err)
		}
		for _, mark := range marks {
			if text := s.startsFrom(child, mark, core.SpawnFork); text != "" {
				return fmt.Sprintf("a fork in depth %d: %s", n+1, text)
			}
		}
		if said, text = s.talk(child, 2, 4); text != "" {
			return text
		}
		parent, marks = child, append(marks, marksIn(said[0].Text())[0])
	}
	s.env.Host.advance(8 * time.Hour)
	for _, mark := range marks[:len(marks)-1] {
		if text := s.startsFrom(parent, mark, core.SpawnIsolated); text != "" {
			return "when its grants are over: " + text
		}
	}
	return ""
}

func scriptSubagent(s *script) string {
	e, _ := s.engine.(core.SubagentHost)
	_, back := s.engine.(engine.Recaller)
	entries, text := s.talk(s.id, 6, 4)
	if text != "" {
		return text
	}
	mark := marksIn(entries[0].Text())[0]
	for n, mode := range []core.SpawnMode{core.SpawnIsolated, core.SpawnFork} {
		// Of another agent: only a grant opens anything.
		child := func(name string) core.SessionID {
			return core.SessionID{Agent: "agent-c", Session: fmt.Sprintf("kid-%d-%s", n, name)}
		}
		spawn := func(id core.SessionID) (core.Spawn, string) {
			sp, err := e.PrepareSubagentSpawn(s.ctx(), core.SpawnRequest{Parent: s.id, Child: id, Mode: mode, TTL: 10 * time.Hour})
			if err != nil || sp.Rollback == nil {
				return sp, fmt.Sprintf("prepare spawn (%s): %+v, error %v", mode, sp, err)
			}
			return sp, ""
		}
		undone := child("undone")
		if _, text := spawn(undone); text != "" {
			return text
		}
		sp, text := spawn(undone) // the first answer was lost
		if text != "" {
			return "again: " + text
		}
		if err := sp.Rollback(s.ctx()); err != nil {
			return fmt.Sprintf("rollback: error %v", err)
		}
		if s.reaches(undone, mark) {
			return fmt.Sprintf("after a rollback (%s) the subagent still finds its parent's history", mode)
		}
		private := s.message(message.User, "is said to another agent")
		if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: undone, Message: private}); err != nil {
			return fmt.Sprintf("ingest into the session of a subagent that was taken back: error %v", err)
		}
		if s.reaches(s.id, marksIn(private.Text())[0]) {
			return fmt.Sprintf("a subagent (%s) was prepared twice and taken back: its parent still finds what is said in that session", mode)
		}
		late := child("late")
		if sp, text = spawn(late); text != "" {
			return text
		}
		if back && sp.GrantID != "" && !s.reaches(late, mark) {
			return fmt.Sprintf("a subagent (%s) with the grant %q does not find its parent's history", mode, sp.GrantID)
		}
		if text := s.startsFrom(late, mark, mode); text != "" {
			return text
		}
		s.env.Host.advance(9 * time.Hour)
		if back && sp.GrantID != "" && !s.reaches(late, mark) {
			return fmt.Sprintf("a subagent (%s) with a grant for 10 hours does not find its parent's history after 9", mode)
		}
		s.env.Host.advance(2 * time.Hour)
		if sp.GrantID != "" && s.reaches(late, mark) {
			return fmt.Sprintf("a subagent (%s) finds its parent's history after its grant is over", mode)
		}
		if text := s.timedGrants(e, child("timed").Session, mode, mark); text != "" {
			return text
		}
		done := child("done")
		if sp, text = spawn(done); text != "" {
			return text
		}
		answer := s.message(message.Assistant, "the kestrel bridge is safe")
		mute := s.message(message.Assistant, "")
		mute.Parts = []message.Part{{Kind: message.ToolCall, CallID: "call_9", Name: "look", Args: "{}"}}
		for _, m := range []message.Message{s.message(message.User, "look"), s.message(message.Assistant, "it may fall"), s.message(message.User, "again"), answer, mute, s.message(message.User, "well")} {
			if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: done, Message: m}); err != nil {
				return fmt.Sprintf("ingest into a subagent's session: error %v", err)
			}
		}
		result := ""
		if n == 0 {
			result = "the bridge is safe, says the subagent"
		}
		before := len(s.held(s.id))
		if err := e.OnSubagentEnded(s.ctx(), core.SubagentEnded{Parent: s.id, Child: done, Reason: "completed", Result: result}); err != nil {
			return fmt.Sprintf("subagent ended: error %v", err)
		}
		held := s.held(s.id)
		want := map[bool]string{true: "the bridge is safe, says the subagent", false: answer.Text()}[n == 0]
		if len(held) != before+1 || held[len(held)-1].Type != core.TypeSubagent || !strings.Contains(held[len(held)-1].Text(), want) {
			return fmt.Sprintf("a subagent that ended left %d new entries with its parent, the last is %q (%s), want one that says %q", len(held)-before, held[len(held)-1].Text(), held[len(held)-1].Type, want)
		}
		if sp.GrantID != "" && s.reaches(done, mark) {
			return fmt.Sprintf("a subagent (%s) that ended still finds its parent's history", mode)
		}
	}
	if text := s.endings(e, mark); text != "" {
		return text
	}
	return s.forksShow()
}

// endings ends subagents for every reason that hosts give, each twice.
func (s *script) endings(e core.SubagentHost, mark string) string {
	for n, reason := range []string{"completed", "error", "timeout", ""} {
		kid := core.SessionID{Agent: "agent-c", Session: fmt.Sprintf("kid-ends-%d", n)}
		sp, err := e.PrepareSubagentSpawn(s.ctx(), core.SpawnRequest{Parent: s.id, Child: kid, TTL: 10 * time.Hour})
		if err != nil || sp.Rollback == nil {
			return fmt.Sprintf("prepare spawn: %+v, error %v", sp, err)
		}
		result := fmt.Sprintf("%s this is how far it came", markOf(1, 800+n))
		before := s.held(s.id)
		var after []core.Entry
		for told := range 2 {
			if err := e.OnSubagentEnded(s.ctx(), core.SubagentEnded{Parent: s.id, Child: kid, Reason: reason, Result: result}); err != nil {
				return fmt.Sprintf("subagent ended (%q): error %v", reason, err)
			}
			if s.reaches(kid, mark) {
				return fmt.Sprintf("a subagent that ended (%q) still finds its parent's history", reason)
			}
			held := s.held(s.id)
			if told == 1 {
				if d := sameEntries(held, after); d != "" {
					return fmt.Sprintf("told once more that a subagent ended (%q), with the same result: %s", reason, d)
				}
				continue
			}
			if after = held; len(held) != len(before)+1 {
				return fmt.Sprintf("a subagent that ended (%q) left %d new entries with its parent, want its result", reason, len(held)-len(before))
			}
			// A label may stand in front.
			if last := held[len(held)-1]; last.Type != core.TypeSubagent || !strings.HasSuffix(last.Text(), result) {
				return fmt.Sprintf("the result %q of a subagent that ended (%q) came back as %q (%s)", result, reason, last.Text(), last.Type)
			}
		}
		// One that said nothing has ended, too.
		silent := core.SessionID{Agent: "agent-c", Session: fmt.Sprintf("kid-ends-silent-%d", n)}
		if sp, err = e.PrepareSubagentSpawn(s.ctx(), core.SpawnRequest{Parent: s.id, Child: silent, TTL: 10 * time.Hour}); err != nil {
			return fmt.Sprintf("prepare spawn: error %v", err)
		}
		if _, back := s.engine.(engine.Recaller); back && sp.GrantID != "" && !s.reaches(silent, mark) {
			return "a subagent with a grant does not find its parent's history"
		}
		if err := e.OnSubagentEnded(s.ctx(), core.SubagentEnded{Parent: s.id, Child: silent, Reason: reason}); err != nil || s.reaches(silent, mark) {
			return fmt.Sprintf("a subagent that ended (%q) without a result: error %v, it still finds its parent's history: %v", reason, err, s.reaches(silent, mark))
		}
	}
	return ""
}
