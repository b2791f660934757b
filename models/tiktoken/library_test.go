package tiktoken

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/dlclark/regexp2"
	library "github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// reference is the library the counts are held against, and the expression it divides text with.
type reference struct {
	ranks map[string]int
	words *regexp2.Regexp
	lib   *library.Tiktoken
}

var (
	referenceO200k  = sync.OnceValues(func() (*reference, error) { return newReference(DefaultEncoding, o200kWords) })
	referenceCL100k = sync.OnceValues(func() (*reference, error) { return newReference(cl100k, cl100kWords) })
)

func newReference(name, words string) (*reference, error) {
	ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(name + ".tiktoken")
	if err != nil {
		return nil, err
	}
	expression, err := regexp2.Compile(words, regexp2.None)
	if err != nil {
		return nil, err
	}
	bpe, err := library.NewCoreBPE(ranks, nil, words)
	if err != nil {
		return nil, err
	}
	return &reference{ranks: ranks, words: expression, lib: library.NewTiktoken(bpe, nil, nil)}, nil
}

func referenceOf(tb testing.TB, name string) *reference {
	tb.Helper()
	load := referenceO200k
	if name == cl100k {
		load = referenceCL100k
	}
	r, err := load()
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func (r *reference) count(text string) int { return len(r.lib.EncodeOrdinary(text)) }

// divide returns the words of a text as the expression finds them.
func (r *reference) divide(text string) []string {
	var words []string
	m, err := r.words.FindStringMatch(text)
	for ; m != nil && err == nil; m, err = r.words.FindNextMatch(m) {
		words = append(words, m.String())
	}
	if err != nil {
		return []string{err.Error()}
	}
	return words
}

// divide returns the words of a text, which is valid UTF-8, as the rule finds them.
func divide(enc *encoding, text string) []string {
	var words []string
	for at := 0; at < len(text); {
		end := enc.rule(enc.classes, text, at)
		words = append(words, text[at:end])
		at = end
	}
	return words
}

// differs compares the words, and the counts of both ways to merge, with the library; it returns what differs, "" if
// nothing does.
func differs(r *reference, enc *encoding, text string) string {
	valid := string([]rune(text))
	if got, want := divide(enc, valid), r.divide(valid); !slices.Equal(got, want) {
		return fmt.Sprintf("%s: words of %q are %q, want %q", enc.name, text, got, want)
	}
	return differsInCount(r, enc, text)
}

func differsInCount(r *reference, enc *encoding, text string) string {
	want := r.count(text)
	for _, short := range []int{shortPiece, 0} {
		c := &Counter{enc: enc, short: short, maxPiece: maxPiece}
		if got := c.Count(text); got != want {
			return fmt.Sprintf("%s: Count(%q) with short %d = %d, want %d", enc.name, text, short, got, want)
		}
	}
	return ""
}
