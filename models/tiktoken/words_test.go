package tiktoken

import (
	"slices"
	"testing"

	"github.com/contextengine/contextengine/internal/needs"
)

// TestWordsOfShortTexts divides every text of a few characters, one of each kind the expressions tell apart.
func TestWordsOfShortTexts(t *testing.T) {
	t.Parallel()
	all := []string{"A", "a", "ǅ", "ʰ", "漢", "\u0301", "1", "²", " ", "\t", "\u00a0", "\n", "\r", ".", "/", "😀", "'", "s", "L", "é"}
	few := []string{"A", "s", "漢", "\u0301", "1", " ", "\n", "/", "'"}
	length, fewLength := 3, 5
	if testing.Short() || needs.Race {
		length, fewLength = 2, 3
	}
	for _, name := range Encodings() {
		checkWords(t, name, all, length)
		checkWords(t, name, few, fewLength)
	}
}

// checkWords compares all texts of up to length units with the expression of an encoding.
func checkWords(t *testing.T, name string, units []string, length int) {
	t.Helper()
	c, err := New(name)
	if err != nil {
		t.Fatal(err)
	}
	r := referenceOf(t, name)
	texts := []string{""}
	for range length {
		var longer []string
		for _, text := range texts {
			for _, unit := range units {
				next := text + unit
				if got, want := divide(c.enc, next), r.divide(next); !slices.Equal(got, want) {
					t.Fatalf("%s: words of %q are %q, want %q", name, next, got, want)
				}
				longer = append(longer, next)
			}
		}
		texts = longer
	}
}

// TestContractions tries every character at each place of a contraction: the expressions fold case there.
func TestContractions(t *testing.T) {
	t.Parallel()
	last := rune(0xffff)
	if testing.Short() || needs.Race {
		last = 0x17f
	}
	for _, name := range Encodings() {
		c, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		r := referenceOf(t, name)
		for char := rune(0); char <= last; char++ {
			s := string(char)
			for _, text := range []string{"x'" + s, "x'r" + s + "E", "x'V" + s, "'l" + s + "'", "x" + s + "s"} {
				if char > 0x250 && char != 0x212a && char%16 != 0 {
					continue
				}
				if got, want := divide(c.enc, text), r.divide(text); !slices.Equal(got, want) {
					t.Errorf("%s: words of %q are %q, want %q", name, text, got, want)
				}
			}
		}
	}
}

// TestWordsCoverText divides texts of any kind: every byte is in exactly one word, and none is empty.
func TestWordsCoverText(t *testing.T) {
	t.Parallel()
	for _, name := range Encodings() {
		c, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		for first := range rune(0x30000) {
			text := string(first) + "a"
			end := c.enc.rule(c.enc.classes, text, 0)
			if end <= 0 || end > len(text) {
				t.Fatalf("%s: first word of %q ends at %d", name, text, end)
			}
		}
	}
}
