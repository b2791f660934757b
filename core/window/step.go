package window

import "slices"

// Group is what the planner knows of a group of messages: a tool call with all its results, or a single message.
type Group struct {
	// Cost is what the group costs now, in tokens.
	Cost int
	// Results are the tool results that could be masked, in order.
	Results []Result
	// Turn says that the group is a user message that begins a turn.
	Turn bool
}

// Result is a tool result of a Group.
type Result struct {
	// Saves is what masking it saves, in tokens; nothing to save means it is never masked.
	Saves int
}

// Mask names a result to be masked.
type Mask struct{ Group, Result int }

// Plan is the outcome of Step.
type Plan struct {
	// Drop is the number of oldest groups that leave.
	Drop int
	// Pin says that the newest turn's user message stays although it is among them; PinGroup is its group.
	Pin      bool
	PinGroup int
	// Masks are the results to be masked, all in groups that stay.
	Masks []Mask
	// Total is the cost afterwards, fixed costs included.
	Total int
}

// Step plans how a window whose total cost exceeds the high mark gets down to the low mark.
//
// fixed is what is shown besides the groups; pin is what showing a pinned user message costs on top of the message (a marker). Order of
// means: mask old results, as many as needed; leave out the groups of older turns; mask results of the newest turn; leave out
// its oldest groups, but never its user message nor the newest group. The last may leave Total above the low mark, even above Hard: then what
// remains has to be clipped by the caller.
func Step(groups []Group, fixed int, m Marks, keepResults, pin int) Plan {
	total := fixed
	for _, g := range groups {
		total += g.Cost
	}
	n := len(groups)
	if n == 0 {
		return Plan{Total: total}
	}
	turn := newestTurn(groups)
	p := planner{groups: groups, cost: make([]int, n), masked: make(map[Mask]bool), total: total}
	for i, g := range groups {
		p.cost[i] = g.Cost
	}

	p.maskUpTo(olderResults(groups, keepResults), m.Low)
	// Older turns leave. The newest turn begins with its user message, or there is none and everything is one turn.
	last := n - 1
	end := last
	if turn >= 0 {
		end = turn
	}
	p.dropUpTo(end, m.Low)
	if p.total > m.Low && p.drop == end {
		p.newestTurn(turn, last, m, pin)
	}
	return p.plan()
}

type planner struct {
	groups   []Group
	cost     []int
	masked   map[Mask]bool
	order    []Mask
	total    int
	drop     int
	pin      bool
	pinGroup int
}

// newestTurn shrinks a turn that alone exceeds the low mark.
func (p *planner) newestTurn(turn, last int, m Marks, pin int) {
	var own []Mask
	for g := p.drop; g < last; g++ {
		for r := range p.groups[g].Results {
			own = append(own, Mask{g, r})
		}
	}
	p.maskUpTo(own, m.Low)
	if p.total <= m.Low || last == p.drop {
		return
	}
	if turn < 0 {
		p.dropUpTo(last, m.Low)
		return
	}
	// The user message stays in front of what is left of its turn.
	if turn+1 >= last {
		return
	}
	p.pin, p.pinGroup = true, turn
	p.total += pin
	p.drop = turn + 1
	p.dropUpTo(last, m.Low)
}

// maskUpTo masks in order until total is at most low.
func (p *planner) maskUpTo(candidates []Mask, low int) {
	for _, c := range candidates {
		if p.total <= low {
			return
		}
		saves := p.groups[c.Group].Results[c.Result].Saves
		if saves <= 0 || p.masked[c] {
			continue
		}
		p.masked[c] = true
		p.order = append(p.order, c)
		p.cost[c.Group] -= saves
		p.total -= saves
	}
}

// dropUpTo leaves out groups before end until total is at most low. A group that would have to leave is masked instead where that is enough:
// its calls stay, and the window is not emptied further than it has to be.
func (p *planner) dropUpTo(end, low int) {
	for p.drop < end && p.total > low {
		g := p.drop
		saves := 0
		for r, res := range p.groups[g].Results {
			if !p.masked[Mask{g, r}] {
				saves += max(res.Saves, 0)
			}
		}
		if saves > 0 && p.total-saves <= low {
			for r := range p.groups[g].Results {
				p.maskUpTo([]Mask{{g, r}}, low)
			}
			return
		}
		p.total -= p.cost[g]
		p.drop++
	}
}

func (p *planner) plan() Plan {
	out := Plan{Drop: p.drop, Pin: p.pin, PinGroup: p.pinGroup, Total: p.total}
	for _, c := range p.order {
		if c.Group >= p.drop {
			out.Masks = append(out.Masks, c)
		}
	}
	return out
}

// newestTurn returns the group that begins the newest turn, or -1.
func newestTurn(groups []Group) int {
	for i, group := range slices.Backward(groups) {
		if group.Turn {
			return i
		}
	}
	return -1
}

// olderResults lists all results but the newest keep, oldest first.
func olderResults(groups []Group, keep int) []Mask {
	var all []Mask
	for g := range groups {
		for r := range groups[g].Results {
			all = append(all, Mask{g, r})
		}
	}
	return all[:max(len(all)-keep, 0)]
}
