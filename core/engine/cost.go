package engine

import (
	"hash/maphash"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

const (
	// messageOverhead is what a message costs besides its content, roleCost what the name of its role costs; "toolResult" costs one more.
	messageOverhead = 4
	roleCost        = 1
)

// gauge says what messages cost in tokens, whole and shortened. It is safe for concurrent use.
type gauge struct {
	count core.TokenCounter
	// seed is of the hashes that costs and wordings are found again by.
	seed maphash.Seed
}

// messageCost counts what m costs in a prompt, in tokens.
func (g *gauge) messageCost(m message.Message) int {
	n := messageOverhead + roleCost
	if m.Role == message.Tool {
		n++
	}
	if m.Name != "" {
		n += g.count(m.Name)
	}
	texts := 0
	for i := range m.Parts {
		n += g.partCost(&m.Parts[i])
		if k := m.Parts[i].Kind; k == message.Text || k == message.ToolResult {
			texts++
		}
	}
	// Formats without blocks join texts by a newline.
	return n + max(texts-1, 0)
}

func (g *gauge) partCost(p *message.Part) int {
	switch p.Kind {
	case message.Text, message.Thinking:
		return g.count(p.Text)
	case message.ToolCall:
		return g.count(p.Name) + g.count(p.Args)
	case message.ToolResult:
		return g.count(p.Name) + g.count(p.Text) + g.insideCost(p)
	case message.Image:
		return window.ImageTokens + g.count(p.Text)
	default:
		return g.count(p.Text) + g.count(string(p.Raw))
	}
}

// insideCost counts the images and other blocks inside a result.
func (g *gauge) insideCost(p *message.Part) int {
	n := 0
	for _, in := range message.Inside(*p) {
		n += g.partCost(&in)
	}
	return n
}

// maxCosts bounds the memory of costs per session.
const maxCosts = 4096

// costOf returns what a message as it would be sent costs: that of an item which it shows unchanged, if any is given, others counted once.
func (s *session) costOf(m *message.Message, it *item) int {
	if it != nil && same(&it.msg, m) {
		return it.cost
	}
	key := s.e.gauge.hash(m)
	if n, ok := s.costs[key]; ok {
		return n
	}
	n := s.e.gauge.messageCost(*m)
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

func (g *gauge) hash(m *message.Message) uint64 {
	var h maphash.Hash
	h.SetSeed(g.seed)
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
