package memory

import (
	"context"
	"fmt"
)

// Config is what an operator can set: nothing. It exists so that the store can be registered like the others.
type Config struct{}

// DefaultConfig returns the only configuration there is.
func DefaultConfig() Config { return Config{} }

// Validate returns nil.
func (Config) Validate() error { return nil }

// Open returns an empty store. It fails only when ctx has ended.
func Open(ctx context.Context, _ Config) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("memory: open: %w", err)
	}
	return New(), nil
}
