package tiktoken

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/internal/needs"
)

// samples is the number of random strings a property is tried on; TOKENIZER_TEXTS sets it.
func samples() int {
	if testing.Short() || needs.Race {
		return 3_000
	}
	return wanted(20_000)
}

// wanted returns what TOKENIZER_TEXTS asks for, else n.
func wanted(n int) int {
	if n, err := strconv.Atoi(os.Getenv("TOKENIZER_TEXTS")); err == nil && n > 0 {
		return n
	}
	return n
}

// alphabets are what random texts are made of; a run repeats one unit of one of them.
var alphabets = [][]string{
	strings.Split("abcdefghijklmnopqrstuvwxyz", ""),
	strings.Split("ABCDEFGHIJKLMNOPQRSTUVWXYZ", ""),
	{" ", "\t", "\n", "\r\n", "\r", "\u00a0", "\u3000", "\u2028", "  ", " \n"},
	{"!", "-", "=", "/", ".", "_", "#", "'", "\"", "{", "}", "<|endoftext|>", "->", "//"},
	{"1", "23", "456", "²", "٣", "Ⅷ", "१", "3.14", "1,000"},
	{"漢", "字", "あ", "ア", "한", "я", "Я", "é", "ß", "ǅ", "ʰ", "ª", "𠀀", "𝒜"},
	{"नमस्ते", "क्षि", "हिन्दी", "ा", "ि", "สวัสดี", "ครับ", "ั", "้", "مرحبا", "שָׁלוֹם", "தமிழ்"},
	{"😀", "👨‍💻", "🏳️‍🌈", "🇩🇪", "\u0301", "\u200d", "\ufe0f", "\U000e0067", "\U000e0100", "\U00100000"},
	{"the", " and", " of", "ing", "'s", "'LL", "Http", "XML", "ab", "aB", "é\u0301"},
	{"'s", "'S", "'t", "'re", "'Re", "'rE", "'ve", "'VE", "'m", "'ll", "'lL", "'d", "'", "’s", "'ſ", "I", "we", "IT", " '"},
	{"<|endoftext|>", "<|fim_prefix|>", "<|endofprompt|>", "<|", "|>", "endoftext", "<|im_start|>"},
	{`{"id":`, `"name": "`, `", "`, "[{", "}]", "null,", ":true", "\n  ", `\n`, `\"`},
	{"\x00", "\x1b", "\x7f", "\ufeff", "\ufffd", "\xff", "\xc3", "\xed\xa0\x80", "\xf0\x9f", "\u0085", "\u200b"},
}

// randomText is biased to long runs: of one unit, of units of one alphabet, and of anything.
func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(6) {
		units := alphabets[r.IntN(len(alphabets))]
		length := 1 + r.IntN(8)
		if r.IntN(2) == 0 {
			length = 1 + r.IntN(60)
		}
		unit := units[r.IntN(len(units))]
		mode := r.IntN(3)
		for range length {
			switch mode {
			case 1:
				unit = units[r.IntN(len(units))]
			case 2:
				units = alphabets[r.IntN(len(alphabets))]
				unit = units[r.IntN(len(units))]
			}
			b.WriteString(unit)
		}
	}
	return b.String()
}

func newTestCounters(t *testing.T, short, piece int) []*Counter {
	t.Helper()
	var counters []*Counter
	for _, name := range Encodings() {
		counter, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		counters = append(counters, &Counter{enc: counter.enc, short: short, maxPiece: piece})
	}
	return counters
}

// TestCountEqualsLibrary counts random texts, and what is left of them from a random byte on, both ways.
func TestCountEqualsLibrary(t *testing.T) {
	t.Parallel()
	counters := newTestCounters(t, shortPiece, maxPiece)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	long := 0
	for i := range samples() {
		text, c := randomText(r), counters[i%len(counters)]
		if i%4 == 3 {
			text = text[r.IntN(len(text)):]
		}
		compare := differsInCount
		if i%8 < 2 {
			compare = differs
		}
		if diff := compare(referenceOf(t, c.Encoding()), c.enc, text); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		for _, word := range divide(c.enc, string([]rune(text))) {
			if len(word) > shortPiece && c.enc.vocabulary.rankLong(word) == noRank {
				long++
			}
		}
	}
	if long*50 < samples() {
		t.Errorf("seed %d: %d texts had only %d words for the n log n merge", seed, samples(), long)
	}
}

// TestCutsStayAboveExactCount cuts words every few bytes and measures how many tokens a cut can hide. The count with
// the margin must never be below the exact one, and the margin must be far above what a cut hides.
func TestCutsStayAboveExactCount(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	counters := map[int][]*Counter{}
	limits := []int{5, 16, 33, 64}
	for _, limit := range limits {
		counters[limit] = newTestCounters(t, 1, limit)
	}
	var m merger
	worst, hidden, cut := 0, 0, 0
	tries := samples() / 2
	for i := range tries {
		text := randomText(r)
		choice := counters[limits[r.IntN(len(limits))]]
		c := choice[i%len(choice)]
		exact := referenceOf(t, c.Encoding()).count(text)
		if got := c.Count(text); got < exact {
			t.Fatalf("seed %d: %s Count(%q) cut every %d bytes = %d, exact is %d", seed, c.Encoding(), text, c.maxPiece, got, exact)
		}
		// Once more for the text as one word, without margin and without the bound by bytes.
		piece := text
		cuts, parts := -1, 0
		for rest := piece; len(rest) > 0; cuts++ {
			n := min(c.maxPiece, len(rest))
			parts += m.count(c.enc.vocabulary, rest[:n])
			rest = rest[n:]
		}
		if cuts < 1 {
			continue
		}
		cut++
		if short := m.count(c.enc.vocabulary, piece) - parts; short > 0 {
			hidden++
			worst = max(worst, (short+cuts-1)/cuts)
		}
	}
	t.Logf("%d texts were cut; in %d the parts count less than the whole, by at most %d a cut", cut, hidden, worst)
	if worst*16 > cutMargin {
		t.Errorf("seed %d: a cut hides up to %d tokens, the margin of %d is too small", seed, worst, cutMargin)
	}
	if cut*4 < tries {
		t.Errorf("seed %d: only %d texts were cut", seed, cut)
	}
}

func TestHugeWordIsCutWithMargin(t *testing.T) {
	t.Parallel()
	for _, c := range newTestCounters(t, shortPiece, 10_000) {
		text := strings.Repeat("a", 45_000)
		whole := &Counter{enc: c.enc, short: shortPiece, maxPiece: maxPiece}
		exact := whole.Count(text)
		// 10,000 letters are a whole number of the longest tokens, so the cuts themselves change nothing.
		if got, want := c.Count(text), exact+4*cutMargin; got != want {
			t.Errorf("%s: Count = %d, want %d + 4 margins = %d", c.Encoding(), got, exact, want)
		}
		if c.maxPiece = 4; c.Count(text) != len(text) {
			t.Errorf("%s: Count with a cut every 4 bytes = %d, want the number of bytes", c.Encoding(), c.Count(text))
		}
	}
}
