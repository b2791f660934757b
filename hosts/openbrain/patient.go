package openbrain

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// probe is a text that every embedder takes.
const probe = "hello"

// patient is an embedder that tells a text that cannot be embedded from an endpoint that embeds nothing: a model that is not there yet, say.
// Thoughts that cannot be embedded are given up; those of an embedder that is not ready must wait.
type patient struct{ core.Embedder }

// Embed implements core.Embedder. It fails with core.ErrInvalid only if the embedder takes other texts.
func (p patient) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	got, err := p.Embedder.Embed(ctx, texts)
	if err == nil || !errors.Is(err, core.ErrInvalid) {
		return got, err
	}
	if _, perr := p.Embedder.Embed(ctx, []string{probe}); perr != nil {
		return nil, fmt.Errorf("the embedder refuses every text: %s: %w", perr.Error(), core.ErrUnavailable) // not ErrInvalid any more
	}
	return nil, err
}

// hidden is an error whose text does not name a source.
type hidden struct {
	text string
	err  error
}

// hide returns err for a log: parts name the agent in their errors, which here is a source.
func hide(err error, source string) error {
	if err == nil {
		return nil
	}
	return &hidden{text: strings.ReplaceAll(err.Error(), strconv.Quote(source), "a source"), err: err}
}

func (h *hidden) Error() string { return h.text }

// Unwrap returns the whole error.
func (h *hidden) Unwrap() error { return h.err }
