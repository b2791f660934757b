package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// warmUp brings the entries from the window's start on into memory. It reads from the end backwards, never the whole history.
func (s *session) warmUp(ctx context.Context) error {
	if s.warm {
		return nil
	}
	v := &s.view
	n := v.Len()
	start := max(v.Start, v.Lead, 0)
	if v.Start < 0 {
		// The path was cut before the old start: a window of the old size is found anew from the end.
		var err error
		if start, err = s.e.reader.walkBack(ctx, v, n, s.e.cfg.fresh(v), 0); err != nil {
			return err
		}
	}
	items, err := s.e.reader.read(ctx, v, start, n)
	if err != nil {
		return err
	}
	lead, err := s.e.reader.readLead(ctx, v)
	if err != nil {
		return err
	}
	s.items, s.lead, s.base, s.most = items, lead, start, nil
	s.pinned = nil
	if v.Pinned != "" {
		pinned, err := s.e.reader.find(ctx, v, v.Pinned)
		if err != nil {
			return fmt.Errorf("core: session %q: pinned entry: %w", s.id, err)
		}
		it := s.e.gauge.pinned(pinned, stubOf(v, v.Pinned))
		s.pinned = &it
	}
	s.warm = true
	return nil
}

// fresh is how many tokens of history a window that is made anew reads.
func (c *Config) fresh(v *core.View) int {
	return int(float64(max(v.Budget, 8000)) * c.Window.Low)
}

// bounded is about what an entry costs once it is clipped.
func (c *Config) bounded(tokens, budget int) int {
	if budget == 0 {
		return tokens
	}
	return min(tokens, c.clipLimit(budget)+40)
}

func stubOf(v *core.View, id string) *window.Stub {
	if st, ok := v.Stubs[id]; ok {
		return &st
	}
	return nil
}

// frame is the window of one call on its way to a prompt. It holds until the next is made.
type frame struct {
	e      *Engine
	s      *session
	v      core.View // the view as it will be published
	policy history.Policy
	ws     *workspace
	// msgs are the window's messages after the history rules, costs what each costs. Their Entry is of no use.
	msgs  []message.Message
	costs []int
	// groups says how msgs belong together, once a step asks for it.
	groups []history.Group
	// items are the session's, and base is the position of the first, as they were when the frame was made: a step that follows takes none of them away.
	// visible lists those that are not hidden, by index, and shown says which of the visible ones each of msgs shows: rules merge messages.
	items   []item
	base    int
	visible []int
	shown   *ownership
}

// frame applies the history rules to the window and measures it.
func (s *session) frame(v core.View, policy history.Policy, ws *workspace) *frame {
	msgs, visible := slices.Grow(ws.msgs[:0], len(s.items)), ws.visible[:0]
	names, apart := ws.numbers(len(s.items)), apartness{blocks: recallsOf(&v), place: s.base}
	for i := range s.items {
		it := &s.items[i]
		if apart.before(it) {
			msgs = append(msgs, apartMessage)
		}
		if it.hidden() {
			continue
		}
		msgs = append(msgs, it.msg)
		msgs[len(msgs)-1].Entry = names[len(visible)] // to find it again behind the rules
		visible = append(visible, i)
	}
	ws.msgs, ws.visible = kept(msgs, ws.msgs), visible
	f := &frame{
		e: s.e, s: s, v: v, policy: policy, ws: ws, msgs: history.Apply(msgs, policy), costs: ws.costs[:0],
		items: s.items, base: s.base, visible: visible, shown: &ws.shown,
	}
	if len(msgs) > len(visible) {
		f.msgs = slices.DeleteFunc(f.msgs, func(m message.Message) bool { return m.Entry == apartMessage.Entry })
	}
	f.shown.read(f.msgs, names[:len(visible)])
	for i := range f.msgs {
		f.costs = append(f.costs, s.costOf(&f.msgs[i], f.begins(i)))
	}
	ws.costs = f.costs
	return f
}

// apartMessage stands between two messages that no rule may merge: those with a type of their own are never merged. Its Entry is no number, which tells it from
// a host's.
var apartMessage = message.Message{Role: message.User, Type: "apart", Entry: "apart", Parts: []message.Part{{Kind: message.Text, Text: "apart"}}}

// apartness finds the assistant's messages that only a recall block separates from the assistant's before it. A rule that merged them would change what was
// sent in front of the block.
type apartness struct {
	blocks []*core.Recall
	place  int
	// assistant says that the last message that says something is the assistant's, behind that a block stands behind it.
	assistant, behind bool
}

// before looks at the next item, and reports whether it must stay apart from what is in front of it.
func (a *apartness) before(it *item) bool {
	for len(a.blocks) > 0 && a.blocks[0].At <= a.place {
		a.behind, a.blocks = a.assistant, a.blocks[1:]
	}
	a.place++
	if len(a.blocks) == 0 && !a.behind { // nothing to keep apart any more
		return false
	}
	if it.hidden() || window.SaysNothing(it.msg) {
		return false
	}
	apart := a.behind && it.msg.Role == message.Assistant
	a.assistant, a.behind = it.msg.Role == message.Assistant, false
	return apart
}

// item returns the n-th visible item, place its position on the path.
func (f *frame) item(n int) *item { return &f.items[f.visible[n]] }

func (f *frame) place(n int) int { return f.base + f.visible[n] }

// begins returns the item that message i begins with, nil when a rule made the message.
func (f *frame) begins(i int) *item {
	if n := f.shown.first[i]; n >= 0 {
		return f.item(n)
	}
	return nil
}

// group divides the messages into groups. Subagents' results join the groups they follow: they came to what stands there, and must not displace it as
// the newest.
func (f *frame) group() {
	groups := history.Groups(f.msgs)
	f.groups = groups[:0]
	for _, g := range groups {
		it := f.begins(g.From)
		if n := len(f.groups); n > 0 && it != nil && it.entry.Type == core.TypeSubagent {
			f.groups[n-1].To = g.To
			continue
		}
		f.groups = append(f.groups, g)
	}
}

// fixed is what is shown besides the window, in tokens.
func (f *frame) fixed(addition int) int {
	n := addition
	for i := range f.s.lead {
		n += f.s.lead[i].cost
	}
	for _, sum := range shownSummaries(&f.v) {
		n += sum.Tokens
	}
	if f.left() > 0 {
		n += noteCost
	}
	if p := f.pinned(); p != nil {
		n += p.cost + noteCost
	}
	for i := range f.v.Kept {
		n += f.v.Kept[i].Tokens
	}
	return n
}

// What View.Lean leaves out, level by level: when the newest messages do not fit otherwise, they go before anything else does.
const (
	leanSummaries = iota + 1 // summaries and notes
	leanUnpinned             // the pinned message
)

// noteCost is more than a note of the engine's costs, whatever number it names.
const noteCost = 24

// summariesShare bounds what summaries may take of the budget.
const summariesShare = 0.4

// shownSummaries returns the newest summaries that have room.
func shownSummaries(v *core.View) []core.Summary {
	if v.Lean >= leanSummaries {
		return nil
	}
	room := int(float64(v.Budget) * summariesShare)
	summaries := v.Front().Summaries
	from := len(summaries)
	for from > 0 {
		if room -= summaries[from-1].Tokens; room < 0 {
			break
		}
		from--
	}
	return summaries[from:]
}

// left is the number of entries that the note in front of the window speaks of: neither the window nor a summary shows them.
func (f *frame) left() int {
	if !f.e.cfg.Window.Note || f.v.Lean >= leanSummaries {
		return 0
	}
	return f.v.Front().Left
}

// plannerGroups describes the window to the planner.
func (f *frame) plannerGroups() []window.Group {
	out := make([]window.Group, len(f.groups))
	for i, g := range f.groups {
		wg := &out[i]
		for j := g.From; j < g.To; j++ {
			wg.Cost += f.costs[j]
			for _, n := range f.shown.members(j) {
				it := f.item(n)
				if isPrompt(it.entry) {
					wg.Turn = true
				}
				if f.msgs[j].Role == message.Tool && it.entry.Role == message.Tool {
					wg.Results = append(wg.Results, window.Result{Saves: f.maskSaving(it)})
				}
			}
		}
	}
	return out
}

// maskSaving is what masking the results of an item would save; 0 when they are masked already.
func (f *frame) maskSaving(it *item) int {
	if st, ok := f.v.Stubs[it.entry.ID]; ok && st.Kind == window.Masked {
		return 0
	}
	return max(it.cost-f.e.gauge.mask(it.entry).Tokens, 0)
}

// workspace is the room that an Assemble works in, as large as its window: half a megabyte for a thousand messages. It is kept for the calls that
// follow, whatever their session. One call has it at a time, and nothing in it outlives the call: what is returned or published is a copy, and a retriever
// is given none of it.
type workspace struct {
	// names are the numbers from 0 on, as text.
	names []string
	// visible, msgs, costs and shown are the frame's.
	visible []int
	msgs    []message.Message
	costs   []int
	shown   ownership
	// slots are the messages of the result before the last run of the rules, sent says what became of them.
	slots []slot
	sent  ownership
}

// workspaces are those that no call has: about one for each processor, and none after a while without calls.
type workspaces struct{ pool sync.Pool }

// get returns room that no other call has.
func (w *workspaces) get() *workspace {
	if ws, ok := w.pool.Get().(*workspace); ok {
		return ws
	}
	return new(workspace)
}

// put takes the room back. What stands in it stays until another call or the garbage collector takes it.
func (w *workspaces) put(ws *workspace) { w.pool.Put(ws) }

// kept returns now, which takes the place of before. What before had more is let go.
func kept[T any](now, before []T) []T {
	clear(before[min(len(now), len(before)):])
	return now
}

// numbers returns the first n numbers as text.
func (ws *workspace) numbers(n int) []string {
	for len(ws.names) < n {
		ws.names = append(ws.names, strconv.Itoa(len(ws.names)))
	}
	return ws.names[:n]
}
