// Package archive compacts without a model: the oldest messages leave the window, and one short note says how many
// there are and of what time. What they said stays in the store, where recall finds it.
//
// Start with New and hand the result to engine.New as Parts.Compactor:
//
//	compactor, err := archive.New(archive.DefaultConfig())
//
// There is one note at a time: a later compaction writes a new one that includes the earlier ones. Summaries of
// other kinds are left alone. It is the right choice next to a retriever that recalls well, and where no text of a session may
// be shown to another model.
package archive

import (
	"context"
	"fmt"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting"
)

// Config is what an operator sets about the compactor. The tags are the keys of configuration files.
type Config struct {
	// Hint is put at the end of the note, on one line of at most 500 bytes: how the agent gets at archived messages, for instance the
	// name of a tool. Empty adds nothing.
	Hint string `koanf:"hint" doc:"end of the note, one line of at most 500 bytes: how the agent gets at archived messages"`
}

// DefaultConfig returns the configuration that holds where nobody chose.
func DefaultConfig() Config { return Config{} }

// Validate returns a core.ErrInvalid when the hint is not one short line.
func (c Config) Validate() error {
	if !compacting.ShortLine(c.Hint) {
		return fmt.Errorf("archive: config: hint: must be one line of at most 500 bytes: %w", core.ErrInvalid)
	}
	return nil
}

// Compactor replaces the oldest history by a note. Make one with New; it is safe for concurrent use.
type Compactor struct {
	cfg Config
}

var _ core.Compactor = (*Compactor)(nil)

// New returns a compactor; the error is that of Config.Validate.
func New(cfg Config) (*Compactor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Compactor{cfg: cfg}, nil
}

// OwnsCompaction returns true.
func (*Compactor) OwnsCompaction() bool { return true }

// Compact implements core.Compactor. The patch holds at most one replacement, of the kind "note".
func (a *Compactor) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	if err := ctx.Err(); err != nil {
		return core.Patch{}, fmt.Errorf("archive: compact %q: %w", c.Session, err)
	}
	if c.Count == nil {
		return core.Patch{}, fmt.Errorf("archive: compact %q: count is nil: the compaction needs a token counter: %w", c.Session, core.ErrInvalid)
	}
	if c.Tokens <= c.Target && !c.Force {
		return core.Patch{Reason: core.ReasonUnderTarget}, nil
	}
	var rep core.Replacement
	var n note
	earlier := 0
	for _, s := range c.Summaries {
		if s.Kind == kindNote {
			rep.Summaries = append(rep.Summaries, s.ID)
			n.include(s)
			earlier += compacting.SummaryCost(c, s)
		}
	}

	taken := compacting.Unit{}
	enough := compacting.EnoughFor(c)
	// A note costs about the same whatever it counts, so the longest it can be is reserved once.
	base := c.Tokens - earlier + a.reserve(c)
	for _, u := range compacting.Units(c) {
		if taken.To > 0 && enough.Met(taken.To, base-taken.Cost) {
			break
		}
		taken.To = u.To
		taken.Cost += u.Cost
	}
	if err := ctx.Err(); err != nil {
		return core.Patch{}, fmt.Errorf("archive: compact %q: %w", c.Session, err)
	}
	first, last := compacting.Period(c.Entries[:taken.To])
	n.add(taken.To, first, last)
	rep.Text = n.text(c, a.cfg.Hint)
	rep.Kind = kindNote
	rep.Entries = compacting.IDs(c, taken)
	if taken.To == 0 && len(rep.Summaries) < 2 || c.Count(rep.Text)+compacting.Overhead >= taken.Cost+earlier {
		return core.Patch{Reason: core.ReasonAlreadyCompacted + ": nothing is left that costs more than a note"}, nil
	}
	patch := core.Patch{Replace: []core.Replacement{rep}}
	after := c.Tokens - earlier - taken.Cost + c.Count(rep.Text) + compacting.Overhead
	if after > c.Target && c.Tokens > c.Target {
		patch.Reason = "the protected messages and the summaries cost more than the target"
	}
	return patch, nil
}

// reserve is what the longest note costs.
func (a *Compactor) reserve(c core.Compaction) int {
	at := time.Date(2000, 12, 30, 20, 50, 0, 0, time.UTC)
	n := note{messages: 99_999_999, first: at, last: at}
	return c.Count(n.text(c, a.cfg.Hint)) + compacting.Overhead
}
