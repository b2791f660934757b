// Package chain lets several compactors work one after the other: each on what those before it left, until the target is
// reached. The cheap and lossless means come first, a model last:
//
//	compactor, err := chain.New(maskTier, indexTier, archiveTier, summaryTier)
//
// Every tier is an ordinary core.Compactor that works alone too, and any order is possible.
//
// # How patches become one
//
// What tiers return is collected and handed over as one patch at the end, so that a window that two tiers change changes once. A tier that
// publishes by itself, because what it made is paid for, publishes at once, together with what was collected before.
// A later tier sees the session as the earlier ones leave it: entries they took are gone, stubbed ones cost less, and the texts that they
// wrote are summaries that it may include in its own.
//
// # When nobody makes progress
//
// A conversation can hold nothing that a tier could shorten (masking finds no tool results in a chat). When no tier of an owning chain achieves
// anything although entries could go, the oldest leave behind a note that counts them, as the engine itself would do it.
package chain

import (
	"context"
	"errors"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting"
)

// Compactor is a chain of compactors. Make one with New; it is safe for concurrent use when its tiers are.
type Compactor struct {
	tiers []core.Compactor
}

var _ core.Compactor = (*Compactor)(nil)

// New returns the chain of tiers, in this order. It is a core.ErrInvalid when there is none, when one is nil, when some own compaction and others
// pass it on, or when more than one passes it on: the runtime would be asked more than once.
func New(tiers ...core.Compactor) (*Compactor, error) {
	if len(tiers) == 0 {
		return nil, fmt.Errorf("chain: no tiers: name at least one compactor: %w", core.ErrInvalid)
	}
	passing := 0
	for i, t := range tiers {
		if t == nil {
			return nil, fmt.Errorf("chain: tier %d is nil: %w", i+1, core.ErrInvalid)
		}
		if !t.OwnsCompaction() {
			passing++
		}
	}
	if passing > 0 && len(tiers) > 1 {
		return nil, fmt.Errorf("chain: a compactor that passes the task on to the runtime works alone: leave out the other tiers: %w", core.ErrInvalid)
	}
	k := &Compactor{tiers: append([]core.Compactor(nil), tiers...)}
	for i, t := range k.tiers {
		if t, ok := t.(compacting.Tier); ok {
			k.tiers[i] = t.AsTier() // what it does when nothing else helps is up to the chain
		}
	}
	return k, nil
}

// OwnsCompaction reports whether the tiers own compaction.
func (k *Compactor) OwnsCompaction() bool { return k.tiers[0].OwnsCompaction() }

// Tiers returns the tiers in order. The slice is the caller's.
func (k *Compactor) Tiers() []core.Compactor { return append([]core.Compactor(nil), k.tiers...) }

// Compact implements core.Compactor. A tier that fails does not stop those behind it; what went wrong is returned together with the patch. When ctx ends,
// so does the chain, with what it has.
func (k *Compactor) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	if err := ctx.Err(); err != nil {
		return core.Patch{}, fmt.Errorf("chain: compact %q: %w", c.Session, err)
	}
	if !k.OwnsCompaction() {
		return k.tiers[0].Compact(ctx, c)
	}
	if c.Count == nil {
		return core.Patch{}, fmt.Errorf("chain: compact %q: count is nil: the compaction needs a token counter: %w", c.Session, core.ErrInvalid)
	}
	if c.Tokens <= c.Target && !c.Force {
		return core.Patch{Reason: core.ReasonUnderTarget}, nil
	}
	s := newState(c)
	var errs []error
	for i, t := range k.tiers {
		if i > 0 && s.done() {
			break
		}
		p, err := t.Compact(ctx, s.task())
		s.take(p)
		s.warnings = append(s.warnings, p.Warnings...)
		if p.Reason != "" {
			s.reason = p.Reason
		}
		if err != nil {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			return s.patch(), errors.Join(errs...)
		}
	}
	s.leave()
	return s.patch(), errors.Join(errs...)
}
