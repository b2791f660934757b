package injected

import (
	"hash/fnv"
	"slices"
	"strings"
)

const (
	// minBlock is how long a paragraph is that is remembered, in bytes. Shorter ones are what people say again.
	minBlock = 60
	// often is in how many messages before a block stood that nobody says once more.
	often = 2
	// maxBlocks bounds what is remembered.
	maxBlocks = 4096
)

// Remembered is how many of the newest messages a Memory speaks of: whoever notes as many, the last ones of a conversation, knows what one does that noted all.
const Remembered = 256

// Memory sees blocks that come back in message after message without a rule. A block is an element that stands on lines of its own, or a paragraph. Numbers
// do not tell elements apart: a count of what is left is another one every time. The zero value has seen nothing. It is not safe for concurrent use.
type Memory struct {
	// seen is in how many messages each block stood, newest has the blocks of each message, oldest first, and blocks is how many these are.
	seen   map[uint64]int
	newest [][]uint64
	blocks int
}

// Repeated returns the blocks of a text that stood in messages before, in order. Of what a tool printed it is only elements at either end: files are read
// again, and tests print the same. A text that would be nothing else is left alone where it is prose or a tool's: a person who says the same again says it.
func (m *Memory) Repeated(in Place, text string) []Span {
	if len(m.seen) == 0 {
		return nil
	}
	var out []Span
	words, left := in == Tool, false
	blocks := blocksOf(text)
	for i, b := range blocks {
		if !b.long() || m.seen[b.key] < often || in == Tool && (!b.element || i > 0 && i < len(blocks)-1) {
			left = true
			continue
		}
		words = words || !b.element
		out = append(out, b.Span)
	}
	if words && !left {
		return nil
	}
	return out
}

// Note remembers the blocks of the texts of one message, the next; without texts it is one that says nothing.
func (m *Memory) Note(texts ...string) {
	var keys []uint64
	for _, text := range texts {
		for _, b := range blocksOf(text) {
			if b.long() && !slices.Contains(keys, b.key) {
				keys = append(keys, b.key)
			}
		}
	}
	if m.seen == nil {
		m.seen = make(map[uint64]int)
	}
	for _, key := range keys {
		m.seen[key]++
	}
	m.newest, m.blocks = append(m.newest, keys), m.blocks+len(keys)
	for len(m.newest) > Remembered || m.blocks > maxBlocks {
		for _, key := range m.newest[0] {
			if m.seen[key]--; m.seen[key] == 0 {
				delete(m.seen, key)
			}
		}
		m.blocks -= len(m.newest[0])
		m.newest = m.newest[1:]
	}
}

// block is an element or a paragraph.
type block struct {
	Span
	key     uint64
	element bool
}

func (b *block) long() bool { return b.element || b.To-b.From >= minBlock }

// blocksOf takes text apart. What stands inside an element belongs to it.
func blocksOf(text string) []block {
	var out []block
	add := func(from, to int, element bool) {
		if s := strings.TrimSpace(text[from:to]); s != "" {
			out = append(out, block{Span{from, to}, keyOf(s, element), element})
		}
	}
	start := 0 // of the paragraph
	for at := 0; at < len(text); {
		end := len(text)
		if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		line := strings.TrimSpace(text[at:end])
		if to := elementAt(text, at, line); to > 0 {
			add(start, at, false)
			add(at, to, true)
			at, start = to, to
			continue
		}
		if line == "" {
			add(start, end, false)
			start = end
		}
		at = end
	}
	add(start, len(text), false)
	return out
}

// elementAt returns the end of an element that begins with a line and whose end tag ends a line; 0 where there is none.
func elementAt(text string, at int, line string) int {
	if !strings.HasPrefix(line, "<") {
		return 0
	}
	from := at + strings.IndexByte(text[at:], '<')
	name, open := tagAt(text[from:])
	if name == "" || strings.ContainsAny(name, "!?/") {
		return 0
	}
	closing := "</" + name + ">"
	n := strings.Index(text[from+open:], closing)
	if n < 0 {
		return 0
	}
	to := from + open + n + len(closing)
	for to < len(text) && (text[to] == ' ' || text[to] == '\t' || text[to] == '\r') {
		to++
	}
	switch {
	case to == len(text):
		return to
	case text[to] == '\n':
		return to + 1
	}
	return 0
}

// keyOf is what tells blocks apart.
func keyOf(text string, element bool) uint64 {
	h := fnv.New64a()
	if !element {
		_, _ = h.Write([]byte(text))
		return h.Sum64()
	}
	b := make([]byte, 0, len(text))
	for i := range len(text) {
		if c := text[i]; c < '0' || c > '9' {
			b = append(b, c)
		} else if len(b) == 0 || b[len(b)-1] != '0' {
			b = append(b, '0')
		}
	}
	_, _ = h.Write(b)
	return h.Sum64()
}
