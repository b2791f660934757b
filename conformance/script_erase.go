package conformance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// eraseChecks look at how far an erasure reaches.
var eraseChecks = []Check{
	{ID: "contract.erased", Promise: 2, Suite: SuiteEngine, script: scriptErased,
		Rule: "an erasure of a scope reaches all of it, of every kind and however much it is, and leaves nothing that follows from what was said; a window that was shown before does not show it again"},
	{ID: "contract.traces", Promise: 2, Suite: SuiteEngine, script: scriptTraces,
		Rule: "an erasure reaches shortened messages, recall blocks, summaries and forks in every view, also when it failed halfway and is made again, and no window that showed nothing of it"},
}

func scriptErased(s *script) string {
	f, ok := s.engine.(engine.Forgetter)
	if !ok {
		return ""
	}
	for _, whole := range []bool{false, true} {
		if text := s.everyKind(f, whole); text != "" {
			return text
		}
	}
	return inTurn(func() string { return s.derived(f) }, func() string { return s.manyErased(f) }, s.shownBefore)
}

// everyKind erases a session, or its agent, that holds what is no plain message.
func (s *script) everyKind(f engine.Forgetter, whole bool) string {
	agent := fmt.Sprintf("every kind %v", whole)
	n := 0
	var ids []core.SessionID
	for _, name := range []string{"main", "second"} {
		id := core.SessionID{Agent: agent, Session: name}
		list, _ := s.spokenTurns()
		for i, m := range list {
			if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: m}); err != nil {
				return fmt.Sprintf("ingest: error %v", err)
			}
			if i%3 == 0 {
				if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: s.message(message.User, "tick"), Heartbeat: true}); err != nil {
					return fmt.Sprintf("ingest: error %v", err)
				}
			}
		}
		if e, ok := s.engine.(core.SubagentHost); ok {
			child := core.SessionID{Agent: agent, Session: "child of " + name}
			if err := e.OnSubagentEnded(s.ctx(), core.SubagentEnded{Parent: id, Child: child, Reason: "completed", Result: s.message(message.Assistant, "came of it").Text()}); err != nil {
				return fmt.Sprintf("subagent ended: error %v", err)
			}
		}
		ids = append(ids, id)
		if whole || name == "main" {
			n += len(s.held(id))
		}
	}
	req := engine.ForgetRequest{Scope: ids[0].Scope()}
	if whole {
		req.Scope.Session = ""
	} else {
		ids = ids[:1]
	}
	rec, err := f.Forget(s.ctx(), req)
	if err != nil || rec.Entries != n || rec.Sessions != len(ids) {
		return fmt.Sprintf("forget of %d entries of every kind in %d sessions: %+v, error %v", n, len(ids), rec, err)
	}
	for _, id := range ids {
		for _, e := range s.held(id) {
			if e.Text() != "" || e.Type != core.TypeErased {
				return fmt.Sprintf("a session was erased, agent and all: %v, and entry %q of it (%s) is %q (%s)", whole, e.ID, e.Role, e.Text(), e.Type)
			}
		}
	}
	return ""
}

// derived erases what hosts know by nothing, however it was stored: keys are then made of what was said.
func (s *script) derived(f engine.Forgetter) string {
	bare := func() (out []message.Message) {
		for i := range 4 {
			m := s.message([]message.Role{message.User, message.Assistant}[i%2], "not to be known")
			m.ID, m.Key = "", ""
			out = append(out, m)
		}
		return out
	}
	ways := s.tellings()
	ways["ingest with a key"] = func(id core.SessionID, list []message.Message) error {
		for i, m := range list {
			if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: m, IdempotencyKey: fmt.Sprintf("call-%d", i)}); err != nil {
				return err
			}
		}
		return nil
	}
	if e, ok := s.engine.(core.BatchIngester); ok {
		ways["ingest batch with a key"] = func(id core.SessionID, list []message.Message) error {
			_, err := e.IngestBatch(s.ctx(), core.IngestBatchRequest{Session: id, Messages: list, IdempotencyKey: "call"})
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ways)) {
		id := core.SessionID{Agent: "agent-a", Session: "derived by " + name}
		list := bare()
		if err := ways[name](id, copiedMessages(list)); err != nil {
			return fmt.Sprintf("%s: error %v", name, err)
		}
		was := s.held(id)
		if rec, err := f.Forget(s.ctx(), engine.ForgetRequest{Scope: id.Scope()}); err != nil || rec.Entries != len(was) {
			return fmt.Sprintf("forget of %d entries that came by %s: %+v, error %v", len(was), name, rec, err)
		}
		for _, e := range s.held(id) {
			b, err := json.Marshal(e)
			if err != nil {
				return fmt.Sprintf("entry %q: %v", e.ID, err)
			}
			for i, m := range list {
				if print := message.Fingerprint(m); bytes.Contains(b, []byte(print)) {
					return fmt.Sprintf("entry %q, which came by %s and was erased, still holds the fingerprint of what message %d said: %s", e.ID, name, i, b)
				}
			}
		}
	}
	return ""
}

// manyErased erases more than a page, and what comes behind a page.
func (s *script) manyErased(f engine.Forgetter) string {
	e, ok := s.engine.(core.BatchIngester)
	if !ok {
		return ""
	}
	for _, c := range []struct{ stay, gone int }{{0, 130}, {core.MaxPage + 10, 30}} {
		id := core.SessionID{Agent: "agent-a", Session: fmt.Sprintf("%d of many", c.gone)}
		var from time.Time
		for _, n := range []int{c.stay, c.gone} {
			s.env.Host.advance(time.Minute)
			if from = s.env.Host.Now(); n == 0 {
				continue
			}
			if res, err := e.IngestBatch(s.ctx(), core.IngestBatchRequest{Session: id, Messages: s.transcript(n).Messages}); err != nil || res.Ingested != n {
				return fmt.Sprintf("a batch of %d: %d stored, error %v", n, res.Ingested, err)
			}
		}
		req := engine.ForgetRequest{Scope: id.Scope()}
		if c.stay > 0 {
			req.From = from
		}
		rec, err := f.Forget(s.ctx(), req)
		full := 0
		for _, e := range s.held(id) {
			if e.Text() != "" {
				full++
			}
		}
		if err != nil || rec.Entries != c.gone || full != c.stay {
			return fmt.Sprintf("forget of the newest %d of %d entries: the receipt says %d, error %v, %d still hold something, want %d", c.gone, c.stay+c.gone, rec.Entries, err, full, c.stay)
		}
	}
	return ""
}

// leftOf looks for texts in all that the store holds of agents, and in all views.
func (s *script) leftOf(agents []string, texts ...string) string {
	holds := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		for _, text := range texts {
			if quoted, err := json.Marshal(text); err == nil && bytes.Contains(b, quoted[1:len(quoted)-1]) {
				return text
			}
		}
		return ""
	}
	for _, agent := range agents {
		for e, err := range core.All(s.ctx(), s.store, core.Scope{Agent: agent}, false) {
			if err != nil {
				return fmt.Sprintf("reading agent %q: error %v", agent, err)
			}
			if text := cmp.Or(holds(e), holds(string(e.Message.Raw))); text != "" {
				return fmt.Sprintf("entry %q of session %s (%s) still holds %.60q", e.ID, e.SessionID(), e.Type, text)
			}
		}
	}
	views, ok := core.As[core.ViewStore](s.store)
	if !ok {
		return ""
	}
	ids, err := views.ListViews(s.ctx(), core.ViewQuery{Limit: core.MaxPage})
	if err != nil {
		return fmt.Sprintf("list views: error %v", err)
	}
	for _, id := range ids {
		v, err := views.LoadView(s.ctx(), id)
		if err != nil {
			return fmt.Sprintf("load view of %s: error %v", id, err)
		}
		if text := holds(v); text != "" {
			return fmt.Sprintf("the view of session %s still holds %.60q", id, text)
		}
	}
	return ""
}

func scriptTraces(s *script) string {
	if _, ok := s.engine.(engine.Forgetter); !ok {
		return ""
	}
	for _, look := range []func() string{s.clippedAndForked, s.recalledElsewhere, s.mergedAway, s.erasedHalf, s.othersStay} {
		if text := look(); text != "" {
			return text
		}
	}
	return ""
}

// forgets erases with the engine that there is.
func (s *script) forgets(req engine.ForgetRequest) (engine.Receipt, error) {
	f, _ := s.engine.(engine.Forgetter)
	return f.Forget(s.ctx(), req)
}

// clippedAndForked erases a result that is too long to be shown whole, of which forks of forks, of the agent and of others, have what is shown: by the engine that
// showed it, and by one that was made anew.
func (s *script) clippedAndForked() string {
	for _, anew := range []bool{false, true} {
		if anew && !s.restarts() {
			break
		}
		agents := []string{fmt.Sprintf("clipped %v", anew), fmt.Sprintf("fork %v", anew), fmt.Sprintf("fork of a fork %v", anew)}
		id := core.SessionID{Agent: agents[0], Session: "main"}
		list, _ := s.spokenTurns()
		long := s.message(message.Tool, "")
		mark := markOf(0, s.n)
		long.Parts = []message.Part{{Kind: message.ToolResult, CallID: "call_1", Name: "look", Text: mark + strings.Repeat(" the budget report moved", 400) + " " + mark}}
		list[3] = long
		for _, m := range list {
			if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: m}); err != nil {
				return fmt.Sprintf("ingest: error %v", err)
			}
		}
		entry := s.held(id)[3]
		ids := []core.SessionID{id}
		if e, ok := s.engine.(core.SubagentHost); ok {
			for n, child := range []core.SessionID{{Agent: agents[0], Session: "fork"}, {Agent: agents[1], Session: "main"}, {Agent: agents[2], Session: "other"}} {
				if text := s.shownAll(ids[n]); text != "" {
					return text
				}
				if _, err := e.PrepareSubagentSpawn(s.ctx(), core.SpawnRequest{Parent: ids[n], Child: child, Mode: core.SpawnFork, TTL: time.Hour}); err != nil {
					return fmt.Sprintf("prepare spawn: error %v", err)
				}
				ids = append(ids, child)
			}
		}
		if text := s.shownAll(ids...); text != "" {
			return text
		}
		if anew {
			s.reopen(true)
		}
		if rec, err := s.forgets(engine.ForgetRequest{Scope: id.Scope(), Entries: []string{entry.ID}}); err != nil || rec.Entries != 1 {
			return fmt.Sprintf("forget of a long result: %+v, error %v", rec, err)
		}
		if text := cmp.Or(s.leftOf(agents, mark), s.noneShows(ids, mark)); text != "" {
			return fmt.Sprintf("a long result was erased, of which forks had what is shown, by an engine made anew: %v; %s", anew, text)
		}
	}
	return ""
}

// traceBudget is the budget of the windows of these scripts, in tokens.
const traceBudget = 900

// shownAll makes the windows of sessions.
func (s *script) shownAll(ids ...core.SessionID) string {
	for _, id := range ids {
		if _, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: traceBudget, Prompt: asked}); err != nil {
			return fmt.Sprintf("assemble of %s: error %v", id, err)
		}
	}
	return ""
}

// noneShows looks for texts in the windows of sessions.
func (s *script) noneShows(ids []core.SessionID, texts ...string) string {
	for _, id := range ids {
		res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: traceBudget})
		if err != nil {
			return fmt.Sprintf("assemble of %s: error %v", id, err)
		}
		for i, m := range res.Messages {
			for _, text := range texts {
				if strings.Contains(allOf(m), text) {
					return fmt.Sprintf("message %d of session %s shows %.60q", i, id, text)
				}
			}
		}
	}
	return ""
}

// windowText is a window as text, a line for each message.
func windowText(res core.AssembleResult) string {
	var b strings.Builder
	for _, m := range res.Messages {
		fmt.Fprintf(&b, "%s %s\n", m.Role, strings.ReplaceAll(allOf(m), "\n", " "))
	}
	return b.String()
}

// allOf is what the parts of a message say.
func allOf(m message.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text + "\n" + p.Args + "\n")
	}
	return b.String()
}

// recalledElsewhere erases what another session of the agent may have recalled, and the same one, and a subagent by its grant: what each published, and what it could
// not publish behind it because the store failed.
func (s *script) recalledElsewhere() string {
	for _, failed := range []bool{false, true} {
		if text := s.recalledBy(failed); text != "" {
			return text
		}
	}
	return ""
}

func (s *script) recalledBy(failed bool) string {
	const agent, childs = "agent-b", "agent-c"
	named := func(agent, session string) core.SessionID {
		return core.SessionID{Agent: agent, Session: fmt.Sprintf("%s, failed %v", session, failed)}
	}
	id := named(agent, "main")
	fact := s.message(message.User, "the harbour lantern invoice is 4711")
	mark := markOf(0, s.n)
	if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: fact}); err != nil {
		return fmt.Sprintf("ingest: error %v", err)
	}
	entry := s.held(id)[0]
	if _, text := s.talk(id, 14, 25); text != "" {
		return text
	}
	ids := []core.SessionID{id, named(agent, "other")}
	if e, ok := s.engine.(core.SubagentHost); ok {
		child := named(childs, "main")
		if _, err := e.PrepareSubagentSpawn(s.ctx(), core.SpawnRequest{Parent: id, Child: child, Mode: core.SpawnIsolated, TTL: time.Hour}); err != nil {
			return fmt.Sprintf("prepare spawn: error %v", err)
		}
		ids = append(ids, child)
	}
	for _, of := range ids[1:] {
		if _, text := s.talk(of, 3, 4); text != "" {
			return text
		}
	}
	for _, of := range ids {
		if text := s.question(of, asked); text != "" {
			return text
		}
	}
	if text := s.shownAll(ids...); text != "" {
		return text
	}
	what := "an entry was erased that other sessions may have recalled: "
	if failed {
		// What does not fit changes the window, whether the call says so or not.
		for _, of := range ids {
			s.env.faults.arm(faultSwap, 1000)
			_, _ = s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: of, Budget: 60})
			s.env.faults.disarm()
		}
		what = "an entry was erased that other sessions may have recalled, and their next windows could not be published: "
	}
	if rec, err := s.forgets(engine.ForgetRequest{Scope: id.Scope(), Entries: []string{entry.ID}}); err != nil || rec.Entries != 1 {
		return fmt.Sprintf("forget of one entry: %+v, error %v", rec, err)
	}
	if failed && s.restarts() {
		s.reopen(true)
	}
	if text := cmp.Or(s.leftOf([]string{agent, childs}, mark), s.noneShows(ids, mark)); text != "" {
		return what + text
	}
	return ""
}

// coversOf returns the texts of the summaries that stand for an entry, as the engine says.
func (s *script) coversOf(id core.SessionID, entry string) (texts []string) {
	r, ok := s.engine.(engine.Recaller)
	if !ok {
		return nil
	}
	for _, e := range s.held(id) {
		if e.Type != core.TypeSummary || e.Text() == "" {
			continue
		}
		req := engine.ExpandRequest{Session: id, ID: e.ID, Tokens: engine.MaxAnswer}
		page, err := r.Expand(s.ctx(), req)
		if err != nil {
			continue // another one took its place
		}
		if slices.ContainsFunc(page.Found, func(f engine.Found) bool { return f.ID == entry }) {
			texts = append(texts, e.Text())
		}
	}
	return texts
}

// mergedAway erases the oldest entry of a session that was compacted again and again: summaries were made of summaries.
func (s *script) mergedAway() string {
	id := core.SessionID{Agent: "merged away", Session: "main"}
	var oldest core.Entry
	var texts []string
	for round := range 4 {
		said, text := s.talk(id, 20, 25)
		if text != "" {
			return text
		}
		if round == 0 {
			oldest = said[0]
		}
		if text := s.shownAll(id); text != "" {
			return text
		}
		_, _ = s.engine.Compact(s.ctx(), core.CompactRequest{Session: id, Budget: traceBudget, Force: true}) // that it works is for others to say
		texts = append(texts, s.coversOf(id, oldest.ID)...)
	}
	if text := s.shownAll(id); text != "" {
		return text
	}
	if rec, err := s.forgets(engine.ForgetRequest{Scope: id.Scope(), Entries: []string{oldest.ID}}); err != nil || rec.Entries != 1 {
		return fmt.Sprintf("forget of the oldest entry: %+v, error %v", rec, err)
	}
	texts = append(texts, marksIn(oldest.Text())[0])
	if text := cmp.Or(s.leftOf([]string{id.Agent}, texts...), s.noneShows([]core.SessionID{id}, texts...)); text != "" {
		return "the oldest entry of a session was erased, after four compactions: " + text
	}
	return ""
}

// erasedHalf erases two entries, of which the store takes the first only, and again. A summary may stand for the first.
func (s *script) erasedHalf() string {
	id := core.SessionID{Agent: "erased half", Session: "main"}
	said, text := s.talk(id, 20, 25)
	if text != "" {
		return text
	}
	if text := s.shownAll(id); text != "" {
		return text
	}
	_, _ = s.engine.Compact(s.ctx(), core.CompactRequest{Session: id, Budget: traceBudget, Force: true}) // as above
	texts := s.coversOf(id, said[0].ID)
	first, last := said[0], said[len(said)-1]
	req := engine.ForgetRequest{Scope: id.Scope(), Entries: []string{first.ID, last.ID}}
	s.env.faults.armAfter(faultUpdate, 1, 1000)
	_, err := s.forgets(req)
	hits := s.env.faults.disarm()
	if hits > 0 && err == nil {
		return "forget of two entries while the store takes one update: no error"
	}
	if s.recover(); s.over {
		return ""
	}
	if err != nil {
		rec, err := s.forgets(req)
		if err != nil || rec.Entries != 2 || rec.Sessions != 1 {
			return fmt.Sprintf("forget of two entries, made again after the store took one update: %+v, error %v", rec, err)
		}
	}
	texts = append(texts, marksIn(first.Text())[0], marksIn(last.Text())[0])
	if text := cmp.Or(s.leftOf([]string{id.Agent}, texts...), s.noneShows([]core.SessionID{id}, texts...)); text != "" {
		return "an erasure of two entries that failed at the second was made again: " + text
	}
	return ""
}

// othersStay erases a session, and another one, and looks at what a third one shows that its host reset.
func (s *script) othersStay() string {
	const agent = "others stay"
	third := core.SessionID{Agent: agent, Session: "reset"}
	for _, t := range []*core.Transcript{s.transcript(6), s.transcript(2)} {
		t.Whole = true
		if _, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: third, Budget: 8000, Transcript: t}); err != nil {
			return fmt.Sprintf("assemble: error %v", err)
		}
	}
	show := func() (string, error) {
		res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: third, Budget: 8000})
		return windowText(res), err
	}
	before, err := show()
	if err != nil {
		return fmt.Sprintf("assemble: error %v", err)
	}
	for _, purge := range []bool{false, true} {
		id := core.SessionID{Agent: agent, Session: fmt.Sprintf("goes %v", purge)}
		if _, text := s.talk(id, 2, 3); text != "" {
			return text
		}
		if _, err := s.forgets(engine.ForgetRequest{Scope: id.Scope(), Purge: purge}); err != nil {
			return fmt.Sprintf("forget: error %v", err)
		}
		for _, anew := range []bool{false, true} {
			if anew && s.restarts() {
				s.reopen(true)
			}
			if now, err := show(); err != nil || now != before {
				return fmt.Sprintf("another session was erased, purge: %v, after a restart: %v: a session that was reset shows something else, error %v: %s", purge, anew, err, firstDifference(now, before))
			}
		}
	}
	return ""
}
