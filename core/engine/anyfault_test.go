package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/internal/needs"
)

var errStruck = errors.New("struck")

// struckStore fails one of its calls, before it does anything, or, where lost is set, after it did.
type struckStore struct {
	*memory.Store
	// at is the number of the call that fails, from 1 on; calls is how many there were, and what is the one that failed.
	at, calls int
	lost      bool
	what      string
	// killed has the process end there; the call is made again in the next one.
	killed bool
}

func (s *struckStore) strike(what string, call func() error) error {
	s.calls++
	if s.calls != s.at {
		return call()
	}
	s.what = what
	if s.lost {
		_ = call()
	}
	return fmt.Errorf("%s: %w", what, errStruck)
}

func (s *struckStore) Append(ctx context.Context, entries []core.Entry) (res core.AppendResult, err error) {
	err = s.strike("append", func() (err error) { res, err = s.Store.Append(ctx, entries); return err })
	return res, err
}

func (s *struckStore) Update(ctx context.Context, scope core.Scope, id string, change core.Change) error {
	return s.strike("update", func() error { return s.Store.Update(ctx, scope, id, change) })
}

func (s *struckStore) Delete(ctx context.Context, scope core.Scope, ids []string) (n int, err error) {
	err = s.strike("delete", func() (err error) { n, err = s.Store.Delete(ctx, scope, ids); return err })
	return n, err
}

func (s *struckStore) Get(ctx context.Context, scope core.Scope, ids []string) (out []core.Entry, err error) {
	err = s.strike("get", func() (err error) { out, err = s.Store.Get(ctx, scope, ids); return err })
	return out, err
}

func (s *struckStore) Scan(ctx context.Context, q core.ScanQuery) (page core.Page, err error) {
	err = s.strike("scan", func() (err error) { page, err = s.Store.Scan(ctx, q); return err })
	return page, err
}

func (s *struckStore) Tail(ctx context.Context, id core.SessionID) (tail core.Tail, err error) {
	err = s.strike("tail", func() (err error) { tail, err = s.Store.Tail(ctx, id); return err })
	return tail, err
}

func (s *struckStore) LoadView(ctx context.Context, id core.SessionID) (v core.View, err error) {
	err = s.strike("load view", func() (err error) { v, err = s.Store.LoadView(ctx, id); return err })
	return v, err
}

func (s *struckStore) SwapView(ctx context.Context, v core.View) error {
	return s.strike("swap view", func() error { return s.Store.SwapView(ctx, v) })
}

func (s *struckStore) ListViews(ctx context.Context, q core.ViewQuery) (out []core.SessionID, err error) {
	err = s.strike("list views", func() (err error) { out, err = s.Store.ListViews(ctx, q); return err })
	return out, err
}

// TestAnyFault: whichever call of the store fails once, done or not, the call of the engine in which it does is made again, by the same process or the next, and
// all windows are as they are where nothing fails.
func TestAnyFault(t *testing.T) {
	needs.NoRace(t)
	for name, k := range map[string]course{
		"ingest":    {turns: 6, seed: 1, budget: 200, words: 12, tools: 2, ask: 3, compact: 4, restart: 3, beat: 5},
		"erased":    {turns: 6, seed: 2, budget: 250, words: 12, forget: 2, compact: 3, restart: 4, ask: 2},
		"hosted":    {turns: 6, seed: 3, budget: 200, words: 12, tools: 2, hosted: true, whole: true, rewind: 3, system: 4, ask: 3, compact: 5},
		"subagents": {turns: 4, seed: 4, budget: 250, words: 12, spawn: 2, forget: 5, ask: 3, compact: 3},
	} {
		t.Run(name, func(t *testing.T) {
			play := func(store *struckStore) []string {
				c := newConversation(t)
				store.Store = memory.New()
				c.parts.Store, c.cfg.Failure = store, engine.FailStrict
				c.failed = func(err error) bool {
					if store.killed {
						c.restart()
					}
					return errors.Is(err, errStruck)
				}
				c.restart()
				c.lead(&k)
				return c.sent
			}
			whole := &struckStore{}
			want := play(whole)
			for at := 1; at <= whole.calls; at++ {
				for _, store := range []*struckStore{{at: at}, {at: at, lost: true}, {at: at, killed: true}, {at: at, lost: true, killed: true}} {
					got := play(store)
					for i := range want {
						if i >= len(got) || got[i] != want[i] {
							t.Errorf("call %d of %d, %s, done %t, killed %t: the window is\n%s\nwithout the fault\n%s", at, whole.calls, store.what, store.lost, store.killed, slices.Concat(got, []string{"missing"})[min(i, len(got))], want[i])
							break
						}
					}
				}
			}
		})
	}
}
