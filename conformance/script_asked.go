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
	"github.com/contextengine/contextengine/core/window"
)

// askedScriptChecks look at what an engine keeps and says for others than the model.
var askedScriptChecks = []Check{
	{ID: "contract.score", Promise: 2, Suite: SuiteEngine, Needs: []Need{NeedScorer}, script: scriptScore,
		Rule: "an outcome is kept, one of the same session, turn and name takes its place, and they come in the order they were first given"},
	{ID: "contract.arm", Promise: 2, Suite: SuiteEngine, Needs: []Need{NeedArmed}, script: scriptArm,
		Rule: "what was chosen for a session is recorded, and handed over the next time, also after a restart, and to no other session, whatever its name; its turns name it"},
	{ID: "contract.choices", Suite: SuiteEngine, script: scriptChoices,
		Rule: "recent history is shown without a gap, a user's message in front of one is pinned, and what is out says what it would have cost"},
	{ID: "contract.due", Promise: 4, Suite: SuiteEngine, Needs: []Need{NeedOwner}, script: scriptDue,
		Rule: "a compaction is due where history of many times the budget left the window, in every prompt until one has reached the threshold, and no longer then"},
	{ID: "contract.steered", Suite: SuiteEngine, script: scriptSteered,
		Rule: "where what was asked last decides what is recalled, a prompt that the host appends itself does so too"},
	{ID: "contract.hidden", Promise: 2, Suite: SuiteEngine, Needs: []Need{NeedRecaller}, script: scriptHidden,
		Rule: "heartbeats and what was erased, reset or forked away are neither found nor expanded; what a host only no longer shows is"},
	{ID: "contract.found", Promise: 2, Suite: SuiteEngine, Needs: []Need{NeedRecaller}, script: scriptFound,
		Rule: "what holds the query byte for byte is found first, a search without bounds keeps to those of its own, times are half open, and pages followed to the end show all, whatever ends them"},
	{ID: "contract.neighbours", Promise: 2, Suite: SuiteEngine, Needs: []Need{NeedRecaller}, script: scriptNeighbours,
		Rule: "an entry is expanded with as many neighbours as may be asked for, in order, and every page says how many there are"},
	{ID: "contract.forgotten", Promise: 2, Suite: SuiteEngine, script: scriptForgotten,
		Rule: "what was erased comes back with a host's transcript after a purge alone; a request that contradicts itself, or names one of the engine's own records, erases nothing; an agent's scope is all of its sessions"},
	{ID: "contract.loud", Promise: 9, Suite: SuiteEngine, script: scriptLoud,
		Rule: "a call that was to store something returns an error where it did not, whatever else it says of it, and does it when it is made again"},
	{ID: "contract.at-once", Promise: 8, Suite: SuiteEngine, script: scriptAtOnce,
		Rule: "a call for a session in use waits for its turn, and calls for several sessions at the same time store what each of them was given, where it belongs"},
}

func scriptScore(s *script) string {
	e, _ := s.engine.(engine.Scorer)
	other := core.SessionID{Agent: s.id.Agent, Session: "scored too"}
	armed, arm := s.engine.(engine.Armed)
	if arm {
		if _, err := armed.Arm(s.ctx(), s.id, func(string) string { return "a" }); err != nil {
			return fmt.Sprintf("arm: error %v", err)
		}
	}
	if _, text := s.talk(s.id, 2, 3); text != "" {
		return text
	}
	early := s.env.Host.Now().Add(-time.Hour)
	given := []engine.Outcome{
		{Session: other, Turn: 2, Name: "zeal" + strings.Repeat("-", 60), Value: 3}, {Session: s.id, Turn: 1, Name: "rating", Value: 1}, {Session: s.id, Name: "rating", Value: -2.5, Time: early}, {Session: other, Turn: 1, Name: "rating", Value: 4},
		{Session: s.id, Turn: 1, Name: "Rating.2", Value: 5}, {Session: s.id, Turn: 1, Name: "RATING", Value: 1.0 / 3},
		{Session: s.id, Turn: 1, Name: "rating", Value: 7, Time: early.Add(time.Minute)},
	}
	for i, o := range given {
		if o.Time.IsZero() {
			given[i].Time = s.env.Host.Now()
		}
		if err := e.Score(s.ctx(), o); err != nil {
			return fmt.Sprintf("score %+v: error %v", o, err)
		}
		s.env.Host.advance(time.Second)
	}
	want := slices.Concat(given[:1], given[6:], given[2:6])
	for restarted := range 2 {
		if restarted == 1 {
			if !s.restarts() {
				break
			}
			s.reopen(true)
			e, _ = s.engine.(engine.Scorer)
		}
		got, err := e.Outcomes(s.ctx(), s.id.Agent)
		same := func(a, b engine.Outcome) bool {
			return a.Session == b.Session && a.Turn == b.Turn && a.Name == b.Name && a.Value == b.Value && a.Time.Truncate(time.Millisecond).Equal(b.Time) && (!arm || (a.Arm == "a") == (a.Session == s.id))
		}
		if err != nil || !slices.EqualFunc(got, want, same) {
			return fmt.Sprintf("the outcomes, after a restart: %v, are %+v, error %v, want %+v with arms", restarted == 1, got, err, want)
		}
	}
	if got, err := e.Outcomes(s.ctx(), "agent-c"); err != nil || len(got) > 0 {
		return fmt.Sprintf("the outcomes of an agent that has none are %+v, error %v", got, err)
	}
	for _, bad := range []engine.Outcome{{Name: "rating"}, {Session: s.id}, {Session: s.id, Name: "two words"}, {Session: s.id, Name: strings.Repeat("n", 65)}, {Session: s.id, Name: "rating", Turn: -1}, {Session: s.id, Name: "rating", Value: math.NaN()}} {
		if err := e.Score(s.ctx(), bad); !errors.Is(err, core.ErrInvalid) {
			return fmt.Sprintf("score %+v: error %v, want ErrInvalid", bad, err)
		}
	}
	if got, err := e.Outcomes(s.ctx(), s.id.Agent); err != nil || len(got) != len(want) {
		return fmt.Sprintf("%d outcomes after invalid ones, error %v, want %d", len(got), err, len(want))
	}
	return s.scoresMany(e)
}

func scriptArm(s *script) string {
	other, namesake := core.SessionID{Agent: s.id.Agent, Session: "another arm"}, core.SessionID{Agent: "agent-b", Session: s.id.Session}
	soon := core.SessionID{Agent: "agent-c", Session: s.id.Session} // a namesake, too, that comes while the same engine knows of the first
	// Names that are alike where they are joined.
	joined, alike := core.SessionID{Agent: "agent-a/x", Session: "y"}, core.SessionID{Agent: "agent-a", Session: "x/y"}
	for n, c := range []struct {
		id              core.SessionID
		recorded, chose string
		restart         bool
	}{
		{s.id, "", "Arm A", false}, {s.id, "Arm A", "Arm A", false}, {soon, "", "soon", false}, {other, "", "b/Ö.2", false}, {s.id, "Arm A", "c", false}, {s.id, "c", "c", true}, {other, "b/Ö.2", "b/Ö.2", false},
		{other, "b/Ö.2", " two  words\n", false}, {other, " two  words\n", " two  words\n", true},
		{namesake, "", "of the namesake", false}, {s.id, "c", "c", false}, {namesake, "of the namesake", "of the namesake", false}, {joined, "", "j", false}, {alike, "", "k", false},
		{joined, "j", "j", true}, {alike, "k", "k", false}, {namesake, "of the namesake", "d", false}, {s.id, "c", "c", true},
	} {
		if c.restart && s.restarts() {
			s.reopen(true)
		}
		e, _ := s.engine.(engine.Armed)
		var handed []string // it may be asked more than once
		got, err := e.Arm(s.ctx(), c.id, func(recorded string) string { handed = append(handed, recorded); return c.chose })
		other := func(recorded string) bool { return recorded != c.recorded }
		if err != nil || len(handed) == 0 || slices.ContainsFunc(handed, other) || got != c.chose {
			return fmt.Sprintf("arm %d, of %s: choose was handed %q, the arm is %q, error %v; want %q and %q", n+1, c.id, handed, got, err, c.recorded, c.chose)
		}
		said, text := s.talk(c.id, 2, 2)
		if text == "" {
			text = namesArm(said, 1, c.chose)
		}
		if text != "" {
			return text
		}
		if r, ok := s.engine.(engine.Recaller); ok {
			if d, err := r.Describe(s.ctx(), engine.DescribeRequest{Session: c.id}); err != nil || d.Arm != c.chose {
				return fmt.Sprintf("describe of a session of the arm %q names %q, error %v", c.chose, d.Arm, err)
			}
		}
	}
	return s.turnsNameArms()
}

func scriptChoices(s *script) string {
	if _, text := s.talk(s.id, 24, 25); text != "" {
		return text
	}
	if text := s.trueChoices(s.id); text != "" {
		return "a conversation that outgrew its budget: " + text
	}
	turn := core.SessionID{Agent: "agent-b", Session: "one long turn"}
	list := []message.Message{s.message(message.User, "look at all of it")}
	for range 14 {
		call := s.message(message.Assistant, "looks")
		id := fmt.Sprintf("call-%d", s.n)
		call.Parts = append(call.Parts, message.Part{Kind: message.ToolCall, CallID: id, Name: "look", Args: `{"at":"it"}`})
		result := s.message(message.Tool, "")
		result.Parts = []message.Part{{Kind: message.ToolResult, CallID: id, Name: "look", Text: strings.Repeat("the harbour is quiet ", 20)}}
		list = append(list, call, result)
	}
	for i := range list {
		if res, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: turn, Message: list[i]}); err != nil || res.Ingested != 1 {
			return fmt.Sprintf("ingest: %+v, error %v", res, err)
		}
	}
	if text := s.trueChoices(turn); text != "" {
		return "a turn that outgrew its budget: " + text
	}
	return ""
}

// trueChoices looks at the choices of a prompt that has room for the end of a session alone.
func (s *script) trueChoices(id core.SessionID) string {
	res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: 900})
	if err != nil {
		return fmt.Sprintf("assemble: error %v", err)
	}
	why := map[string]window.Reason{}
	said, count := 0, 0
	for _, c := range res.Choices {
		switch {
		case c.Message >= 0 && slices.Contains(shownAs, c.Reason):
			why[c.Entry] = c.Reason
		case c.Message < 0 && c.Reason != window.OutAllowance:
			said, count = said+c.Tokens, count+c.Count
		}
	}
	held := s.held(id)
	cost, out := 0, 0
	for i, e := range held {
		if why[e.ID] == "" {
			cost, out = cost+e.Tokens, out+1
			continue
		}
		gap := i+1 < len(held) && why[held[i+1].ID] == ""
		if e.Role == message.User && gap != (why[e.ID] == window.ReasonPinned) || gap && why[e.ID] == window.ReasonTail {
			return fmt.Sprintf("entry %d of %d, the %s's, is shown for %q, and the next one is left out: %v", i, len(held), e.Role, why[e.ID], gap)
		}
	}
	// What a run would have cost is told about.
	if count != out || said < cost/2 || said > cost*2 {
		return fmt.Sprintf("%d of %d entries are left out and would have cost %d tokens; the choices say %d and %d", out, len(held), cost, count, said)
	}
	return ""
}

// steering are two things that a conversation was about.
var steering = []string{"kestrel nest", "saffron crate"}

func scriptSteered(s *script) string {
	var preface strings.Builder
	for n := range 130 {
		fmt.Fprintf(&preface, "%d ", 1000+n)
	}
	if text := s.steeredBy("", 0); text != "" {
		return text
	}
	return s.steeredBy(preface.String(), 30)
}

// steeredBy asks about one thing or the other, with something in front that has nothing to do with either, and names the thing so many times more.
func (s *script) steeredBy(preface string, more int) string {
	budget := 700 + len(preface)
	// By the thing asked about and how: as the newest message, or as a prompt of the host's.
	recalled := map[string]map[bool]string{}
	for n, about := range steering {
		recalled[about] = map[bool]string{}
		for _, prompt := range []bool{false, true} {
			id := core.SessionID{Agent: fmt.Sprintf("steered-%d-%v-%d", n, prompt, len(preface)), Session: "main"}
			list, text := s.twoThings(id)
			if text != "" {
				return text
			}
			req := core.AssembleRequest{Session: id, Budget: budget, Transcript: &core.Transcript{Messages: list}}
			ask := s.message(message.User, fmt.Sprintf("%sWhat did we say about the %s, and when?", preface, about)+strings.Repeat(" The "+about+"!", more))
			if prompt {
				req.Prompt = ask.Text()
			} else {
				req.Transcript.Messages = append(slices.Clone(list), ask)
			}
			res, err := s.engine.Assemble(s.ctx(), req)
			if err != nil || res.RecallAt+res.RecallLen > len(res.Messages) {
				return fmt.Sprintf("assemble: a recall block of %d at %d in %d messages, error %v", res.RecallLen, res.RecallAt, len(res.Messages), err)
			}
			recalled[about][prompt] = mostly(res.Messages[res.RecallAt : res.RecallAt+res.RecallLen])
		}
	}
	for _, about := range steering {
		if recalled[about][false] != about {
			return "" // what is recalled does not depend on what is asked, or nothing is
		}
	}
	if got := recalled[steering[0]][true]; got == recalled[steering[1]][true] {
		return fmt.Sprintf("what the newest message asks about is what is recalled; asked in a prompt of the host's, behind %d bytes of something else, once about the %s and once about the %s, it is %q both times", len(preface), steering[0], steering[1], got)
	}
	for n, about := range steering {
		if recalled[about][true] != about || recalled[steering[1-n]][true] == about {
			return ""
		}
	}
	return s.steeredAnew()
}

// steeredAnew asks about one thing and then about the other in a session, before the host says that it asked.
func (s *script) steeredAnew() string {
	for n := range steering {
		id := core.SessionID{Agent: fmt.Sprintf("steered-anew-%d-%d", n, s.n), Session: "main"}
		list, text := s.twoThings(id)
		if text != "" {
			return text
		}
		for i, about := range []string{steering[n], steering[1-n]} {
			prompt := fmt.Sprintf("What did we say about the %s, and when?", about)
			res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: 700, Transcript: &core.Transcript{Messages: list}, Prompt: prompt})
			if err != nil || res.RecallAt+res.RecallLen > len(res.Messages) {
				return fmt.Sprintf("assemble: a recall block of %d at %d in %d messages, error %v", res.RecallLen, res.RecallAt, len(res.Messages), err)
			}
			if got := mostly(res.Messages[res.RecallAt : res.RecallAt+res.RecallLen]); i == 1 && got == steering[n] {
				return fmt.Sprintf("asked in a prompt of the host's about the %s, and then in another one about the %s, it recalls the %s", steering[n], about, got)
			}
		}
	}
	return ""
}

// twoThings are the messages of a conversation of which what was said of two things has left the window.
func (s *script) twoThings(id core.SessionID) ([]message.Message, string) {
	var list []message.Message
	say := func(text string) {
		list = append(list, s.message([]message.Role{message.User, message.Assistant}[len(list)%2], text))
	}
	for n := range 16 {
		say(fmt.Sprintf("note %d on the %s%s", n, steering[n/2%2], strings.Repeat(", which moved", 12)))
	}
	for range 10 {
		say(strings.Repeat("the budget report moved ", 25))
	}
	e, ok := s.engine.(core.BatchIngester)
	if ok {
		_, err := e.IngestBatch(s.ctx(), core.IngestBatchRequest{Session: id, Messages: list})
		if err != nil {
			return nil, fmt.Sprintf("ingest batch: error %v", err)
		}
	}
	return list, "" // the others take them up from the transcript
}

// mostly returns what a recall block names more often than the other thing; empty where it does not.
func mostly(block []message.Message) string {
	n := make([]int, len(steering))
	for i, about := range steering {
		for _, m := range block {
			n[i] += strings.Count(m.Text(), about)
		}
	}
	switch {
	case n[0] > n[1]:
		return steering[0]
	case n[1] > n[0]:
		return steering[1]
	}
	return ""
}

func scriptDue(s *script) string {
	// Ten times the budget and more has left the window.
	const budget = 400
	entries, text := s.talk(s.id, 34, 25)
	if text != "" {
		return text
	}
	// As long as nothing is compacted it stays due: asked once more, after a message more, after a restart, and asked once more there.
	for n := range 5 {
		switch n {
		case 2:
			if _, text := s.talk(s.id, 1, 3); text != "" {
				return text
			}
		case 3:
			if s.restarts() {
				s.reopen(true)
			}
		}
		res, err := s.assemble(budget, nil)
		if err != nil {
			return fmt.Sprintf("assemble: error %v", err)
		}
		left := 0
		for _, c := range res.Choices {
			if c.Reason == window.ReasonSummary || c.Reason == window.OutCompacted {
				return "" // it needs nobody to ask it
			}
			if c.Reason == window.OutBudget {
				left += c.Count
			}
		}
		if left > 0 && !res.CompactionDue {
			return fmt.Sprintf("%d of %d entries, several times the budget, have left the window, and in prompt %d, without a compaction so far, none is due", left, len(entries), n+1)
		}
	}
	worked := false
	for range len(entries) {
		done, err := s.engine.Compact(s.ctx(), core.CompactRequest{Session: s.id, Budget: budget, Target: core.TargetThreshold})
		if err != nil {
			return fmt.Sprintf("compact: error %v", err)
		}
		if !done.Compacted {
			break
		}
		worked = true
	}
	// One that is not possible, as of what the compactor gave nothing may be taken, stays due.
	if res, err := s.assemble(budget, nil); err != nil || worked && res.CompactionDue {
		return fmt.Sprintf("assemble after a compaction for which the target was the threshold: error %v, a compaction is due: %v", err, res.CompactionDue)
	}
	return ""
}
