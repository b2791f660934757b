package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// recallScriptChecks look at recall in a conversation that outgrew its budget, which is made to be asked about.
var recallScriptChecks = []Check{
	{ID: "contract.recall", Promise: 8, Suite: SuiteEngine, script: scriptRecall,
		Rule: "mode minimal recalls from the session alone and takes half of the share, none recalls and adds nothing, and no mode is full"},
	{ID: "contract.warnings", Promise: 9, Suite: SuiteEngine, script: scriptWarnings,
		Rule: "recall that a part could not do is missing with a warning that names the part, each time"},
	{ID: "contract.sections", Promise: 10, Suite: SuiteEngine, script: scriptSections,
		Rule: "the host's sections are passed through, all of them, in their order and as they are, also once something has left the window"},
	{ID: "contract.covers", Promise: 2, Suite: SuiteEngine, Needs: []Need{NeedOwner, NeedRecaller}, script: scriptCovers,
		Rule: "after a compaction the choices tell what a summary stands for from what left the window without one"},
	{ID: "contract.reach", Promise: 8, Suite: SuiteEngine, Needs: []Need{NeedSubagents, NeedRecaller}, script: scriptReach,
		Rule: "a subagent without a mode begins empty, without a time its grant takes the configured one, it recalls of its parent what was said before it was spawned, its result comes back as it is, and its parent may search what it said"},
	{ID: "contract.pages", Promise: 2, Suite: SuiteEngine, Needs: []Need{NeedRecaller}, script: scriptPages,
		Rule: "text in any script is found, and read page by page to the byte"},
}

// asked is the question that the conversations of this file end with.
const asked = "What did we say about the harbour lantern invoice, and when?"

// smallBlock is what a recall block costs that has room for hardly anything, in tokens.
const smallBlock = 60

// recallBudget is the budget of those conversations, in tokens.
const recallBudget = 1500

// outgrown makes a conversation of which small facts about one thing have left the window, and that ends with a question about them.
func (s *script) outgrown(id core.SessionID) string {
	for n := range 30 {
		if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: s.message([]message.Role{message.User, message.Assistant}[n%2], "the harbour lantern invoice is due")}); err != nil {
			return fmt.Sprintf("ingest: error %v", err)
		}
	}
	if _, text := s.talk(id, 16, 25); text != "" {
		return text
	}
	return s.question(id, asked)
}

func (s *script) question(id core.SessionID, text string) string {
	if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: s.message(message.User, text)}); err != nil {
		return fmt.Sprintf("ingest: error %v", err)
	}
	return ""
}

func recallSession(name string) core.SessionID {
	return core.SessionID{Agent: "agent-a", Session: name}
}

// prompted assembles a session in a mode and returns what the recall block costs.
func (s *script) prompted(id core.SessionID, mode core.PromptMode, call core.Call) (core.AssembleResult, int, string) {
	res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: recallBudget, PromptMode: mode, Call: call})
	if err != nil || res.RecallAt < 0 || res.RecallAt+res.RecallLen > len(res.Messages) {
		return res, 0, fmt.Sprintf("assemble in mode %q: %d messages, a recall block of %d at %d, error %v", mode, len(res.Messages), res.RecallLen, res.RecallAt, err)
	}
	n := 0
	for _, m := range res.Messages[res.RecallAt : res.RecallAt+res.RecallLen] {
		n += s.count(m)
	}
	return res, n, ""
}

func scriptRecall(s *script) string {
	cost := map[core.PromptMode]int{}
	left := false
	for _, mode := range []core.PromptMode{core.PromptFull, "", core.PromptMinimal, core.PromptNone} {
		// What was recalled before stays where it stands: every mode has a session of its own, of another agent each.
		id := core.SessionID{Agent: "mode-" + string(mode), Session: "main"}
		if text := s.outgrown(id); text != "" {
			return text
		}
		res, n, text := s.prompted(id, mode, core.CallPrompt)
		if text != "" {
			return text
		}
		if cost[mode] = n; mode == core.PromptFull {
			left = slices.ContainsFunc(res.Choices, func(c window.Choice) bool { return c.Reason == window.OutAllowance })
		}
		if mode == core.PromptNone {
			if res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: recallBudget, PromptMode: mode, Prompt: asked}); err != nil || res.RecallLen != 0 {
				return fmt.Sprintf("in mode none a prompt of the host's brings a recall block of %d, error %v", res.RecallLen, err)
			}
		}
		if mode == core.PromptNone && (res.RecallLen != 0 || res.SystemPromptAddition != "") {
			return fmt.Sprintf("in mode none a conversation that outgrew its budget has a recall block of %d and the addition %q", res.RecallLen, res.SystemPromptAddition)
		}
	}
	full, minimal := cost[core.PromptFull], cost[core.PromptMinimal]
	switch {
	case full > cost[""]*11/10+10, cost[""] > full*11/10+10:
		return fmt.Sprintf("mode full recalls %d tokens, no mode %d", full, cost[""])
	case minimal > recallBudget/4+smallBlock:
		return fmt.Sprintf("mode minimal recalls %d tokens with a budget of %d: a share is at most half", minimal, recallBudget)
	case left && full > 3*smallBlock && minimal > full*8/10:
		return fmt.Sprintf("mode full recalls %d tokens and has no room for more, mode minimal recalls %d, want half", full, minimal)
	case full > 3*smallBlock && minimal == 0:
		return fmt.Sprintf("mode full recalls %d tokens, mode minimal none", full)
	}
	if text := s.recallsInLoop(minimal*12/10 + smallBlock); text != "" {
		return text
	}
	return s.recallsAlone()
}

// recallsInLoop asks inside a turn first: a mode means the same there, and mode minimal recalls at most so many tokens.
func (s *script) recallsInLoop(most int) string {
	for _, mode := range []core.PromptMode{core.PromptMinimal, core.PromptNone} {
		id := core.SessionID{Agent: "loop-mode-" + string(mode), Session: "main"}
		if text := s.outgrown(id); text != "" {
			return text
		}
		res, n, text := s.prompted(id, mode, core.CallLoop)
		if text != "" {
			return text
		}
		if n > most || mode == core.PromptNone && (res.RecallLen != 0 || res.SystemPromptAddition != "") {
			return fmt.Sprintf("inside a turn mode %s has a recall block of %d tokens and the addition %q", mode, n, res.SystemPromptAddition)
		}
	}
	return ""
}

// recallsAlone asks in one session about what another session of the agent says.
func (s *script) recallsAlone() string {
	there := recallSession("said there")
	if text := s.outgrown(there); text != "" {
		return text
	}
	recalls := map[core.PromptMode]bool{}
	for _, of := range []struct {
		mode core.PromptMode
		call core.Call
	}{{core.PromptFull, ""}, {"", ""}, {core.PromptMinimal, ""}, {core.PromptMinimal, core.CallLoop}} {
		mode := of.mode
		id := recallSession(fmt.Sprintf("asked here, mode %s, call %s", mode, of.call))
		if _, text := s.talk(id, 2, 3); text != "" {
			return text
		}
		if text := s.question(id, asked); text != "" {
			return text
		}
		res, _, text := s.prompted(id, mode, of.call)
		if text != "" {
			return text
		}
		own := map[string]bool{}
		for _, e := range s.held(id) {
			own[e.ID] = true
		}
		for _, c := range res.Choices {
			recalls[mode] = recalls[mode] || c.Reason == window.ReasonRecalled && !own[c.Entry]
		}
	}
	if recalls[core.PromptMinimal] || recalls[core.PromptFull] != recalls[""] {
		return fmt.Sprintf("recalled from another session: mode full %v, no mode %v, mode minimal %v", recalls[core.PromptFull], recalls[""], recalls[core.PromptMinimal])
	}
	return ""
}

func scriptWarnings(s *script) string {
	sound, id := core.SessionID{Agent: "sound", Session: "main"}, s.id
	const asks, more = 5, 3
	var clean [asks + more]bool
	for _, of := range []core.SessionID{sound, id} {
		if text := s.outgrown(of); text != "" {
			return text
		}
		warned := 0 // after how many reads one failed that a warning told of
		for n := range asks + more {
			if text := s.question(of, fmt.Sprintf("%s (%d)", asked, n)); text != "" {
				return text
			}
			after := warned
			if n < asks {
				after = n // what the engine reads itself comes first
			}
			if of == id {
				s.env.faults.armAfter(faultScan, after, 1000)
			}
			res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: of, Budget: recallBudget})
			hits := s.env.faults.disarm()
			switch {
			case of == sound && err != nil:
				return fmt.Sprintf("assemble: error %v", err)
			case of == sound:
				clean[n] = res.RecallLen > 0
			case err != nil || res.Degraded != "": // said loudly
			case hits > 0 && clean[n] && res.RecallLen == 0 && len(res.Warnings) == 0:
				return fmt.Sprintf("assemble %d while what recall reads fails (%d times): nothing is recalled, and no warning says why", n+1, hits)
			case len(res.Warnings) > 0 && n < asks:
				warned = after
			}
			s.recover()
			s.env.Host.advance(24 * time.Hour)
		}
	}
	return s.warnsInLoop()
}

// warnsInLoop lets turns with tools outgrow their window, where what recall reads fails as the window moves in one of them.
func (s *script) warnsInLoop() string {
	moved := map[int]bool{} // by the calls of the sound turn: something was recalled anew
	for _, of := range []string{"sound, with tools", "with tools"} {
		s.id = recallSession(of)
		if text := s.outgrown(s.id); text != "" {
			return text
		}
		for round := range 16 {
			if round > 0 {
				for _, m := range append(s.looksUp()[1:], s.message(message.Assistant, strings.Repeat("it is here ", 20))) {
					if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: m}); err != nil {
						return fmt.Sprintf("ingest: error %v", err)
					}
				}
			}
			sound := of != "with tools"
			if !sound && moved[round] {
				s.env.faults.armAfter(faultScan, 0, 1000)
			}
			res, err := s.assemble(recallBudget, func(r *core.AssembleRequest) {
				if round > 0 {
					r.Call = core.CallLoop
				}
			})
			hits := s.env.faults.disarm()
			switch {
			case sound && err != nil:
				return fmt.Sprintf("assemble: error %v", err)
			case sound:
				moved[round] = round > 0 && res.Stepped && res.RecallLen > 0
			case err != nil || res.Degraded != "": // said loudly
			case hits > 0 && moved[round] && res.RecallLen == 0 && len(res.Warnings) == 0:
				return fmt.Sprintf("assemble after %d calls of tools while what recall reads fails (%d times): nothing is recalled, and no warning says why", round, hits)
			}
			s.recover()
		}
	}
	return ""
}

func scriptSections(s *script) string {
	sections := []string{"The notes tool is called jotter.", "Die Brücke heißt 橋.", "Cite what you use."}
	if _, text := s.talk(s.id, 4, 5); text != "" {
		return text
	}
	for _, words := range []int{0, 25} {
		if words > 0 {
			if _, text := s.talk(s.id, 30, words); text != "" {
				return text
			}
		}
		for range 2 {
			res, err := s.assemble(recallBudget, func(r *core.AssembleRequest) { r.Memory.Sections = slices.Clone(sections) })
			if err != nil {
				return fmt.Sprintf("assemble with %d sections: error %v", len(sections), err)
			}
			at := 0
			for i, section := range sections {
				next := strings.Index(res.SystemPromptAddition[at:], section)
				if next < 0 {
					return fmt.Sprintf("section %d of %d, %q, is not in the addition, or not in its place: %q", i+1, len(sections), section, res.SystemPromptAddition)
				}
				at += next + len(section)
			}
			if behind := res.SystemPromptAddition[at:]; strings.TrimSpace(behind) != "" {
				return fmt.Sprintf("the host's sections do not stand behind what the engine has to say: behind them stands %q", shorten(behind))
			}
		}
	}
	return s.passesSections()
}

func scriptCovers(s *script) string {
	r, _ := s.engine.(engine.Recaller)
	if _, text := s.ingested(s.id, s.message(message.System, "Be brief.")); text != "" {
		return text
	}
	entries, text := s.talk(s.id, 24, 25)
	if text != "" {
		return text
	}
	for range 2 {
		if _, err := s.assemble(900, nil); err != nil {
			return fmt.Sprintf("assemble: error %v", err)
		}
		if _, err := s.engine.Compact(s.ctx(), core.CompactRequest{Session: s.id, Budget: 900, Force: true}); err != nil {
			return fmt.Sprintf("compact: error %v", err)
		}
		more, text := s.talk(s.id, 16, 25)
		if text != "" {
			return text
		}
		entries = append(entries, more...)
		res, err := s.assemble(900, nil)
		if err != nil {
			return fmt.Sprintf("assemble after a compaction: error %v", err)
		}
		d, err := r.Describe(s.ctx(), engine.DescribeRequest{Session: s.id})
		if err != nil {
			return fmt.Sprintf("describe: error %v", err)
		}
		covered, shown, left, sums := 0, 0, 0, map[string]bool{}
		for _, sum := range d.Summaries {
			covered += sum.Covers
		}
		for _, c := range res.Choices {
			switch c.Reason {
			case window.OutCompacted:
				covered -= c.Count
			case window.OutBudget:
				left += c.Count
			case window.ReasonSummary:
				sums[c.Entry] = true
			case window.ReasonTail, window.ReasonPinned, window.ReasonSystem:
				shown++
			}
		}
		switch {
		case covered != 0 || left != d.Left || shown != d.Shown:
			return fmt.Sprintf("of %d entries %+v; the choices name %d shown and %d left, and %d of what summaries stand for are missing", len(entries), d, shown, left, covered)
		case d.Turns != int64(len(entries)/2):
			return fmt.Sprintf("describe counts %d turns, %d messages of the user were ingested", d.Turns, len(entries)/2)
		}
		for _, sum := range d.Summaries {
			if !sums[sum.ID] && len(d.Summaries) == len(sums) {
				return fmt.Sprintf("the summary %q stands in front, and no choice names it: %+v", sum.ID, res.Choices)
			}
		}
		if len(sums) == 0 && len(d.Summaries) > 0 {
			return fmt.Sprintf("%d summaries stand in front, and no choice names one: %+v", len(d.Summaries), res.Choices)
		}
	}
	if text := s.olderBehind(r); text != "" {
		return text
	}
	return s.inTheirOrder(r)
}

// olderBehind shows messages that are older than all that a summary was made of, as a host does that first shows the newest of its messages: each is shown, or said to be
// left, and no summary claims to stand for it.
func (s *script) olderBehind(r engine.Recaller) string {
	s.id = recallSession("with older ones behind")
	t := &core.Transcript{}
	says := func(n int) {
		for i := range n {
			t.Messages = append(t.Messages, s.message([]message.Role{message.User, message.Assistant}[i%2], wordy(200)))
		}
	}
	says(30)
	if _, err := s.assemble(900, func(r *core.AssembleRequest) { r.Transcript = &core.Transcript{Messages: t.Messages[6:]} }); err != nil {
		return fmt.Sprintf("assemble with the newest of a transcript: error %v", err)
	}
	if _, err := s.engine.Compact(s.ctx(), core.CompactRequest{Session: s.id, Budget: 900, Force: true}); err != nil {
		return fmt.Sprintf("compact: error %v", err)
	}
	for range 2 {
		says(2)
		if _, err := s.assemble(900, func(r *core.AssembleRequest) { r.Transcript = t }); err != nil {
			return fmt.Sprintf("assemble with all of a transcript, of which the newest was compacted: error %v", err)
		}
		d, err := r.Describe(s.ctx(), engine.DescribeRequest{Session: s.id})
		if err != nil {
			return fmt.Sprintf("describe: error %v", err)
		}
		there := d.Shown + d.Left
		for _, sum := range d.Summaries {
			there += sum.Covers
		}
		if there < len(t.Messages) || there != d.Entries {
			return fmt.Sprintf("of %d messages, of which the oldest came behind a summary, %d are shown, left, or stood for: %+v", len(t.Messages), there, d)
		}
		if text := s.describedSummaries(d.Summaries); text != "" {
			return "older messages came behind a summary: " + text
		}
	}
	return ""
}

func scriptReach(s *script) string {
	e, _ := s.engine.(core.SubagentHost)
	entries, text := s.talk(s.id, 6, 4)
	if text != "" {
		return text
	}
	mark := marksIn(entries[0].Text())[0]
	kid := core.SessionID{Agent: "agent-c", Session: "kid without words"}
	sp, err := e.PrepareSubagentSpawn(s.ctx(), core.SpawnRequest{Parent: s.id, Child: kid})
	if err != nil || sp.Rollback == nil {
		return fmt.Sprintf("prepare spawn without mode and time: %+v, error %v", sp, err)
	}
	s.env.Host.advance(time.Second)
	if sp.GrantID != "" && !s.reaches(kid, mark) {
		return "a subagent whose grant takes the configured time does not find its parent's history"
	}
	if text := s.startsFrom(kid, mark, core.SpawnIsolated); text != "" {
		return "without a mode: " + text
	}
	answer := s.message(message.Assistant, "seen")
	if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: kid, Message: answer}); err != nil {
		return fmt.Sprintf("ingest into a subagent's session: error %v", err)
	}
	if sp.GrantID != "" && !s.reaches(s.id, marksIn(answer.Text())[0]) {
		return "a parent does not find what its subagent said while the grant lasts"
	}
	result := "Die Brücke heißt 橋.\n\nIt stands, says the subagent:\n  - twice"
	if err := e.OnSubagentEnded(s.ctx(), core.SubagentEnded{Parent: s.id, Child: kid, Reason: "completed", Result: result}); err != nil {
		return fmt.Sprintf("subagent ended: error %v", err)
	}
	held := s.held(s.id)
	if last := held[len(held)-1]; last.Type != core.TypeSubagent || !strings.HasSuffix(last.Text(), result) {
		return fmt.Sprintf("the result %q of a subagent came back as %q (%s)", result, last.Text(), last.Type)
	}
	if text := s.recallsBefore(); text != "" {
		return text
	}
	// Each launch that failed is undone.
	for n := range 2 {
		kid := core.SessionID{Agent: "agent-c", Session: fmt.Sprintf("kid undone %d", n)}
		sp, err := e.PrepareSubagentSpawn(s.ctx(), core.SpawnRequest{Parent: s.id, Child: kid})
		if err != nil || sp.Rollback == nil {
			return fmt.Sprintf("prepare spawn: %+v, error %v", sp, err)
		}
		if err := sp.Rollback(s.ctx()); err != nil || s.reaches(kid, mark) {
			return fmt.Sprintf("rollback %d: error %v, the subagent finds its parent's history: %v", n+1, err, s.reaches(kid, mark))
		}
	}
	return ""
}

func scriptPages(s *script) string {
	r, _ := s.engine.(engine.Recaller)
	var list []message.Message
	for _, kind := range []textKind{textCJK, textCombining, textEmoji, textRTL} {
		m := s.message(message.User, makeText("said", kind, 120, 7, nil))
		if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: m}); err != nil {
			return fmt.Sprintf("ingest: error %v", err)
		}
		list = append(list, m)
	}
	for i, e := range s.held(s.id) {
		var whole strings.Builder
		req := engine.ExpandRequest{Session: s.id, ID: e.ID, Tokens: 200}
		for n := 0; ; n++ {
			page, err := r.Expand(s.ctx(), req)
			if err != nil || len(page.Found) != 1 || n > 100 {
				return fmt.Sprintf("page %d of an entry: %d entries, error %v", n+1, len(page.Found), err)
			}
			whole.WriteString(page.Found[0].Excerpt)
			if req.Offset = page.Next; page.Next == 0 {
				break
			}
		}
		if d := differText("the text", whole.String(), list[i].Text()); d != "" {
			return "an entry read page by page: " + d
		}
	}
	for _, query := range []string{"数据库", "שלום", "क्षत्रिय"} {
		res, err := r.Search(s.ctx(), engine.SearchRequest{Session: s.id, Query: query, Limit: engine.MaxFound})
		if err != nil || !slices.ContainsFunc(list, func(m message.Message) bool { return strings.Contains(m.Text(), query) }) {
			return fmt.Sprintf("search for %q: error %v", query, err)
		}
		found := slices.ContainsFunc(res.Found, func(f engine.Found) bool {
			return slices.ContainsFunc(s.held(s.id), func(e core.Entry) bool { return e.ID == f.ID && strings.Contains(e.Text(), query) })
		})
		if !found {
			return fmt.Sprintf("search for %q finds %d entries, none of which says it", query, len(res.Found))
		}
	}
	return ""
}
