package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// turnChecks look at turns of hosts that have no names for their messages, or that have times or ids.
var turnChecks = []Check{
	{ID: "contract.turn", Promise: 5, Suite: SuiteEngine, script: scriptTurn,
		Rule: "a turn is stored once, whether all or some of its messages have ids, times or no names, or other ones once it is accepted, or its calls other ids each time, and what is erased of it stays so, whichever calls showed it while it ran, what stood behind its prompt meanwhile, and what failed turns left"},
}

// turnHost is a host that shows its turns while they run.
type turnHost struct {
	*script
	rng *rand.Rand
	// names are by what it knows its messages: "id", "time" or "", "asked" where only what the user says has a time. anew says that it makes the ids of calls anew when a
	// turn is accepted, stamped the names of its messages, listed that it makes those anew with every list.
	names                 string
	anew, stamped, listed bool
	// list is its transcript, accepted how often it says what in accepted turns; system says that there is a system message in front, another one in every turn.
	list     []message.Message
	accepted map[string]int
	system   bool
	turns    int
	accepts  int
	did      []string
	got      core.AssembleResult // what was returned last
}

func scriptTurn(s *script) string {
	rng := rand.New(rand.NewSource(s.seed)) //nolint:gosec // what is drawn is no secret
	for _, n := range s.few(14) {
		s.id = recallSession(fmt.Sprintf("turn %d", n))
		h := turnHost{script: s, rng: rng, accepted: map[string]int{}, system: rng.Intn(2) == 0,
			names: []string{"", "time", "asked", "id", ""}[n%5], anew: n%3 == 1, stamped: n > 5 && n < 12, listed: n > 11} // each kind of host, and some of them twice
		h.does("messages named by %q, anew once they are accepted %v, with every list %v, ids of calls anew %v", h.names, h.stamped, h.listed, h.anew)
		for range 5 {
			if text := h.turn(); text != "" {
				return fmt.Sprintf("%s: %s", strings.Join(h.did, "; "), text)
			}
		}
		if text := cmp.Or(h.once(), h.erases()); text != "" {
			return fmt.Sprintf("%s: %s", strings.Join(h.did, "; "), text)
		}
	}
	return cmp.Or(s.answersAgain(), s.behindAlike(), s.erasedBefore(rng))
}

// behindAlike plays turns that are alike to the ids of their calls. In the loop the host goes on with what it was given, which is the question alone where there is no room
// for more.
func (s *script) behindAlike() string {
	committer, commits := s.engine.(core.TurnCommitter)
	for _, budget := range s.few(12) {
		s.id = recallSession(fmt.Sprintf("behind what it was given, %d", budget))
		var all []message.Message
		for turn := range 4 {
			from, id := len(all), fmt.Sprintf("use-%d-%d", budget, turn)
			all = append(all, message.New(message.User, "go on"))
			var res core.AssembleResult
			var err error
			ask := func(list []message.Message, call core.Call) {
				if err == nil {
					res, err = s.assemble(20+8*budget, func(r *core.AssembleRequest) {
						r.Transcript, r.Call, r.PromptMode = &core.Transcript{Messages: copiedMessages(list)}, call, core.PromptNone
					})
				}
				if errors.Is(err, core.ErrBudget) {
					res, err = core.AssembleResult{Messages: list}, nil // the host has to do without
				}
			}
			ask(all, core.CallPrompt)
			more := []message.Message{
				{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: id, Name: "look", Args: "{}"}}},
				{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: id, Name: "look", Text: "ok"}}},
			}
			all = append(all, more...)
			ask(slices.Concat(res.Messages, more), core.CallLoop)
			if err != nil {
				return fmt.Sprintf("assemble: error %v", err)
			}
			if text := heldOnce(s.held(s.id), len(all), id); text != "" {
				return fmt.Sprintf("turn %d of some that are alike, its call and its result stood behind what was returned for a budget of %d: %s", turn+1, 20+8*budget, text)
			}
			if all = append(all, message.New(message.Assistant, "done")); commits && budget%2 == 0 {
				if _, err := committer.CommitTurn(s.ctx(), core.CommitTurnRequest{Session: s.id, AdvancementKey: fmt.Sprint("alike ", turn), Messages: copiedMessages(all[from:])}); err != nil {
					return fmt.Sprintf("a turn is committed: error %v", err)
				}
			}
		}
	}
	return ""
}

// answersAgain takes the newest answer back and has it made again, with what the user said as it stood.
func (s *script) answersAgain() string {
	for n, names := range []string{"", "id", "", "id"} {
		s.id = recallSession(fmt.Sprintf("made again %d", n))
		h := turnHost{script: s, names: names}
		if !h.tells() {
			return ""
		}
		first, asked := h.says(message.User, "begins"), h.says(message.User, "asks")
		for turns := range 3 { // the second and the third answer the same
			question := asked
			if turns == 0 {
				question = first
			}
			if text := h.asks([]message.Message{question}, "", core.CallPrompt); text != "" {
				return text
			}
			turn := []message.Message{question, h.says(message.Assistant, "answers")}
			if text := h.tell(n < 2, h.list, turn); text != "" {
				return text
			}
			if turns == 0 {
				h.list = turn
			}
		}
		if stored := h.counts()[sayingOf(asked)]; stored != 1 {
			return fmt.Sprintf("messages named by %q: what was asked once, and answered again, is stored %d times", names, stored)
		}
	}
	return ""
}

func (h *turnHost) does(format string, args ...any) {
	h.did = append(h.did, fmt.Sprintf(format, args...))
}

func (h *turnHost) says(role message.Role, text string) message.Message {
	m := h.message(role, text)
	h.named(&m)
	return m
}

// named gives a message the name that the host has for it.
func (h *turnHost) named(m *message.Message) {
	by := h.names
	if by == "asked" {
		by = map[message.Role]string{message.User: "time"}[m.Role]
	}
	h.name(m, by)
}

// looks returns a turn in which something is looked at.
func (h *turnHost) looks() []message.Message {
	turn := []message.Message{h.says(message.User, "asks"), h.says(message.Assistant, "looks"), message.New(message.Tool, ""), h.says(message.Assistant, "answers")}
	call := fmt.Sprintf("call-%d", h.n)
	turn[1].Parts = append(turn[1].Parts, message.Part{Kind: message.ToolCall, CallID: call, Name: "look", Args: `{"at":"it"}`})
	turn[2].Parts = []message.Part{{Kind: message.ToolResult, CallID: call, Name: "look", Text: h.says(message.Tool, "seen").Text()}}
	h.named(&turn[2])
	return turn
}

// tells reports whether the engine can be told of turns.
func (h *turnHost) tells() bool {
	_, commits := h.engine.(core.TurnCommitter)
	_, afters := h.engine.(core.AfterTurner)
	return commits || afters
}

// accept has a turn accepted, which is part of the transcript from then on.
func (h *turnHost) accept(commit bool, turn []message.Message) string {
	front := h.list
	h.list = slices.Concat(front, turn)
	return h.tell(commit, front, turn)
}

// tell tells the engine of a turn behind what the transcript held: the turn is committed, or told afterwards, in the other way where the engine does not have that one.
func (h *turnHost) tell(commit bool, front, turn []message.Message) string {
	committer, commits := h.engine.(core.TurnCommitter)
	after, afters := h.engine.(core.AfterTurner)
	var err error
	switch h.accepts++; {
	case commits && (commit || !afters):
		h.does("committed")
		_, err = committer.CommitTurn(h.ctx(), core.CommitTurnRequest{Session: h.id, AdvancementKey: fmt.Sprint("turn ", h.accepts), Messages: copiedMessages(turn)})
	case afters:
		h.does("told afterwards")
		err = after.AfterTurn(h.ctx(), core.AfterTurnRequest{Session: h.id, Messages: copiedMessages(slices.Concat(front, turn)), PrePrompt: len(front)})
	}
	if err != nil {
		return fmt.Sprintf("%s: error %v", h.did[len(h.did)-1], err)
	}
	return ""
}

// asks asks for the window, with the first messages of a turn behind the transcript.
func (h *turnHost) asks(shown []message.Message, prompt string, call core.Call) string {
	var list []message.Message
	if h.system {
		list = append(list, message.New(message.System, fmt.Sprintf("turn %d has begun", h.turns)))
	}
	list = append(append(list, h.list...), shown...)
	if h.listed {
		list = copiedMessages(list)
		for i := range list {
			h.named(&list[i])
		}
	}
	var err error
	if h.got, err = h.assemble(transcriptBudget, func(r *core.AssembleRequest) {
		r.Transcript, r.Prompt, r.Call = &core.Transcript{Messages: copiedMessages(list)}, prompt, call
	}); err != nil {
		return fmt.Sprintf("assemble: error %v", err)
	}
	return ""
}

// between lets something happen that no transcript shows, or nothing.
func (h *turnHost) between() string {
	var err error
	kind := h.rng.Intn(6)
	switch e, ok := h.engine.(core.SubagentHost); {
	case kind == 0:
		h.does("a timer")
		_, err = h.engine.Ingest(h.ctx(), core.IngestRequest{Session: h.id, Message: h.says(message.User, "tick"), Heartbeat: true})
	case kind == 1 && ok:
		h.does("a subagent")
		child := kid(fmt.Sprintf("of %s, %d", h.id.Session, h.n))
		if _, err = e.PrepareSubagentSpawn(h.ctx(), core.SpawnRequest{Parent: h.id, Child: child}); err == nil {
			err = e.OnSubagentEnded(h.ctx(), core.SubagentEnded{Parent: h.id, Child: child, Reason: "completed", Result: h.says(message.Assistant, "found").Text()})
		}
	case kind == 2 && h.restarts():
		h.does("a restart")
		h.reopen(true)
	}
	if err != nil {
		return fmt.Sprintf("%s: error %v", h.did[len(h.did)-1], err)
	}
	return ""
}

// turn plays one turn: the prompt stands in the transcript, or the host appends it itself, and with it all of the turn.
func (h *turnHost) turn() string {
	h.turns++
	turn := h.looks()
	if n := len(h.list); n > 3 && h.rng.Intn(2) == 0 { // it says what the turn before said
		turn[0], turn[3] = h.list[n-4], h.list[n-1]
		h.named(&turn[0])
		h.named(&turn[3])
	}
	appended, prompt := h.rng.Intn(3) == 0, ""
	if appended {
		prompt = turn[0].Text()
	}
	shows := func(n int) []message.Message {
		if appended {
			return nil
		}
		return turn[:n]
	}
	h.does("turn %d", h.turns)
	for range 1 + h.rng.Intn(2) {
		h.does("asked for")
		if text := h.asks(shows(1), prompt, core.CallPrompt); text != "" {
			return text
		}
		if text := h.between(); text != "" {
			return text
		}
	}
	for n := 3; n <= 4 && h.rng.Intn(2) == 0; n++ {
		h.does("a further call")
		if text := h.asks(shows(n), prompt, core.CallLoop); text != "" {
			return text
		}
		if text := h.between(); text != "" {
			return text
		}
	}
	before := len(h.list)
	h.list = append(h.list, turn...) // with the ids that were shown
	return h.ends(turn, before)
}

// ends lets a turn be accepted, or fail: what it said stands in the transcript then, and nobody is told.
func (h *turnHost) ends(turn []message.Message, before int) string {
	if h.anew {
		turn = withOtherCalls(turn)
	}
	kind := h.rng.Intn(5)
	if h.stamped && kind < 4 {
		turn = copiedMessages(turn)
		for i := range turn {
			h.named(&turn[i])
			is := &h.list[before+i]
			is.Key, is.ID, is.Time = turn[i].Key, turn[i].ID, turn[i].Time
		}
	}
	if kind == 4 || !h.tells() {
		h.does("failed")
		return ""
	}
	if text := h.tell(kind < 2, h.list[:before], turn); text != "" {
		return text
	}
	stored := h.counts()
	for _, m := range turn {
		h.accepted[sayingOf(m)]++
		if n := h.accepted[sayingOf(m)]; stored[sayingOf(m)] < n {
			return fmt.Sprintf("what accepted turns said %d times is stored %d times: %q", n, stored[sayingOf(m)], sayingOf(m))
		}
	}
	return ""
}

func sayingOf(m message.Message) string { return string(m.Role) + " " + m.Text() }

// counts returns how often what is stored.
func (h *turnHost) counts() map[string]int {
	out := make(map[string]int)
	for _, e := range h.held(h.id) {
		if e.Type == core.TypeMessage && e.Role != message.System {
			out[sayingOf(e.Message)]++
		}
	}
	return out
}

// once looks whether the transcript is stored as often as it says something, and shown as it is.
func (h *turnHost) once() string {
	if text := h.asks(nil, "and now", core.CallPrompt); text != "" {
		return text
	}
	balance := h.counts()
	for _, m := range h.list {
		balance[sayingOf(m)]--
	}
	for said, n := range balance {
		if n != 0 {
			return fmt.Sprintf("what the host said is stored %d times more often: %q", n, said)
		}
	}
	return ""
}

// erases erases what two messages of the transcript say, one after the other, which shows them still.
func (h *turnHost) erases() string {
	if _, ok := h.engine.(engine.Forgetter); !ok {
		return ""
	}
	gone := make(map[string]bool)
	for range 2 {
		said := sayingOf(h.list[h.rng.Intn(len(h.list))])
		h.does("%q is erased", said)
		req := engine.ForgetRequest{Scope: h.id.Scope()}
		for _, e := range h.held(h.id) {
			if e.Type == core.TypeMessage && sayingOf(e.Message) == said {
				req.Entries = append(req.Entries, e.ID)
			}
		}
		if gone[said] = gone[said] || len(req.Entries) > 0; len(req.Entries) > 0 { // the newest may not have been shown yet
			if _, err := h.forgets(req); err != nil {
				return fmt.Sprintf("forget: error %v", err)
			}
		}
		if h.rng.Intn(2) == 0 && h.restarts() {
			h.reopen(true)
		}
		if h.rng.Intn(3) == 0 {
			h.does("all calls have other ids from now on")
			h.list = withOtherCalls(h.list)
		}
		for range 2 { // what a list taught is known to the next one
			if text := h.asks(nil, "and now", core.CallPrompt); text != "" {
				return text
			}
			h.list = append(h.list, h.says(message.Assistant, "goes on"))
			for said := range h.counts() {
				if gone[said] {
					return fmt.Sprintf("what was erased is stored again: %q", said)
				}
			}
		}
	}
	return ""
}

// withOtherCalls returns messages whose calls have other ids.
func withOtherCalls(list []message.Message) []message.Message {
	list = copiedMessages(list)
	for i := range list {
		for n := range list[i].Parts {
			if p := &list[i].Parts[n]; p.CallID != "" {
				p.CallID += "-anew"
			}
		}
	}
	return list
}

// erasedBefore erases something of a turn that runs, which is accepted under other names then.
func (s *script) erasedBefore(rng *rand.Rand) string {
	if _, ok := s.engine.(engine.Forgetter); !ok {
		return ""
	}
	for n, names := range []string{"", "id", "time", "id", "time", ""} {
		s.id = recallSession(fmt.Sprintf("erased before, %d", n))
		h := turnHost{script: s, rng: rng, names: names, list: []message.Message{}}
		if !h.tells() {
			return ""
		}
		turn, shown := h.looks(), 1+2*rng.Intn(2)
		if text := cmp.Or(h.asks(turn[:1], "", core.CallPrompt), h.asks(turn[:shown], "", core.CallLoop)); text != "" {
			return text
		}
		said := sayingOf(turn[rng.Intn(shown)])
		for _, e := range h.held(h.id) {
			if e.Type == core.TypeMessage && sayingOf(e.Message) == said {
				if _, err := h.forgets(engine.ForgetRequest{Scope: h.id.Scope(), Entries: []string{e.ID}}); err != nil {
					return fmt.Sprintf("forget: error %v", err)
				}
			}
		}
		turn = withOtherCalls(turn)
		for i := range turn {
			h.named(&turn[i])
		}
		if text := h.accept(n%2 == 0, turn); text != "" {
			return text
		}
		for range 2 {
			if text := h.asks(nil, "and now", core.CallPrompt); text != "" {
				return text
			}
			if h.list = append(h.list, h.says(message.Assistant, "goes on")); h.counts()[said] > 0 {
				return fmt.Sprintf("messages named by %q, %d of a turn shown: what was erased before the turn was accepted, under other names, is stored again: %q", names, shown, said)
			}
		}
	}
	return ""
}
