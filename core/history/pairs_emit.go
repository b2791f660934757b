package history

import (
	"slices"

	"github.com/contextengine/contextengine/core/message"
)

// settle decides what becomes of a frame's unanswered calls, and which tool messages its results take along.
func (r *repair) settle(n int) {
	f := &r.frames[n]
	if slices.ContainsFunc(f.calls, func(p pending) bool { return !p.answered }) {
		switch m := &r.msgs[f.msg]; {
		case failed(m):
			f.dropped = true
		case r.openTail && f.msg == len(r.msgs)-1:
			f.open = true
		case !r.synthetic:
			f.strip()
		}
	}
	if f.dropped || f.open {
		return
	}
	for _, c := range f.calls {
		if c.answered {
			r.owner[c.result.msg] = n + 1
		}
	}
}

// strip takes the unanswered calls out of the frame.
func (f *frame) strip() {
	f.message = stripCalls(f.message, func(n int, _ *message.Part) bool { return f.calls[n].answered })
	if f.message.HasCalls() {
		f.calls = slices.DeleteFunc(f.calls, func(p pending) bool { return !p.answered })
	} else {
		f.calls = nil
	}
}

// emit writes the messages frame by frame: the assistant's, its results, then the rest up to the next frame.
func (r *repair) emit() {
	next := 0
	for i := range r.msgs {
		if next < len(r.frames) && r.frames[next].msg == i {
			f := &r.frames[next]
			next++
			if f.dropped {
				continue
			}
			m := f.message
			if m.HasResults() {
				m = m.WithParts(without(m.Parts, message.ToolResult))
			}
			r.out = append(r.out, m)
			if !f.open {
				r.results(next)
			}
			continue
		}
		r.rest(i)
	}
}

// rest emits a message that calls nothing, as far as it does not belong to a frame.
func (r *repair) rest(i int) {
	m := r.msgs[i]
	switch {
	case m.Role == message.Tool:
		if r.owner[i] == 0 {
			if user, ok := userOf(&m); ok {
				r.out = append(r.out, user)
			}
		}
	case m.HasResults() || m.HasCalls():
		// Calls and results outside the roles that may have them.
		parts := without(without(m.Parts, message.ToolResult), message.ToolCall)
		if hasContent(parts) {
			r.out = append(r.out, m.WithParts(parts))
		}
	default:
		r.out = append(r.out, m)
	}
}

// userOf makes a user message of what a tool message holds besides results.
func userOf(m *message.Message) (message.Message, bool) {
	host := m.Format == message.FormatAnthropic
	var parts []message.Part
	for _, p := range m.Parts {
		switch {
		case p.Kind == message.ToolResult, p.Kind == message.ToolCall:
			continue
		case p.Kind != message.Text && (m.Format == message.FormatOpenAI || m.Format == message.FormatPi):
			// In these formats whatever is no text is part of the result.
			continue
		}
		if !host {
			p.Raw = nil
		}
		parts = append(parts, p)
	}
	if !hasContent(parts) {
		return message.Message{}, false
	}
	if host {
		// Both roles are "user" in the original bytes.
		user := m.WithParts(parts)
		user.Role = message.User
		return user, true
	}
	return message.Message{Role: message.User, Parts: parts, Time: m.Time, ID: m.ID, Key: m.Key, Type: m.Type}, true
}

// results emits the results of frame number n-1.
func (r *repair) results(n int) {
	f := &r.frames[n-1]
	sources, whole := r.sources(f)
	switch {
	case len(f.calls) == 0:
	case whole:
		for _, s := range sources {
			r.out = append(r.out, r.msgs[s])
		}
	case r.shared(f, sources):
		r.out = append(r.out, r.oneMessage(n, sources))
	default:
		for _, c := range f.calls {
			if !c.answered {
				made := message.Message{Role: message.Tool, Parts: []message.Part{noResult(c)}}
				made.Time = f.message.Time
				r.out = append(r.out, made)
				continue
			}
			m := r.msgs[c.result.msg]
			if c.adopted {
				parts := slices.Clone(m.Parts)
				parts[c.result.part] = r.part(c)
				m = m.WithParts(parts)
			}
			r.out = append(r.out, m)
		}
	}
}

// sources returns the tool messages with results of the frame in their order, and whether they can be emitted just
// as they are.
func (r *repair) sources(f *frame) (sources []int, whole bool) {
	whole = true
	parts := 0
	var before place
	for _, c := range f.calls {
		if !c.answered || c.adopted {
			whole = false
		}
		if !c.answered {
			continue
		}
		at := c.result
		if at.msg < before.msg || at.msg == before.msg && at.part <= before.part && parts > 0 {
			whole = false
		}
		before = at
		parts++
		sources = append(sources, at.msg)
	}
	slices.Sort(sources)
	sources = slices.Compact(sources)
	results := 0
	for _, s := range sources {
		results += len(r.msgs[s].Results())
		whole = whole && !r.msgs[s].HasCalls()
	}
	return sources, whole && results == parts
}

// shared reports whether the frame's results belong into one message.
func (r *repair) shared(f *frame, sources []int) bool {
	if r.msgs[f.msg].Format == message.FormatAnthropic {
		return true
	}
	for _, s := range sources {
		if m := &r.msgs[s]; m.Format == message.FormatAnthropic || len(m.Results()) > 1 || m.HasCalls() {
			return true
		}
	}
	return false
}

// oneMessage puts all results of frame number n-1 into one tool message, followed by what came with them.
func (r *repair) oneMessage(n int, sources []int) message.Message {
	f := &r.frames[n-1]
	run := make([]message.Message, 0, len(sources)+1)
	for _, s := range sources {
		// Each message brings its own share, so that join can adapt the parts to the message they end up in.
		m := r.msgs[s]
		var parts []message.Part
		for _, c := range f.calls {
			if c.answered && c.result.msg == s {
				parts = append(parts, r.part(c))
			}
		}
		if r.owner[s] == n {
			parts = append(parts, without(without(m.Parts, message.ToolResult), message.ToolCall)...)
		}
		run = append(run, m.WithParts(parts))
	}
	if len(run) == 0 {
		run = append(run, message.Message{Role: message.Tool, Time: f.message.Time})
	}
	m := run[0]
	if len(run) > 1 {
		m = join(run)
	}
	results := make(map[string][]message.Part)
	for _, p := range m.Results() {
		results[p.CallID] = append(results[p.CallID], p)
	}
	parts := make([]message.Part, 0, len(f.calls)+len(m.Parts))
	for _, c := range f.calls {
		// Occurrences of one id were given their results in order.
		if q := results[c.id]; c.answered && len(q) > 0 {
			parts = append(parts, q[0])
			results[c.id] = q[1:]
			continue
		}
		parts = append(parts, noResult(c))
	}
	parts = append(parts, without(m.Parts, message.ToolResult)...)
	return m.WithParts(parts)
}

// part returns the result of a call.
func (r *repair) part(c pending) message.Part {
	p := r.msgs[c.result.msg].Parts[c.result.part]
	if c.adopted {
		p.CallID, p.IsError, p.Raw = c.id, true, nil
	}
	return p
}

func noResult(c pending) message.Part {
	return message.Part{Kind: message.ToolResult, CallID: c.id, Name: c.name, Text: NoResult, IsError: true}
}

func without(parts []message.Part, k message.Kind) []message.Part {
	return filterParts(parts, func(p *message.Part) bool { return p.Kind == k })
}
