// Package index compacts without a model: the oldest messages leave the window, and a small text stands for them that
// holds what an agent cannot make up again, exact to the byte: identifiers, paths, addresses, versions, hashes, numbers, and the
// sentences that hold for longer than the moment (rules, open tasks, decisions, the newest requests).
//
// Start with New and hand the result to engine.New as Parts.Compactor, or put it behind masking in a chain:
//
//	compactor, err := index.New(index.DefaultConfig())
//
// There is one index at a time. A later compaction reads the one before back from its text, adds what is new, ranks anew and writes
// what has room: at most Share of all that the session ever cost. What finds no room is still in the store, where recall reaches it.
//
// # Rank
//
// What was given to a tool counts most, then what users wrote, then answers, then results; what was mentioned lately and often goes before what
// appeared once long ago; what the messages that stay say anyway comes last.
package index

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting"
	"github.com/contextengine/contextengine/internal/compacting/inventory"
)

// kindIndex is the Kind of the summaries made here, kindNote that of a pointer without content.
const (
	kindIndex = "index"
	kindNote  = "note"
)

// Config is what an operator sets about the compactor. The tags are the keys of configuration files.
type Config struct {
	// Share is what the index may cost of all that the session cost so far, 0.005 to 0.2.
	Share float64 `koanf:"share" doc:"what the index may cost of all that the session cost so far, 0.005 to 0.2"`
	// LeastTokens is what it may cost in a session so short that Share of it says nothing, as long as that is no more than a sixth of the session or the target
	// leaves room for it; MostTokens is what it may cost in the longest one. Both are 32 to 100000.
	LeastTokens int `koanf:"leastTokens" doc:"what the index may cost in a short session, 32 to 100000 tokens"`
	MostTokens  int `koanf:"mostTokens" doc:"what it may cost in the longest one, 32 to 100000 tokens"`
	// Sentences is the share of the index for sentences, 0 to 0.9; identifiers get the rest.
	Sentences float64 `koanf:"sentences" doc:"share of the index for rules, tasks, decisions and requests, 0 to 0.9"`
	// Hint is put behind the heading, on one line of at most 500 bytes: how the agent gets at what left the window.
	Hint string `koanf:"hint" doc:"behind the heading, one line of at most 500 bytes: how the agent gets at what left"`
}

// DefaultConfig returns the configuration that holds where nobody chose.
func DefaultConfig() Config {
	return Config{Share: 0.03, LeastTokens: 300, MostTokens: 8000, Sentences: 0.3}
}

// Validate returns a core.ErrInvalid that names the first field out of range, and the range.
func (c Config) Validate() error {
	for _, f := range []struct {
		name   string
		ok     bool
		wanted string
	}{
		{"share", c.Share >= 0.005 && c.Share <= 0.2, "must be 0.005 to 0.2"},
		{"leastTokens", c.LeastTokens >= 32 && c.LeastTokens <= 100000, "must be 32 to 100000"},
		{"mostTokens", c.MostTokens >= c.LeastTokens && c.MostTokens <= 100000, "must be at least leastTokens, at most 100000"},
		{"sentences", c.Sentences >= 0 && c.Sentences <= 0.9, "must be 0 to 0.9"},
		{"hint", compacting.ShortLine(c.Hint), "must be one line of at most 500 bytes"},
	} {
		if !f.ok {
			return fmt.Errorf("index: config: %s: %s: %w", f.name, f.wanted, core.ErrInvalid)
		}
	}
	return nil
}

// Compactor replaces the oldest history by an index of it. Make one with New; it is safe for concurrent use.
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

// Compact implements core.Compactor. The patch holds at most one replacement, of the kind "index"; it includes the index before it, and notes.
func (x *Compactor) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	if err := ctx.Err(); err != nil {
		return core.Patch{}, fmt.Errorf("index: compact %q: %w", c.Session, err)
	}
	if c.Count == nil {
		return core.Patch{}, fmt.Errorf("index: compact %q: count is nil: the compaction needs a token counter: %w", c.Session, core.ErrInvalid)
	}
	if c.Tokens <= c.Target && !c.Force {
		return core.Patch{Reason: core.ReasonUnderTarget}, nil
	}
	var rep core.Replacement
	page := page{Inventory: inventory.New()}
	earlier, indexes := 0, 0
	for _, s := range c.Summaries {
		if s.Kind != kindIndex && s.Kind != kindNote {
			continue
		}
		rep.Summaries = append(rep.Summaries, s.ID)
		earlier += compacting.SummaryCost(c, s)
		page.include(s)
		if s.Kind == kindIndex {
			indexes++
		}
	}
	limit := x.limit(c, page.tokens)
	taken := take(c, c.Tokens-earlier+limit+compacting.Overhead)
	if slack := c.Target - (c.Tokens - earlier + limit + compacting.Overhead - taken.Cost); slack > 0 && limit < x.cfg.LeastTokens {
		limit = min(limit+slack, x.cfg.LeastTokens) // groups are coarse in a short session
	}
	// It must cost less than what it stands for, and be worth its while.
	limit = min(limit, (taken.Cost+earlier)*3/4-compacting.Overhead, x.most(c))
	if taken.To == 0 && indexes < 2 || limit < leastText {
		return core.Patch{Reason: core.ReasonAlreadyCompacted + ": nothing is left that costs more than an index of it"}, nil
	}
	if err := page.read(ctx, c, taken.To); err != nil {
		return core.Patch{}, fmt.Errorf("index: compact %q: %w", c.Session, err)
	}
	rep.Entries = compacting.IDs(c, taken)
	rep.Kind = kindIndex
	rep.Text, rep.Meta = x.write(&page, c, limit)
	patch := core.Patch{Replace: []core.Replacement{rep}}
	after := c.Tokens - earlier - taken.Cost + c.Count(rep.Text) + compacting.Overhead
	if after > c.Target && c.Tokens > c.Target {
		patch.Reason = "the protected messages and the summaries cost more than the target"
	}
	return patch, nil
}

// leastShare bounds the index of a short session: to one part in so many.
const leastShare = 6

// leastText is what an index costs at least, in tokens.
const leastText = 24

// limit is what the text may cost: its share of everything the session cost so far, within what a single text should have.
func (x *Compactor) limit(c core.Compaction, before int) int {
	total := before
	for i := range c.Entries {
		total += c.Entries[i].Tokens
	}
	// A little less: entries of a session cost a little more at rest than their texts do.
	limit := int(0.98*x.cfg.Share*float64(total)) - compacting.Overhead
	return min(max(limit, min(x.cfg.LeastTokens, total/leastShare)), x.most(c))
}

// most is what a text may cost in any session.
func (x *Compactor) most(c core.Compaction) int {
	if c.SummaryTokens <= 0 {
		return x.cfg.MostTokens
	}
	return min(x.cfg.MostTokens, c.SummaryTokens-min(compacting.Overhead, c.SummaryTokens/2))
}

// take returns what has to go for the rest to meet the target; the session costs tokens before anything is taken, the index included.
func take(c core.Compaction, tokens int) compacting.Unit {
	enough := compacting.EnoughFor(c)
	var taken compacting.Unit
	for _, u := range compacting.Units(c) {
		if taken.To > 0 && enough.Met(taken.To, tokens-taken.Cost) {
			break
		}
		taken.To, taken.Cost = u.To, taken.Cost+u.Cost
	}
	return taken
}
