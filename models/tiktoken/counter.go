package tiktoken

import "unicode/utf8"

// Limits of a Counter. They are fields of it so that tests can lower them.
const (
	// longStretch is the length in bytes of a stretch without a word gap from which the n log n merge is used. Below it
	// the quadratic one was measured to be as fast.
	longStretch = 128
	// maxPiece is the length in bytes of the largest word that is merged whole; it bounds the memory of one count to
	// about 64 bytes for each byte of the word.
	maxPiece = 1 << 20
	// cutMargin is what one cut inside a word of more than maxPiece bytes adds to the count, in tokens.
	cutMargin = 256
)

// Counter counts the tokens of one encoding. It is immutable and safe for concurrent use.
type Counter struct {
	enc      *encoding
	stretch  int
	maxPiece int
}

// New returns the counter of an encoding, "o200k_base" or "cl100k_base". The vocabulary is loaded on the first use of
// an encoding in the process (0.1 to 0.2 s, 20 to 40 MiB) and shared by all its counters. An unknown name is a
// core.ErrInvalid that lists the known ones.
func New(name string) (*Counter, error) {
	enc, err := load(name)
	if err != nil {
		return nil, err
	}
	return &Counter{enc: enc, stretch: longStretch, maxPiece: maxPiece}, nil
}

// Encoding returns the name the counter was made for.
func (c *Counter) Encoding() string { return c.enc.name }

// Count returns the number of tokens of text, at least 0. Text that looks like a special token, such as
// "<|endoftext|>", counts as the ordinary text it is; a byte that is not UTF-8 counts as U+FFFD.
func (c *Counter) Count(text string) int {
	total, start := 0, 0
	for long := range c.longStretches(text) {
		if start < long.from {
			total += len(c.enc.lib.EncodeOrdinary(text[start:long.from]))
		}
		total += c.countLong(text[long.from:long.to])
		start = long.to
	}
	if start < len(text) {
		total += len(c.enc.lib.EncodeOrdinary(text[start:]))
	}
	return total
}

// span is a half-open range of bytes.
type span struct{ from, to int }

// longStretches yields the stretches of text that have no word gap for at least c.stretch bytes, in order.
//
// A word gap is a visible ASCII character followed by a space or tab. In both encodings no word holds that pair and no
// rule looks behind it, so cutting there leaves every word as it was.
func (c *Counter) longStretches(text string) func(yield func(span) bool) {
	return func(yield func(span) bool) {
		from := 0
		for i := 1; i <= len(text); i++ {
			if i < len(text) && !isGap(text[i-1], text[i]) {
				continue
			}
			if i-from >= c.stretch && !yield(span{from, i}) {
				return
			}
			from = i
		}
	}
}

func isGap(before, at byte) bool {
	return (at == ' ' || at == '\t') && before > ' ' && before < 0x7f
}

// countLong counts a stretch with the merge that stays fast on long words. The words are found by the same expression
// and engine as in the library, so the result is the same.
func (c *Counter) countLong(text string) int {
	runes := []rune(text)
	total := 0
	var m merger
	buf := make([]byte, 0, 64)
	match, err := c.enc.words.FindRunesMatch(runes)
	done := 0
	for ; match != nil && err == nil; match, err = c.enc.words.FindNextMatch(match) {
		done = match.Index + match.Length
		buf = buf[:0]
		for _, r := range runes[match.Index:done] {
			buf = utf8.AppendRune(buf, r)
		}
		total += c.countPiece(&m, buf)
	}
	if err != nil {
		// The engine only fails on a time limit, and none is set. No text has more tokens than bytes.
		total += len(string(runes[done:]))
	}
	return total
}

// countPiece counts one word.
//
// A word of more than maxPiece bytes is cut. A cut changes merges only in its neighbourhood: away from it a merge can
// differ only next to a merge that differed at an earlier, lower rank, and each such step needs a longer token or a new
// rank. The tests measure at small limits how many tokens a cut can save; cutMargin is many times that. No word has
// more tokens than bytes, so that is the upper bound.
func (c *Counter) countPiece(m *merger, piece []byte) int {
	total := 0
	size := len(piece)
	for len(piece) > c.maxPiece {
		total += m.count(c.enc.ranks, piece[:c.maxPiece]) + cutMargin
		piece = piece[c.maxPiece:]
	}
	return min(total+m.count(c.enc.ranks, piece), size)
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
