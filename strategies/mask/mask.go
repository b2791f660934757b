// Package mask compacts without a model and without taking anything out of the conversation: old tool results give way to a line that says which
// tool it was, how it ended, how large the result is and under which id it is stored; old images and files to one that says what they are; oversized
// texts keep head and tail.
//
// Start with New and hand the result to engine.New as Parts.Compactor, or make it the first tier of a chain:
//
//	compactor, err := mask.New(mask.DefaultConfig())
//
// The newest results and those that report an error stay as they are, the oldest give way first, and no more than the target asks for.
// Calls and their arguments are never touched, and what people wrote only where it is as long as nobody writes (PayloadTokens): a log or a file that was
// pasted. So in a conversation without tools there is little to gain. In a chain the next tier goes on from there; alone, the oldest messages leave behind a note that counts them when there is nothing to mask.
package mask

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting"
)

// Config is what an operator sets about the compactor. The tags are the keys of configuration files.
type Config struct {
	// KeepResults is the number of newest tool results that stay, 0 to 10000.
	KeepResults int `koanf:"keepResults" doc:"newest tool results that stay as they are, 0 to 10000"`
	// KeepFailed keeps results that report an error.
	KeepFailed bool `koanf:"keepFailed" doc:"results that report an error stay as they are"`
	// ClipTokens is the cost above which a result or an answer that is not masked keeps head and tail only, at least 100 tokens; 0 clips nothing.
	ClipTokens int `koanf:"clipTokens" doc:"what costs more and is not masked keeps head and tail, at least 100 tokens; 0 clips nothing"`
	// KeepImages is the number of newest images and files, of users and of results, that stay, 0 to 1000; so do those of the newest request. Those inside an Anthropic result go when the
	// result does.
	KeepImages int `koanf:"keepImages" doc:"newest images and files that stay in the window, 0 to 1000; older ones leave behind a line that says what they are"`
	// PayloadTokens is the cost above which a user's text, the newest message aside, keeps head and tail of half of that; at least 1000 tokens, 0 clips
	// nothing. It is meant for what was pasted, so choose it larger than anything that people write themselves.
	PayloadTokens int `koanf:"payloadTokens" doc:"a user's older text that costs more (a pasted log or file) keeps head and tail of half of that, at least 1000 tokens; 0 clips nothing"`
	// LeastTokens is what masking a result must save at least, 1 to 10000 tokens.
	LeastTokens int `koanf:"leastTokens" doc:"what masking a result must save at least, 1 to 10000 tokens"`
}

// DefaultConfig returns the configuration that holds where nobody chose.
func DefaultConfig() Config {
	return Config{KeepResults: 10, KeepFailed: true, ClipTokens: 2000, KeepImages: 4, PayloadTokens: 10000, LeastTokens: 16}
}

// Validate returns a core.ErrInvalid that names the first field out of range, and the range.
func (c Config) Validate() error {
	for _, f := range []struct {
		name   string
		ok     bool
		wanted string
	}{
		{"keepResults", c.KeepResults >= 0 && c.KeepResults <= 10000, "must be 0 to 10000"},
		{"clipTokens", c.ClipTokens == 0 || c.ClipTokens >= 100, "must be 0 or at least 100"},
		{"keepImages", c.KeepImages >= 0 && c.KeepImages <= 1000, "must be 0 to 1000"},
		{"payloadTokens", c.PayloadTokens == 0 || c.PayloadTokens >= 1000, "must be 0 or at least 1000"},
		{"leastTokens", c.LeastTokens >= 1 && c.LeastTokens <= 10000, "must be 1 to 10000"},
	} {
		if !f.ok {
			return fmt.Errorf("mask: config: %s: %s: %w", f.name, f.wanted, core.ErrInvalid)
		}
	}
	return nil
}

// Compactor masks old tool results. Make one with New; it is safe for concurrent use.
type Compactor struct {
	cfg Config
	// tier says that others work behind it.
	tier bool
}

var (
	_ core.Compactor  = (*Compactor)(nil)
	_ compacting.Tier = (*Compactor)(nil)
)

// New returns a compactor; the error is that of Config.Validate.
func New(cfg Config) (*Compactor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Compactor{cfg: cfg}, nil
}

// AsTier returns a compactor that does nothing when there is nothing to mask.
func (m *Compactor) AsTier() core.Compactor { return &Compactor{cfg: m.cfg, tier: true} }

// OwnsCompaction returns true.
func (*Compactor) OwnsCompaction() bool { return true }

// Compact implements core.Compactor. The patch holds stubs, for entries that the window shows and nobody protects; or a note when there is nothing
// to mask and no tier behind this one.
func (m *Compactor) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	if err := ctx.Err(); err != nil {
		return core.Patch{}, fmt.Errorf("mask: compact %q: %w", c.Session, err)
	}
	if c.Count == nil {
		return core.Patch{}, fmt.Errorf("mask: compact %q: count is nil: the compaction needs a token counter: %w", c.Session, core.ErrInvalid)
	}
	if c.Tokens <= c.Target && !c.Force {
		return core.Patch{Reason: core.ReasonUnderTarget}, nil
	}
	w := &work{cfg: m.cfg, c: c, names: namesOf(c.Entries), left: c.Tokens, all: c.Force && c.Tokens <= c.Target}
	for _, pass := range []func(int){w.clipLarge, w.clipPayload, w.maskMedia, w.maskOld} {
		for i := min(max(c.Left, 0), len(c.Entries)); i < len(c.Entries)-max(c.Protected, 0); i++ {
			if w.enough() {
				break
			}
			if err := ctx.Err(); err != nil {
				return core.Patch{Stubs: w.stubs}, fmt.Errorf("mask: compact %q: %w", c.Session, err)
			}
			pass(i)
		}
	}
	if len(w.stubs) == 0 {
		if r, ok := compacting.Leave(c); ok && !m.tier {
			patch := core.Patch{Replace: []core.Replacement{r}}
			left := c.Tokens + c.Count(r.Text) + compacting.Overhead
			for i := range r.Entries {
				left -= compacting.CostOf(c, i)
			}
			if left > c.Target && c.Tokens > c.Target {
				patch.Reason = "the protected messages cost more than the target"
			}
			return patch, nil
		}
		return core.Patch{Reason: core.ReasonAlreadyCompacted + ": no old tool result or image is left to mask"}, nil
	}
	patch := core.Patch{Stubs: w.stubs}
	if w.left > c.Target && c.Tokens > c.Target {
		patch.Reason = "masking old tool results and images alone does not reach the target"
	}
	return patch, nil
}

// costOf returns what entry i costs in the window now, in tokens.
func (w *work) costOf(i int) int {
	if st, ok := w.stubs[w.c.Entries[i].ID]; ok {
		return st.Tokens
	}
	return compacting.CostOf(w.c, i)
}
