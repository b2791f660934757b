package experiment

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// verifier checks what an engine returns against what it was given. It uses nothing of an engine but its output.
type verifier struct {
	meter  *meter
	format string
	// said is what was ingested so far, cost what each costs, where the places of each by its content.
	said  []message.Message
	cost  []sent
	where map[[sha256.Size]byte][]int
	// lead is the number of leading system messages.
	lead  int
	call  int
	prev  *prompt
	found []Violation
}

// prompt is an assembled prompt as the verifier sees it.
type prompt struct {
	msgs []sent
	// origin is for each of msgs the index of the message it shows, -1 for what the engine made.
	// Of a message that is sent as several, only the first counts.
	origin []int
	// recall[0] <= i < recall[1] is the recall block.
	recall [2]int
	// newest is where the newest turn begins; len(msgs) when no user message is shown.
	newest int
	// tokens is the cost, the addition included.
	tokens, recalled, size int
	addition               string
	epoch                  uint64
	stepped                bool
	turn                   int
}

func newVerifier(m *meter, format string) *verifier {
	return &verifier{meter: m, format: format, where: make(map[[sha256.Size]byte][]int)}
}

func (v *verifier) fail(rule Rule, format string, args ...any) {
	v.found = append(v.found, Violation{Call: v.call, Rule: rule, Text: fmt.Sprintf(format, args...)})
}

// identity is the same for a message and what an engine shows of it: the original bytes stay with a message that was shortened.
func identity(m message.Message) [sha256.Size]byte {
	if m.Raw != nil {
		return sha256.Sum256(m.Raw)
	}
	return sha256.Sum256([]byte("made:" + message.Fingerprint(m)))
}

// tell takes note of a message that the engine was given.
func (v *verifier) tell(m message.Message) error {
	msgs, _, err := v.meter.prompt([]message.Message{m}, v.format)
	if err != nil {
		return err
	}
	total := sent{role: string(m.Role), blank: true}
	for i, s := range msgs {
		if i == 0 {
			total.sum = s.sum
		}
		total.tokens += s.tokens
		total.floor += s.floor
		total.size += s.size
		total.calls = append(total.calls, s.calls...)
		total.results = append(total.results, s.results...)
		total.blank = total.blank && s.blank
	}
	if m.Role == message.System && v.lead == len(v.said) {
		v.lead++
	}
	id := identity(m)
	v.where[id] = append(v.where[id], len(v.said))
	v.said, v.cost = append(v.said, m), append(v.cost, total)
	return nil
}

// see measures a prompt and finds out which messages it shows.
func (v *verifier) see(res core.AssembleResult) (*prompt, error) {
	msgs, at, err := v.meter.prompt(res.Messages, v.format)
	if err != nil {
		return nil, err
	}
	p := &prompt{
		msgs: msgs, origin: make([]int, len(msgs)), newest: len(msgs), addition: res.SystemPromptAddition,
		epoch: res.Epoch, stepped: res.Stepped,
	}
	p.tokens, p.size = v.meter.count(res.SystemPromptAddition), len(res.SystemPromptAddition)
	last := -1
	for i, m := range msgs {
		p.tokens += m.tokens
		p.size += m.size
		if recalled := at[i] >= res.RecallAt && at[i] < res.RecallAt+res.RecallLen; recalled {
			if p.recall[1] == 0 {
				p.recall[0] = i
			}
			p.recall[1] = i + 1
			p.recalled += m.tokens
			p.origin[i] = -1
			continue
		}
		if i > 0 && at[i] == at[i-1] {
			p.origin[i] = -1 // a further piece of the same message
			continue
		}
		p.origin[i] = v.place(res.Messages[at[i]], last)
		if p.origin[i] >= 0 {
			last = p.origin[i]
			if v.isPrompt(last) {
				p.newest = i
			}
		}
	}
	return p, nil
}

// place finds the message that m shows: the first one with its content behind the last one shown, or any other.
func (v *verifier) place(m message.Message, last int) int {
	places := v.where[identity(m)]
	for _, i := range places {
		if i > last {
			return i
		}
	}
	if len(places) > 0 {
		return places[len(places)-1]
	}
	return -1
}

// isPrompt reports whether a message begins a turn.
func (v *verifier) isPrompt(i int) bool {
	return v.said[i].Role == message.User && v.said[i].Type == ""
}

// check verifies one prompt; fresh says that something was compacted since the last one.
func (v *verifier) check(p *prompt, budget int, fresh bool) {
	if p.tokens > budget {
		v.fail(RuleBudget, "%d tokens, the budget is %d", p.tokens, budget)
	}
	v.pairs(p)
	v.order(p)
	v.recallPlace(p)
	if v.prev != nil && !fresh && !p.stepped && p.epoch == v.prev.epoch {
		v.prefix(v.prev, p, p.turn == v.prev.turn)
	}
	v.prev = p
}

// pairs verifies that calls are answered: by their results, all of them, at once.
func (v *verifier) pairs(p *prompt) {
	open := make(map[string]int)
	left := 0
	for i, m := range p.msgs {
		for _, id := range m.results {
			if open[id] == 0 {
				v.fail(RulePairs, "message %d is the result of call %q, which is not in front of it", i, id)
				continue
			}
			open[id]--
			left--
		}
		if left > 0 && len(m.results) == 0 {
			v.fail(RulePairs, "%d calls in front of message %d have no result", left, i)
			clear(open)
			left = 0
		}
		for _, id := range m.calls {
			open[id]++
			left++
		}
	}
	if left > 0 {
		v.fail(RulePairs, "%d calls at the end have no result", left)
	}
}

// order verifies that what is shown is in order, once, with the system messages in front and the newest message at the end.
func (v *verifier) order(p *prompt) {
	last, leading := -1, 0
	shown := make(map[int]bool, len(p.origin))
	for i, o := range p.origin {
		switch {
		case o < 0:
			continue
		case shown[o]:
			v.fail(RuleTwice, "message %d shows entry %d again", i, o)
		case o < last:
			v.fail(RuleOrder, "message %d shows entry %d behind entry %d", i, o, last)
		}
		shown[o] = true
		last = max(last, o)
		if o < v.lead {
			leading++
		}
	}
	if leading < v.lead && !p.blankLead(v) {
		v.fail(RuleSystem, "%d of %d leading system messages are shown", leading, v.lead)
	}
	newest := len(v.said) - 1
	// People say the same thing twice: what is shown last counts as the newest message if it says the same.
	if newest >= 0 && v.isPrompt(newest) && !v.cost[newest].blank && (last < 0 || identity(v.said[last]) != identity(v.said[newest])) {
		v.fail(RuleNewest, "the newest message shown is entry %d, the newest there is %d", last, newest)
	}
}

// blankLead reports whether a leading system message says nothing: rules may leave it out.
func (p *prompt) blankLead(v *verifier) bool {
	for _, c := range v.cost[:v.lead] {
		if c.blank {
			return true
		}
	}
	return false
}

// recallPlace verifies that the recall block stands directly in front of the newest turn, or at the end.
func (v *verifier) recallPlace(p *prompt) {
	if p.recall[1] == 0 || p.recall[1] == len(p.msgs) {
		return
	}
	if p.recall[1] != p.newest && p.newest < len(p.msgs) {
		v.fail(RuleRecall, "the recall block ends at message %d, the newest turn begins at %d", p.recall[1], p.newest)
	}
}

// refused verifies a failed call: a budget error needs a reason.
func (v *verifier) refused(err error, budget int, addition string) {
	if !errors.Is(err, core.ErrBudget) {
		return
	}
	whole, floor := v.necessary(addition)
	if float64(whole) <= 0.9*float64(budget) {
		v.fail(RuleBudgetError, "system prompt, newest user message and newest messages cost %d tokens, the budget is %d: %v", whole, budget, err)
	} else if float64(floor) <= 0.9*float64(budget) {
		v.fail(RuleBudgetError, "shortened, system prompt, newest user message and newest messages cost %d tokens, the budget is %d: %v", floor, budget, err)
	}
}

// necessary counts what must be in the next prompt: system messages, the newest turn's user message and the newest group; whole, and with
// every text shortened.
func (v *verifier) necessary(addition string) (whole, floor int) {
	n := v.meter.count(addition)
	whole, floor = n, n
	need := make(map[int]bool)
	for i := range v.lead {
		need[i] = true
	}
	group := len(v.said) - 1
	for group > v.lead && v.said[group].Role == message.Tool {
		group--
	}
	for i := max(group, 0); i < len(v.said); i++ {
		need[i] = true
	}
	for i := len(v.said) - 1; i >= 0; i-- {
		if v.isPrompt(i) {
			need[i] = true
			break
		}
	}
	for i := range need {
		whole += v.cost[i].tokens
		if i < v.lead {
			floor += v.cost[i].tokens
		} else {
			floor += v.cost[i].floor
		}
	}
	return whole, floor
}
