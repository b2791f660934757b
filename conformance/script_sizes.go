package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// What is long: a text of more bytes than programs read at once, a message of more parts than most have, and words of a person's.
const (
	largeText = 200 << 10
	manyParts = 130
	longWords = 2500
)

// wordy is a text of so many bytes and a few more, which ends with a word of its own.
func wordy(bytes int) string {
	return strings.Repeat("the budget report moved to friday ", bytes/34+1) + "and that was all of it"
}

// storesAll tells a long conversation with a long text and a message of many parts, by the named one of the ways.
func (s *script) storesAll(way string) string {
	tell := s.ways()[way]
	if tell == nil {
		return ""
	}
	list := s.transcript(2).Messages
	if way != "ingest" { // which is a call for each
		list = s.transcript(manyMessages).Messages
	}
	parts := s.message(message.Assistant, "")
	for n := range manyParts - 1 {
		parts.Parts = append(parts.Parts, message.Part{Kind: message.Text, Text: fmt.Sprintf("part %d", n+2)})
	}
	list = append(list, s.message(message.User, wordy(largeText)), parts)
	id := core.SessionID{Agent: "agent-a", Session: "all of it by " + way}
	if err := tell(id, copiedMessages(list)); err != nil {
		return fmt.Sprintf("%s of %d messages, one of %d KiB and one of %d parts: error %v", way, len(list), largeText>>10, manyParts, err)
	}
	held := s.held(id)
	for i := range min(len(held), len(list)) {
		if text := differText("the text", held[i].Text(), list[i].Text()); text != "" {
			return fmt.Sprintf("%s: message %d of %d is stored otherwise: %s", way, i, len(list), text)
		}
		if got, want := len(held[i].Message.Parts), len(list[i].Parts); got != want {
			return fmt.Sprintf("%s: message %d of %d has %d parts, %d of them are stored", way, i, len(list), want, got)
		}
	}
	if len(held) != len(list) {
		return fmt.Sprintf("%s: of %d messages %d are stored", way, len(list), len(held))
	}
	return ""
}

// forgetsMany erases entries one by one, as many as the suite has cases and a few more, and then as many at once as may be named.
func (s *script) forgetsMany() string {
	single := 10 + s.cases
	s.id = core.SessionID{Agent: "agent-forgotten", Session: "of many erasures"}
	var entries []core.Entry
	if err := s.ways()["ingest"](s.id, s.transcript(single+manyMessages).Messages); err != nil {
		return fmt.Sprintf("ingest: error %v", err)
	}
	entries = s.held(s.id)
	gone := map[string]bool{}
	var receipts []engine.Receipt
	for n := range single + 1 {
		some := entries[n : n+1]
		reason := fmt.Sprintf("erasure %d: %s", n, wordy(longWords))
		if n == single {
			some = entries[n : n+manyMessages-1]
		}
		rec, err := s.forgets(engine.ForgetRequest{Scope: s.id.Scope(), Entries: idsOf(some), Reason: reason})
		if err != nil || rec.Entries != len(some) || !slices.Equal(rec.Request.Entries, idsOf(some)) {
			return fmt.Sprintf("forget of %d entries: error %v, the receipt is about %d, and names %d", len(some), err, rec.Entries, len(rec.Request.Entries))
		}
		if d := differText("the reason", rec.Request.Reason, reason); d != "" {
			return "in a receipt: " + d
		}
		for _, e := range some {
			gone[e.ID] = true
		}
		receipts = append(receipts, rec)
		s.env.Host.advance(time.Second)
	}
	if text := s.without(entries, gone); text != "" {
		return fmt.Sprintf("after %d erasures of %d entries: %s", len(receipts), len(gone), text)
	}
	return s.kept(receipts)
}

// scoresMany gives more outcomes than a page of most things holds, one for each turn.
func (s *script) scoresMany(e engine.Scorer) string {
	id := core.SessionID{Agent: "scored often", Session: "main"}
	for n := range manyMessages {
		if err := e.Score(s.ctx(), engine.Outcome{Session: id, Turn: int64(n + 1), Name: "rating", Value: float64(n)}); err != nil {
			return fmt.Sprintf("score %d: error %v", n+1, err)
		}
	}
	got, err := e.Outcomes(s.ctx(), id.Agent)
	for n, o := range got {
		if o.Turn != int64(n+1) || o.Value != float64(n) {
			return fmt.Sprintf("outcome %d of %d is %+v", n+1, manyMessages, o)
		}
	}
	if err != nil || len(got) != manyMessages {
		return fmt.Sprintf("of %d outcomes %d are kept, error %v", manyMessages, len(got), err)
	}
	return ""
}

// handsBackAll ends subagents with a long result, and with a long last answer, that have white space around them.
func (s *script) handsBackAll() string {
	s.id = recallSession("of long results")
	for n, of := range []string{"a result", "a last answer"} {
		child, said := kid("says much as "+of), "  \n "+markOf(0, 930+n)+" "+wordy(64<<10)+" \n\n"
		if _, text := s.spawned(core.SpawnIsolated, child); text != "" {
			return text
		}
		result := said
		if n == 1 {
			result = ""
			if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: child, Message: message.New(message.Assistant, said)}); err != nil {
				return fmt.Sprintf("ingest into a subagent's session: error %v", err)
			}
		}
		fresh, text := s.handsBack(s.id, child, result)
		if text != "" {
			return text
		}
		if len(fresh) != 1 {
			return fmt.Sprintf("%s of %d bytes left %d new entries with the parent", of, len(said), len(fresh))
		}
		got := fresh[0].Text()
		if d := differText("the result", got[max(0, len(got)-len(said)):], said); d != "" {
			return fmt.Sprintf("%s of %d bytes, with white space around it, came back otherwise: %s", of, len(said), d)
		}
	}
	return ""
}

// foundByAll looks for two words that begin alike and are longer than what most people look for.
func (s *script) foundByAll(r engine.Recaller) string {
	id := core.SessionID{Agent: "looked for at length", Session: "main"}
	path := strings.Repeat("kestrel/", 150)
	names := []string{path + "one.go", path + "two.go", path + "six.go"}
	var list []message.Message
	for i, name := range names {
		list = append(list, s.message([]message.Role{message.User, message.Assistant}[i%2], "see "+name))
	}
	entries, text := s.ingested(id, list...)
	if text != "" {
		return text
	}
	for i, name := range names {
		res, err := r.Search(s.ctx(), engine.SearchRequest{Session: id, Query: name, Tokens: engine.MaxAnswer})
		if err != nil || len(res.Found) == 0 || res.Found[0].ID != entries[i].ID {
			return fmt.Sprintf("search for a path of %d bytes finds %d entries, error %v; the first is not %q, which alone holds all of it", len(name), len(res.Found), err, entries[i].ID)
		}
	}
	return ""
}

// passesSections hands over sections that are long, and that have white space around them.
func (s *script) passesSections() string {
	section := "  - The jotter: " + wordy(2*longWords) + " \n"
	for _, words := range []int{0, 250} {
		if words > 0 {
			if _, text := s.talk(s.id, 12, words); text != "" {
				return text
			}
		}
		res, err := s.assemble(4*longWords, func(r *core.AssembleRequest) { r.Memory.Sections = []string{"\n\tFirst.\t", section} })
		if err != nil {
			return fmt.Sprintf("assemble with a section of %d bytes: error %v", len(section), err)
		}
		if !strings.Contains(res.SystemPromptAddition, "\n\tFirst.\t") {
			return fmt.Sprintf("a section with white space around it is not in the addition: %.200q", res.SystemPromptAddition)
		}
		if !strings.Contains(res.SystemPromptAddition, section) {
			return fmt.Sprintf("a section of %d bytes is not in the addition of %d: %.200q", len(section), len(res.SystemPromptAddition), res.SystemPromptAddition)
		}
	}
	return ""
}

// namesContract looks whether an engine that commits turns names the contract by which it does.
func (s *script) namesContract() string {
	if i := s.engine.Info(); i.TurnIdempotency == "" || i.CurrentTurnFence == "" {
		return fmt.Sprintf("turns are committed, and Info does not name the contract that is kept: idempotency %q, fence %q", i.TurnIdempotency, i.CurrentTurnFence)
	}
	return ""
}

// handedBackFound expands and finds what a subagent handed back, beside what was said.
func (s *script) handedBackFound(r engine.Recaller) string {
	if _, ok := s.engine.(core.SubagentHost); !ok {
		return ""
	}
	s.id = recallSession("of a found result")
	if _, text := s.talk(s.id, 2, 4); text != "" {
		return text
	}
	child, mark := kid("is found"), markOf(0, 940)
	if _, text := s.spawned(core.SpawnIsolated, child); text != "" {
		return text
	}
	fresh, text := s.handsBack(s.id, child, mark+" the kestrel bridge is safe")
	if text != "" || len(fresh) != 1 {
		return fmt.Sprintf("the result of a subagent left %d new entries with its parent %s", len(fresh), text)
	}
	res, err := r.Expand(s.ctx(), engine.ExpandRequest{Session: s.id, ID: fresh[0].ID, Before: 1})
	at := slices.IndexFunc(res.Found, func(f engine.Found) bool { return f.ID == fresh[0].ID })
	if err != nil || at < 0 {
		return fmt.Sprintf("expand of a subagent's result: %d entries, error %v", len(res.Found), err)
	}
	if text := s.trueFound(res.Found[at], fresh[0]); text != "" {
		return "expand of a subagent's result: " + text
	}
	found, err := r.Search(s.ctx(), engine.SearchRequest{Session: s.id, Query: mark})
	if at = slices.IndexFunc(found.Found, func(f engine.Found) bool { return f.ID == fresh[0].ID }); err != nil || at < 0 {
		return fmt.Sprintf("search for a subagent's result finds %d entries, error %v", len(found.Found), err)
	}
	if text := s.trueFound(found.Found[at], fresh[0]); text != "" {
		return "search for a subagent's result: " + text
	}
	return ""
}

// describedSummaries holds what Describe says of summaries against the view, where there is one, and otherwise against itself.
func (s *script) describedSummaries(list []engine.SummaryInfo) string {
	kept := map[string]core.Summary{}
	if views, ok := core.As[core.ViewStore](s.store); ok {
		if v, err := views.LoadView(s.ctx(), s.id); err == nil {
			for _, sum := range v.Summaries {
				kept[sum.ID] = sum
			}
		}
	}
	for _, d := range list {
		n := 0
		for _, span := range d.Of {
			n += span.Len()
		}
		if n < d.Covers { // a summary of before takes a place, too
			return fmt.Sprintf("the summary %q stands for %d entries, and the spans that it names hold %d", d.ID, d.Covers, n)
		}
		if sum, ok := kept[d.ID]; ok && (d.Kind != sum.Kind || d.Covers != sum.Covers || d.Tokens != sum.Tokens || !d.Time.Equal(sum.Time)) {
			return fmt.Sprintf("the summary %q is described as %+v, and kept as %+v", d.ID, d, sum)
		}
	}
	return ""
}

// compactsTimers compacts a conversation in which timers spoke: neither the model nor a summary says what they said.
func (s *script) compactsTimers() string {
	s.id = recallSession("with timers")
	var timers []string
	for n := range 6 {
		if _, text := s.talk(s.id, 4, 25); text != "" {
			return text
		}
		m := s.message(message.User, "the timer rang")
		timers = append(timers, marksIn(m.Text())...)
		if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: m, Heartbeat: true}); err != nil {
			return fmt.Sprintf("ingest of heartbeat %d: error %v", n+1, err)
		}
	}
	calls := s.env.Model.Calls()
	if _, err := s.engine.Compact(s.ctx(), core.CompactRequest{Session: s.id, Budget: 900, Force: true}); err != nil {
		return fmt.Sprintf("compact: error %v", err)
	}
	for _, mark := range timers {
		if s.env.Model.heardSince(calls, mark) {
			return fmt.Sprintf("the model that was asked for a summary was told what a timer said: %s", mark)
		}
		for _, e := range s.held(s.id) {
			if e.Type == core.TypeSummary && strings.Contains(e.Text(), mark) {
				return fmt.Sprintf("the summary %q says what a timer said: %s", e.ID, mark)
			}
		}
	}
	return ""
}
