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
	// Weights says how much a searcher counts, by name, 0 to 100. Those not named count 1; 0 does not ask them at all.
	Weights map[string]float64 `koanf:"weights" doc:"how much a searcher counts, by name, 0 to 100; 1 where not named, 0 does not ask it"`
	// K flattens the ranks, 1 to 1000: the larger, the more it counts to be found by several searchers, and the less to be found first.
	K int `koanf:"k" doc:"flattens ranks, 1 to 1000: larger favours what several searchers found"`
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
	return Config{Limit: 400, K: 60, Overfetch: 2, ShortPrompt: 24, ContextChars: 300, PromptChars: 4000}
}

// Validate returns an error that wraps core.ErrInvalid and names the first field out of range, and the range.
func (c Config) Validate() error {
	for _, b := range []struct {
		field     string
		v, lo, hi int
	}{
		{"limit", c.Limit, 1, 1000},
		{"k", c.K, 1, 1000},
		{"overfetch", c.Overfetch, 1, 10},
		{"shortPrompt", c.ShortPrompt, 0, 1000},
		{"contextChars", c.ContextChars, 0, 100_000},
		{"promptChars", c.PromptChars, 100, 100_000},
	} {
		if b.v < b.lo || b.v > b.hi {
			return fmt.Errorf("hybrid: config: %s: must be %d to %d: %w", b.field, b.lo, b.hi, core.ErrInvalid)
		}
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
