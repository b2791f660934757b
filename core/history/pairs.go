package history

import "github.com/contextengine/contextengine/core/message"

// RepairPairs gives every tool call exactly one result, directly after the message that calls, in the order of the
// calls, and removes all other results, when Policy.RepairPairs is set. Results may be one per message or several in
// one, with other parts beside them.
//
// The messages are divided into frames, one per assistant message with calls, each ending at the next. Within a frame
// results are matched by id, one occurrence each, first come first served; ids may repeat from frame to frame. A
// result without an id is taken for the answer to the only call of its frame and marked as an error. A recorded result
// replaces a synthetic one; further results for a call that has one are dropped. A result that no call of its frame
// asks for goes back to an earlier frame if exactly one unanswered call there can own it, else it is dropped. Calls
// that remain unanswered: a message that failed (stop reason error or aborted) is dropped with its results; else,
// with Policy.SyntheticResults, an error result saying NoResult is added, without it the call is taken out (of
// a message with thinking all calls).
//
// What came between a message and its results follows after them. Text beside a result stays with it; without any
// result left it becomes a user message.
//
// With openTail, calls of the very last message are left unanswered: their results are about to be added. Before a
// call of the model all results are there, so that assembling wants false.
func RepairPairs(msgs []message.Message, policy Policy, openTail bool) []message.Message {
	if !policy.RepairPairs || paired(msgs, openTail) {
		return msgs
	}
	r := repair{
		msgs:      msgs,
		synthetic: policy.SyntheticResults,
		openTail:  openTail,
		owner:     make([]int, len(msgs)),
		out:       make([]message.Message, 0, len(msgs)+1),
	}
	r.match()
	for f := range r.frames {
		r.settle(f)
	}
	r.emit()
	return r.out
}

// paired reports whether RepairPairs has nothing to do, without allocating.
func paired(msgs []message.Message, openTail bool) bool {
	for i := 0; i < len(msgs); {
		m := &msgs[i]
		calls, results := false, false
		for k := range m.Parts {
			switch m.Parts[k].Kind {
			case message.ToolCall:
				calls = true
			case message.ToolResult:
				results = true
			}
		}
		switch {
		case m.Role == message.Tool || results:
			return false
		case m.Role != message.Assistant && calls:
			return false
		case !calls:
			i++
			continue
		case openTail && i == len(msgs)-1 && !failed(m):
			return true
		}
		next := answeredInOrder(msgs, i)
		if next < 0 {
			return false
		}
		i = next
	}
	return true
}

// answeredInOrder returns the index after the results of message i when they follow it completely and in order, else -1.
func answeredInOrder(msgs []message.Message, i int) int {
	j, k := i+1, 0
	for c := range msgs[i].Parts {
		call := &msgs[i].Parts[c]
		if call.Kind != message.ToolCall {
			continue
		}
		if j < len(msgs) && k > 0 && nextResult(msgs[j].Parts, k) == len(msgs[j].Parts) {
			j, k = j+1, 0
		}
		if j >= len(msgs) || msgs[j].Role != message.Tool || msgs[j].HasCalls() {
			return -1
		}
		k = nextResult(msgs[j].Parts, k)
		if k == len(msgs[j].Parts) || msgs[j].Parts[k].CallID != call.CallID {
			return -1
		}
		k++
	}
	if nextResult(msgs[j].Parts, k) != len(msgs[j].Parts) {
		return -1
	}
	return j + 1
}

// nextResult returns the index of the first result in parts from k on, len(parts) when there is none.
func nextResult(parts []message.Part, k int) int {
	for k < len(parts) && parts[k].Kind != message.ToolResult {
		k++
	}
	return k
}

// place is a part of a message.
type place struct{ msg, part int }

// pending is a call of a frame and the result it got.
type pending struct {
	id, name string
	result   place
	answered bool
	// adopted says that the result had no id.
	adopted bool
}

type frame struct {
	msg   int
	calls []pending
	// message is the assistant message as it will be emitted.
	message message.Message
	// dropped says that neither message nor results will be emitted, open that there are no results yet.
	dropped, open bool
}

// repair is the state of one RepairPairs.
type repair struct {
	msgs      []message.Message
	synthetic bool
	openTail  bool
	frames    []frame
	// owner is, for each tool message, 1 + the number of the last frame that has a result of it; 0 for none.
	owner []int
	out   []message.Message
}

// stray is a result that no call of its frame asks for.
type stray struct {
	at    place
	frame int
}

// match finds the result of every call.
func (r *repair) match() {
	var strays []stray
	var m matcher
	for i := range r.msgs {
		msg := &r.msgs[i]
		if msg.Role == message.Assistant && msg.HasCalls() {
			r.adopt(&m)
			f := frame{msg: i, message: *msg}
			for _, p := range msg.Calls() {
				f.calls = append(f.calls, pending{id: p.CallID, name: p.Name})
			}
			r.frames = append(r.frames, f)
			m.begin(f.calls)
			continue
		}
		if msg.Role != message.Tool || len(r.frames) == 0 {
			continue
		}
		f := len(r.frames) - 1
		for k := range msg.Parts {
			if p := &msg.Parts[k]; p.Kind == message.ToolResult && !m.take(r.frames[f].calls, p, place{i, k}) {
				strays = append(strays, stray{place{i, k}, f})
			}
		}
	}
	r.adopt(&m)
	r.moveBack(strays)
}

// adopt gives a result without an id to the only call of the frame that ends here.
func (r *repair) adopt(m *matcher) {
	if len(r.frames) == 0 || len(m.nameless) == 0 {
		return
	}
	if calls := r.frames[len(r.frames)-1].calls; len(calls) == 1 && !calls[0].answered {
		calls[0].result, calls[0].answered, calls[0].adopted = m.nameless[0], true, true
	}
}

// moveBack gives strays to the calls of earlier frames.
func (r *repair) moveBack(strays []stray) {
	if len(strays) == 0 {
		return
	}
	type owner struct{ frame, call int }
	open := make(map[string][]owner)
	for f := range r.frames {
		for c := range r.frames[f].calls {
			if p := &r.frames[f].calls[c]; !p.answered {
				open[p.id] = append(open[p.id], owner{f, c})
			}
		}
	}
	for _, s := range strays {
		id := r.msgs[s.at.msg].Parts[s.at.part].CallID
		o := open[id]
		if len(o) == 0 || o[0].frame >= s.frame || len(o) > 1 && o[1].frame < s.frame {
			continue
		}
		p := &r.frames[o[0].frame].calls[o[0].call]
		p.result, p.answered = s.at, true
		open[id] = o[1:]
	}
}

// matcher matches the results of one frame at a time.
type matcher struct {
	// unanswered and synthetic hold the numbers of the calls with an id, in order: those without a result, and
	// those whose result is a synthetic one. A key of known is an id of the frame.
	unanswered, synthetic map[string][]int
	known                 map[string]bool
	nameless              []place
}

func (m *matcher) begin(calls []pending) {
	if m.known == nil || len(m.known) > fewIDs {
		m.unanswered, m.synthetic, m.known = make(map[string][]int), make(map[string][]int), make(map[string]bool)
	}
	clear(m.unanswered)
	clear(m.synthetic)
	clear(m.known)
	m.nameless = m.nameless[:0]
	for c := range calls {
		id := calls[c].id
		m.unanswered[id] = append(m.unanswered[id], c)
		m.known[id] = true
	}
}

// take disposes of a result inside its frame: gives it to a call, holds it for adoption or drops it as a duplicate. It
// reports false for a result that no call of the frame asks for.
func (m *matcher) take(calls []pending, p *message.Part, at place) bool {
	id := p.CallID
	made := p.IsError && p.Text == NoResult
	if q := m.unanswered[id]; len(q) > 0 {
		calls[q[0]].result, calls[q[0]].answered = at, true
		m.unanswered[id] = q[1:]
		if made {
			m.synthetic[id] = append(m.synthetic[id], q[0])
		}
		return true
	}
	if q := m.synthetic[id]; len(q) > 0 && !made {
		calls[q[0]].result = at
		m.synthetic[id] = q[1:]
		return true
	}
	if m.known[id] {
		return true
	}
	if id == "" {
		m.nameless = append(m.nameless, at)
		return true
	}
	return false
}
