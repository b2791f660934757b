// Package recent is the retriever that recalls nothing: what the model sees of the past is the newest part of the conversation,
// which the window shows anyway.
//
// It tells the Engine that recall is worth no share of the budget, so that all of it goes to the window. It is the choice for
// short conversations, and the baseline that every other retriever has to beat:
//
//	retriever, err := recent.New(recent.DefaultConfig())
package recent

import (
	"context"

	"github.com/contextengine/contextengine/core"
)

// Config is empty: there is nothing to set.
type Config struct{}

// DefaultConfig returns the only configuration there is.
func DefaultConfig() Config { return Config{} }

// Validate returns nil.
func (Config) Validate() error { return nil }

// Retriever proposes nothing. It is safe for concurrent use.
type Retriever struct{}

var (
	_ core.Retriever = (*Retriever)(nil)
	_ core.Sharer    = (*Retriever)(nil)
)

// New returns a retriever. The error is nil.
func New(cfg Config) (*Retriever, error) {
	return &Retriever{}, cfg.Validate()
}

// Retrieve implements core.Retriever. It returns no candidates, and ctx's error when ctx has ended.
func (*Retriever) Retrieve(ctx context.Context, _ core.Query) ([]core.Candidate, error) {
	return nil, ctx.Err()
}

// RecallShare implements core.Sharer. It returns 0.
func (*Retriever) RecallShare() float64 { return 0 }
