package summary

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/internal/compacting"
)

// The kinds of summaries this compactor makes.
const (
	kindSummary  = "summary"
	kindFallback = "fallback"
)

// Compactor replaces the oldest history by texts of a model. Make one with New; it is safe for concurrent use.
type Compactor struct {
	cfg       Config
	model     core.Completer
	fallbacks []core.Completer
	prompts   promptSet
	log       *slog.Logger
	purse     purse
}

var _ core.Compactor = (*Compactor)(nil)

// Option sets what no configuration file can hold.
type Option func(*Compactor)

// WithFallbacks names models that are asked, in order, when the first one fails.
func WithFallbacks(models ...core.Completer) Option {
	return func(c *Compactor) { c.fallbacks = models }
}

// WithLogger sets the logger; without it nothing is logged. Texts are never logged.
func WithLogger(l *slog.Logger) Option {
	return func(c *Compactor) { c.log = l }
}

// New returns a compactor that asks model. A nil model means the host's own where the host has capability.Complete;
// otherwise every summary is a fallback made without a model (see ModelSource). The error is a core.ErrInvalid when the configuration
// or a prompt cannot be used.
func New(cfg Config, model core.Completer, opts ...Option) (*Compactor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	prompts, err := loadPrompts(cfg.Prompts)
	if err != nil {
		return nil, err
	}
	c := &Compactor{cfg: cfg, model: model, prompts: prompts, log: slog.New(slog.DiscardHandler)}
	for _, o := range opts {
		o(c)
	}
	return c, nil
}

// OwnsCompaction returns true.
func (*Compactor) OwnsCompaction() bool { return true }

// ModelSource says where the texts come from on this host: "configured", "host", or "none" when every summary would be a
// fallback. A check-up shows it.
func (s *Compactor) ModelSource(host core.Host) string {
	switch {
	case s.model != nil:
		return "configured"
	case canComplete(host):
		return "host"
	case len(s.fallbacks) > 0:
		return "configured"
	}
	return "none"
}

// Ping asks the first configured model that is a core.Pinger; nil when there is none.
func (s *Compactor) Ping(ctx context.Context) error {
	for _, m := range append([]core.Completer{s.model}, s.fallbacks...) {
		if p, ok := m.(core.Pinger); ok {
			return p.Ping(ctx)
		}
	}
	return nil
}

// Compact implements core.Compactor. When ctx ends it returns ctx's error with the patch of what is finished and not yet
// published.
func (s *Compactor) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	if err := ctx.Err(); err != nil {
		return core.Patch{}, fmt.Errorf("summary: compact: %w", err)
	}
	if c.Count == nil {
		return core.Patch{}, fmt.Errorf("summary: compact: count is nil: the compaction needs a token counter: %w", core.ErrInvalid)
	}
	if c.Tokens <= c.Target && !c.Force {
		return core.Patch{Reason: core.ReasonUnderTarget}, nil
	}
	w := &work{Compactor: s, c: c, models: s.models(c.Host)}
	if deadline, ok := ctx.Deadline(); ok {
		w.deadline = deadline
		w.near = min(s.cfg.CallTimeout, time.Until(deadline)) / 4
	}
	if why, down := w.tripped(); down {
		w.down, w.problems = true, []string{why}
	}
	p := w.plan()
	if len(p.parts) == 0 && !w.worthwhile(&p) {
		return core.Patch{Reason: core.ReasonAlreadyCompacted + ": nothing is left that a shorter text could stand for"}, nil
	}
	patch, err := w.carryOut(ctx, p)
	patch.Warnings = w.problems
	if err == nil && p.after > c.Target && c.Tokens > c.Target && patch.Reason == "" {
		patch.Reason = "the protected messages and the summaries cost more than the target"
	}
	return patch, err
}

// models returns whom to ask, in order.
func (s *Compactor) models(host core.Host) []core.Completer {
	var models []core.Completer
	switch {
	case s.model != nil:
		models = append(models, s.model)
	case canComplete(host):
		models = append(models, host)
	}
	return append(models, s.fallbacks...)
}

func canComplete(host core.Host) bool {
	return host != nil && slices.Contains(host.Capabilities(), capability.Complete)
}

// work is one compaction under way.
type work struct {
	*Compactor
	c      core.Compaction
	models []core.Completer
	// deadline is when ctx ends, zero when it does not; no call starts when less than near is left.
	deadline time.Time
	near     time.Duration
	// failures counts failed questions in a row. Only the goroutine that called Compact touches it, in the order of the
	// history, so that it does not depend on which call returns first.
	failures int
	// down says that an earlier compaction found the models failing.
	down  bool
	spent account
	// problems are what models said that failed, each once.
	problems []string
}

// summaryTokens is the largest cost of one text in the window.
func (w *work) summaryTokens() int {
	if w.c.SummaryTokens > 0 {
		return w.c.SummaryTokens - min(compacting.Overhead, w.c.SummaryTokens/2)
	}
	return defaultSummaryTokens
}
