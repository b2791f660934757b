package tiktoken

import (
	"fmt"
	"strings"
	"sync"

	"github.com/pkoukk/tiktoken-go-loader/assets"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/nearest"
)

// DefaultEncoding is the encoding of current OpenAI models and the one the framework's budgets are promised in.
const DefaultEncoding = "o200k_base"

// cl100k is the encoding of gpt-4, gpt-3.5 and the text-embedding-3 models.
const cl100k = "cl100k_base"

// encoding is a loaded vocabulary and its rule. Nothing but the pool and what is remembered changes after loading.
type encoding struct {
	name       string
	rule       rule
	classes    *classes
	vocabulary *vocabulary
	mergers    sync.Pool // of *merger
	lately     *lately
	cased      bool // small and capital letters are told apart by the rule
}

// Each vocabulary is loaded once in a process, when first asked for, and never changes.
var (
	loadO200k  = sync.OnceValues(func() (*encoding, error) { return build(DefaultEncoding, o200kRule) })
	loadCL100k = sync.OnceValues(func() (*encoding, error) { return build(cl100k, cl100kRule) })
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
			name, strings.Join(known, ", "), nearest.To(name, known), core.ErrInvalid)
	}
}

// Encodings returns the names New knows, sorted.
func Encodings() []string { return []string{cl100k, DefaultEncoding} }

// build makes an encoding from the embedded vocabulary.
func build(name string, divide rule) (*encoding, error) {
	data, err := assets.Assets.ReadFile(name + ".tiktoken")
	if err != nil {
		return nil, fmt.Errorf("tiktoken: load %q: %w", name, err)
	}
	v, err := parseVocabulary(data)
	if err != nil {
		return nil, fmt.Errorf("tiktoken: load %q: %w", name, err)
	}
	if missing := v.missingNumber(); missing != "" {
		return nil, fmt.Errorf("tiktoken: load %q: the number %s is no token", name, missing)
	}
	return &encoding{
		name: name, rule: divide, classes: loadClasses(), vocabulary: v,
		mergers: sync.Pool{New: func() any { return new(merger) }}, lately: newLately(), cased: name == DefaultEncoding,
	}, nil
}
