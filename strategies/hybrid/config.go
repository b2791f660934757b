package hybrid

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core"
)

// Config is everything an operator sets about a Retriever.
type Config struct {
	// Limit is the largest number of candidates, 1 to 1000; the Engine may ask for fewer.
	Limit int `koanf:"limit" doc:"largest number of candidates, 1 to 1000"`
	// Weights says how much a searcher counts, by name, 0 to 100; 0 does not ask it at all. Those not named count 1 when they look for words, and Meaning
	// when they compare what texts mean.
	Weights map[string]float64 `koanf:"weights" doc:"how much a searcher counts, by name, 0 to 100; 0 does not ask it"`
	// Meaning is the weight of searchers by meaning that Weights does not name, 0 to 100. With the default a weak embedder costs next to nothing; a good one
	// deserves more.
	Meaning float64 `koanf:"meaning" doc:"weight of searchers by meaning that weights does not name, 0 to 100"`
	// Overfetch is how many times the wanted number of candidates each searcher is asked for when there are several, 1 to 10:
	// what one ranks low another may confirm.
	Overfetch int `koanf:"overfetch" doc:"how many times the wanted number each of several searchers is asked for, 1 to 10"`
	// ShortPrompt is the length in bytes below which a prompt cannot stand alone, 0 to 1000; 0 never adds context.
	ShortPrompt int `koanf:"shortPrompt" doc:"bytes below which a prompt is completed by what was said last, 0 to 1000; 0 never"`
	// ContextChars is how much of what was said last completes a short prompt, in bytes, 0 to 100000.
	ContextChars int `koanf:"contextChars" doc:"how much of that completes it, in bytes, 0 to 100000"`
	// PromptChars bounds how much of a prompt is looked for, in bytes, 100 to 100000.
	PromptChars int `koanf:"promptChars" doc:"how much of a prompt is looked for, in bytes, 100 to 100000"`
}

// DefaultConfig returns the configuration that holds where nobody chose.
func DefaultConfig() Config {
	return Config{Limit: 400, Meaning: 0.12, Overfetch: 2, ShortPrompt: 24, ContextChars: 300, PromptChars: 4000}
}

// Validate returns an error that wraps core.ErrInvalid and names the first field out of range, and the range.
func (c Config) Validate() error {
	for _, b := range []struct {
		field     string
		v, lo, hi int
	}{
		{"limit", c.Limit, 1, 1000},
		{"overfetch", c.Overfetch, 1, 10},
		{"shortPrompt", c.ShortPrompt, 0, 1000},
		{"contextChars", c.ContextChars, 0, 100_000},
		{"promptChars", c.PromptChars, 100, 100_000},
	} {
		if b.v < b.lo || b.v > b.hi {
			return fmt.Errorf("hybrid: config: %s: must be %d to %d: %w", b.field, b.lo, b.hi, core.ErrInvalid)
		}
	}
	if !(c.Meaning >= 0 && c.Meaning <= 100) { // written so that NaN fails
		return fmt.Errorf("hybrid: config: meaning: must be 0 to 100: %w", core.ErrInvalid)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Weights)) {
		if w := c.Weights[name]; !(w >= 0 && w <= 100) { // written so that NaN fails
			return fmt.Errorf("hybrid: config: weights.%s: must be 0 to 100: %w", name, core.ErrInvalid)
		}
	}
	return nil
}

// Option sets what no configuration file can hold.
type Option func(*Retriever)

// WithLogger sets the logger, which hears of searchers that failed while others answered; without it nothing is logged.
// Contents of entries and queries are never logged.
func WithLogger(l *slog.Logger) Option {
	return func(r *Retriever) {
		if l != nil {
			r.log = l
		}
	}
}
