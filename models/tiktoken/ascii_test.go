package tiktoken

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/internal/needs"
)

// checkASCII compares where the word at each position of a text ends with what the rule says, and tells how many words were decided.
func checkASCII(t *testing.T, enc *encoding, text string) (decided int) {
	t.Helper()
	for at := range text {
		end, token := enc.ascii(text, at)
		if end == at {
			continue
		}
		decided++
		if want := enc.rule(enc.classes, text, at); end != want {
			t.Fatalf("%s: word of %q at %d ends at %d, want %d", enc.name, text, at, end, want)
		}
		if token && enc.vocabulary.rank(text, at, end) == noRank {
			t.Fatalf("%s: word %q of %q is no token", enc.name, text[at:end], text)
		}
	}
	return decided
}

// TestASCIIEqualsRule tries every pair of bytes of ASCII, then texts of a few characters, each with what follows, near and far from the end of the text.
func TestASCIIEqualsRule(t *testing.T) {
	t.Parallel()
	units := []string{"A", "z", "漢", "\u0301", "7", "²", " ", "\t", "\u00a0", "\n", "\r", ".", "/", "'", "s", "ll", "abcdefgh", "\x00", "\x7f"}
	length := 4
	if testing.Short() || needs.Race {
		length = 3
	}
	for _, c := range newTestCounters(t, shortPiece, maxPiece) {
		decided := 0
		for first := range rune(128) {
			for second := range rune(128) {
				pair := string(first) + string(second)
				for _, after := range []string{"", "a", "'s more", "é and more", "\n and more", " and some more", "XY and more", "/\n/ and more"} {
					decided += checkASCII(t, c.enc, pair+after)
				}
			}
		}
		texts := []string{""}
		for range length {
			var longer []string
			for _, text := range texts {
				for _, unit := range units {
					longer = append(longer, text+unit)
					decided += checkASCII(t, c.enc, text+unit)
				}
			}
			texts = longer
		}
		for _, text := range texts {
			decided += checkASCII(t, c.enc, text+" and more than that")
		}
		if decided < 100_000 {
			t.Errorf("%s: only %d words were decided", c.Encoding(), decided)
		}
	}
}

// TestASCIIEqualsRuleOnRandomTexts does so for texts of any kind.
func TestASCIIEqualsRuleOnRandomTexts(t *testing.T) {
	t.Parallel()
	counters := newTestCounters(t, shortPiece, maxPiece)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 3))
	for i := range samples() {
		checkASCII(t, counters[i%len(counters)].enc, strings.ToValidUTF8(randomText(r), "\ufffd"))
	}
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

func TestSmallLetters(t *testing.T) {
	t.Parallel()
	for b := range 256 {
		for at := range 8 {
			text := []byte("azmbyncx")
			text[at] = byte(b)
			want := 8
			if b < 'a' || b > 'z' {
				want = at
			}
			if got := smallLetters(load8(string(text), 0)); got != want {
				t.Errorf("smallLetters(%q) = %d, want %d", text, got, want)
			}
		}
	}
}

func TestMissingNumber(t *testing.T) {
	t.Parallel()
	for _, c := range newTestCounters(t, shortPiece, maxPiece) {
		if got := c.enc.vocabulary.missingNumber(); got != "" {
			t.Errorf("%s: missingNumber = %q, want none", c.Encoding(), got)
		}
	}
	v, err := parseVocabulary([]byte(singleBytes()))
	if err != nil {
		t.Fatal(err)
	}
	if got := v.missingNumber(); got != "00" {
		t.Errorf("missingNumber of the single bytes = %q, want 00", got)
	}
}
