package engine

import (
	"hash/maphash"

	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

const (
	// messageOverhead is what a message costs besides its content, roleCost what the name of its role costs; "toolResult" costs one more.
	messageOverhead = 4
	roleCost        = 1
)

// messageCost counts what m costs in a prompt, in tokens.
func (e *Engine) messageCost(m message.Message) int {
	n := messageOverhead + roleCost
	if m.Role == message.Tool {
		n++
	}
	if m.Name != "" {
		n += e.count(m.Name)
	}
	texts := 0
	for i := range m.Parts {
		n += e.partCost(&m.Parts[i])
		if k := m.Parts[i].Kind; k == message.Text || k == message.ToolResult {
			texts++
		}
	}
	// Formats without blocks join texts by a newline.
	return n + max(texts-1, 0)
}

func (e *Engine) partCost(p *message.Part) int {
	switch p.Kind {
	case message.Text, message.Thinking:
		return e.count(p.Text)
	case message.ToolCall:
		return e.count(p.Name) + e.count(p.Args)
	case message.ToolResult:
		return e.count(p.Name) + e.count(p.Text) + e.insideCost(p)
	case message.Image:
		return window.ImageTokens + e.count(p.Text)
	default:
		return e.count(p.Text) + e.count(string(p.Raw))
	}
}

// insideCost counts the images and other blocks inside a result.
func (e *Engine) insideCost(p *message.Part) int {
	n := 0
	for _, in := range message.Inside(*p) {
		n += e.partCost(&in)
	}
	return n
}

// maxCosts bounds the memory of costs per session.
const maxCosts = 4096

// costOf returns what a message as it would be sent costs: that of an item which it shows unchanged, if any is given, others counted once.
func (e *Engine) costOf(s *session, m *message.Message, it *item) int {
	if it != nil && same(&it.msg, m) {
		return it.cost
	}
	key := e.hash(m)
	if n, ok := s.costs[key]; ok {
		return n
	}
	n := e.messageCost(*m)
	s.rememberCost(key, n)
	return n
}

func (s *session) rememberCost(key uint64, n int) {
	if len(s.costs) >= maxCosts {
		clear(s.costs)
	}
	s.costs[key] = n
}

// same reports whether b is a, unchanged, by identity of the parts.
func same(a, b *message.Message) bool {
	if len(a.Parts) != len(b.Parts) || a.Role != b.Role {
		return false
	}
	return len(a.Parts) == 0 || &a.Parts[0] == &b.Parts[0]
}

func (e *Engine) hash(m *message.Message) uint64 {
	var h maphash.Hash
	h.SetSeed(e.seed)
	h.WriteString(m.Name)
	for i := range m.Parts {
		p := &m.Parts[i]
		for _, f := range [...]string{string(p.Kind), p.Text, p.Name, p.Args} {
			h.WriteString(f)
			h.WriteByte(0)
		}
		if p.Kind == message.Other || p.Kind == message.Image || p.Kind == message.ToolResult {
			h.Write(p.Raw)
		}
	}
	return h.Sum64()
}
