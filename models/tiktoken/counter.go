package tiktoken

import (
	"strings"
	"unicode/utf8"
)

// Limits of a Counter. They are fields of it so that tests can lower them.
const (
	// maxPiece is the length in bytes of the largest word that is merged whole; it bounds the memory of one count to
	// about 64 bytes for each byte of the word.
	maxPiece = 1 << 20
	// cutMargin is what one cut inside a word of more than maxPiece bytes adds to the count, in tokens.
	cutMargin = 256
	// maxKept is the length in bytes of the longest word whose buffers are kept for the next one.
	maxKept = 1 << 14
)

// Counter counts the tokens of one encoding. It is immutable and safe for concurrent use.
type Counter struct {
	enc      *encoding
	short    int
	maxPiece int
}

// New returns the counter of an encoding, "o200k_base" or "cl100k_base". The vocabulary is loaded on the first use of
// an encoding in the process (10 to 25 ms, 4 to 8 MiB) and shared by all its counters. An unknown name is a
// core.ErrInvalid that lists the known ones.
func New(name string) (*Counter, error) {
	enc, err := load(name)
	if err != nil {
		return nil, err
	}
	return &Counter{enc: enc, short: shortPiece, maxPiece: maxPiece}, nil
}

// Encoding returns the name the counter was made for.
func (c *Counter) Encoding() string { return c.enc.name }

// Count returns the number of tokens of text, at least 0. Text that looks like a special token, such as
// "<|endoftext|>", counts as the ordinary text it is; a byte that is not UTF-8 counts as U+FFFD.
func (c *Counter) Count(text string) int {
	if !utf8.ValidString(text) {
		text = replaceInvalid(text)
	}
	total := 0
	for at := 0; at < len(text); {
		end, token := c.enc.ascii(text, at)
		if end == at {
			end = c.enc.rule(c.enc.classes, text, at)
		}
		switch size := end - at; {
		case token, size == 1:
			total++
		case size > c.short:
			total += c.countLong(text, at, end)
		default:
			s, name := c.enc.lately.place(text, at, end)
			n := s.count(name)
			if n == 0 {
				n = c.enc.vocabulary.countShort(text, at, end)
				s.keep(name, n)
			}
			total += n
		}
		at = end
	}
	return total
}

// replaceInvalid puts U+FFFD in the place of each byte that is not UTF-8.
func replaceInvalid(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	for _, r := range text {
		b.WriteRune(r)
	}
	return b.String()
}

// countLong counts the word text[from:to], which is too long for mergeShort.
//
// A word of more than maxPiece bytes is cut. A cut changes merges only in its neighbourhood: away from it a merge can
// differ only next to a merge that differed at an earlier, lower rank, and each such step needs a longer token or a new
// rank. The tests measure at small limits how many tokens a cut can save; cutMargin is many times that. No word has
// more tokens than bytes, so that is the upper bound.
func (c *Counter) countLong(text string, from, to int) int {
	if c.enc.vocabulary.rank(text, from, to) != noRank {
		return 1
	}
	m := c.enc.mergers.Get().(*merger)
	total := 0
	piece := text[from:to]
	for len(piece) > c.maxPiece {
		total += m.count(c.enc.vocabulary, piece[:c.maxPiece]) + cutMargin
		piece = piece[c.maxPiece:]
	}
	total = min(total+m.count(c.enc.vocabulary, piece), to-from)
	if m.size() <= maxKept {
		c.enc.mergers.Put(m)
	}
	return total
}

// AtLeast returns a counter whose result is the largest of the given ones, 0 if there are none. A budget kept with it
// holds for each of them.
func AtLeast(counters ...func(string) int) func(string) int {
	return func(text string) int {
		most := 0
		for _, count := range counters {
			most = max(most, count(text))
		}
		return most
	}
}
