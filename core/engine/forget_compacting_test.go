package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// retold is a compactor that repeats the ends of all it is given. Of earlier summaries it replaces the oldest, or, told to keep them, none.
type retold struct{ keep bool }

func (retold) OwnsCompaction() bool { return true }

func (r retold) Compact(_ context.Context, c core.Compaction) (core.Patch, error) {
	out := core.Replacement{Kind: "summary"}
	for _, sum := range c.Summaries {
		out.Text += sum.Text
		if !r.keep {
			out.Summaries = append(out.Summaries, sum.ID)
		}
	}
	for i, entry := range c.Entries {
		if words := strings.Fields(entry.Text()); len(words) > 0 {
			out.Text += words[len(words)-1] + " "
		}
		if i < len(c.Entries)-c.Protected {
			out.Entries = append(out.Entries, entry.ID)
		}
	}
	return core.Patch{Replace: []core.Replacement{out}}, nil
}

// TestForgetWhileTheCompactorWorks: what is erased while a compactor works is in no summary afterwards, wherever the compactor had it from: what it replaces, what stays,
// an earlier summary, whoever erased it, and whatever else came meanwhile.
func TestForgetWhileTheCompactorWorks(t *testing.T) {
	padding := strings.Repeat("word ", 40)
	for what, at := range map[string]int{"in a summary": 1, "to be replaced": 9, "to stay": 13} {
		for _, keep := range []bool{false, true} {
			for _, elsewhere := range []bool{false, true} {
				for _, order := range []string{"forget", "ingest, forget", "forget, ingest", "assemble, forget", "forget, forget another"} {
					t.Run(fmt.Sprintf("%s, kept %v, elsewhere %v, %s", what, keep, elsewhere, order), func(t *testing.T) {
						late := &meanwhile{Compactor: retold{keep}}
						f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = late })
						say := func(from, to int) {
							for i := from; i < to; i++ {
								text := fmt.Sprint(padding, "n", i)
								if i == at {
									text = padding + secret
								}
								f.ingest(message.New([]message.Role{message.User, message.Assistant}[i%2], text))
							}
						}
						say(0, 8)
						f.compact(200)
						say(8, 14)
						other := f.engine
						if elsewhere {
							var err error
							if other, err = engine.New(f.parts, f.cfg); err != nil {
								t.Fatal(err)
							}
						}
						late.do = func() {
							for do := range strings.SplitSeq(order, ", ") {
								var err error
								switch do {
								case "forget":
									_, err = other.Forget(t.Context(), engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(padding + secret).ID}})
								case "forget another":
									_, err = other.Forget(t.Context(), engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(padding + "n8").ID}})
								case "ingest":
									_, err = other.Ingest(t.Context(), core.IngestRequest{Session: f.id, Message: user("one more")})
								default:
									_, err = other.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 200})
								}
								if err != nil {
									t.Error(err)
								}
							}
						}
						if res := f.compact(500); !res.OK {
							t.Errorf("Compact = %+v", res)
						}
						if late.do != nil {
							t.Fatal("the compactor was not asked")
						}
						if got := f.traces(); got != nil {
							t.Errorf("still there: %q", got)
						}
					})
				}
			}
		}
	}
}

// TestForgetWhileCompactionsCome: of several compactions that are published while an erasure is under way, the later ones replace the summaries of those before: all of them
// are gone afterwards, wherever in the erasure they came.
func TestForgetWhileCompactionsCome(t *testing.T) {
	for _, engines := range []int{1, 2} {
		for at := int64(1); ; at++ {
			store := &numbered{Store: memory.New(), at: at}
			store.off.Store(true)
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store, p.Compactor = store, retold{} })
			f.store = store.Store
			f.ingest(user(strings.Repeat("word ", 40)+secret), assistant(strings.Repeat("word ", 40)), user("b"), assistant("c"))
			f.assemble(1000)
			id := f.entry(secret).ID
			other := f.engine
			if engines > 1 {
				var err error
				if other, err = engine.New(engine.Parts{Store: store.Store, Compactor: retold{}, Counter: f.parts.Counter}, f.cfg); err != nil {
					t.Fatal(err)
				}
			}
			var done []chan error
			compact := func() {
				ch := make(chan error, 1)
				done = append(done, ch)
				go func() {
					for range 2 {
						_, err := other.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 60, Force: true})
						if err == nil {
							_, err = other.Ingest(t.Context(), core.IngestRequest{Session: f.id, Message: user(strings.Repeat("more ", 20))})
						}
						if err != nil {
							ch <- err
							return
						}
					}
					ch <- nil
				}()
				if engines > 1 { // they wait for nobody
					ch <- <-ch
				}
			}
			store.do = compact
			store.off.Store(false)
			f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{id}})
			store.off.Store(true)
			for _, ch := range done {
				if err := <-ch; err != nil {
					t.Error(err)
				}
			}
			if got := f.traces(); got != nil {
				t.Errorf("%d engines, before call %d: still there: %q", engines, at, got)
			}
			if len(done) == 0 {
				break
			}
		}
	}
}

// numbered is a store that does something before one of its calls.
type numbered struct {
	*memory.Store
	at int64

	calls atomic.Int64
	off   atomic.Bool
	do    func()
}

func (s *numbered) call() {
	if !s.off.Load() && s.calls.Add(1) == s.at {
		s.do()
	}
}

func (s *numbered) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	s.call()
	return s.Store.Scan(ctx, q)
}

func (s *numbered) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	s.call()
	return s.Store.Update(ctx, scope, id, c)
}

func (s *numbered) LoadView(ctx context.Context, id core.SessionID) (core.View, error) {
	s.call()
	return s.Store.LoadView(ctx, id)
}

func (s *numbered) SwapView(ctx context.Context, v core.View) error {
	s.call()
	return s.Store.SwapView(ctx, v)
}
