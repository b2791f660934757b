package tiktoken

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dlclark/regexp2"
	library "github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/contextengine/contextengine/core"
)

// DefaultEncoding is the encoding of current OpenAI models and the one the framework's budgets are promised in.
const DefaultEncoding = "o200k_base"

// cl100k is the encoding of gpt-4, gpt-3.5 and the text-embedding-3 models.
const cl100k = "cl100k_base"

// maxToken is an upper bound for the length of a token of either vocabulary, in bytes; a test holds it.
const maxToken = 128

// How the encodings divide text into words, as published with the vocabularies.
const (
	o200kWords = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	cl100kWords = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}` +
		`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// encoding is a loaded vocabulary. Nothing changes it after loading.
type encoding struct {
	name  string
	ranks map[string]int
	words *regexp2.Regexp
	lib   *library.Tiktoken
}

// Each vocabulary is loaded once in a process, when first asked for, and never changes.
var (
	loadO200k  = sync.OnceValues(func() (*encoding, error) { return build(DefaultEncoding, o200kWords) })
	loadCL100k = sync.OnceValues(func() (*encoding, error) { return build(cl100k, cl100kWords) })
)

func load(name string) (*encoding, error) {
	switch name {
	case DefaultEncoding:
		return loadO200k()
	case cl100k:
		return loadCL100k()
	default:
		known := Encodings()
		return nil, fmt.Errorf("tiktoken: encoding %q is unknown, known are %s; did you mean %q: %w",
			name, strings.Join(known, ", "), nearest(name, known), core.ErrInvalid)
	}
}

// Encodings returns the names New knows, sorted.
func Encodings() []string { return []string{cl100k, DefaultEncoding} }

// build makes an encoding from the embedded vocabulary. It goes around the library's global loader, which defaults to
// the network.
func build(name, words string) (*encoding, error) {
	ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(name + ".tiktoken")
	if err != nil {
		return nil, fmt.Errorf("tiktoken: load %q: %w", name, err)
	}
	expression, err := regexp2.Compile(words, regexp2.None)
	if err != nil {
		return nil, fmt.Errorf("tiktoken: load %q: %w", name, err)
	}
	// Only ordinary text is ever counted, so no special tokens are given.
	bpe, err := library.NewCoreBPE(ranks, nil, words)
	if err != nil {
		return nil, fmt.Errorf("tiktoken: load %q: %w", name, err)
	}
	lib := library.NewTiktoken(bpe, &library.Encoding{Name: name, PatStr: words, MergeableRanks: ranks}, nil)
	return &encoding{name: name, ranks: ranks, words: expression, lib: lib}, nil
}

// nearest returns the candidate with the smallest edit distance to name.
func nearest(name string, candidates []string) string {
	return slices.MinFunc(candidates, func(a, b string) int { return distance(name, a) - distance(name, b) })
}

// distance is the Levenshtein distance in bytes, of at most the first 64 of them.
func distance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
