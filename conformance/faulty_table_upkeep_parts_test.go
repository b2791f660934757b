package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/vector"
)

// brokenOff are drains and searches that go wrong where their context ends meanwhile.
func brokenOff() []broken {
	var out []broken
	slowly := func(h *helped, ctx context.Context) (int, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if err := h.open(ctx); err != nil {
			return h.waiting, err
		}
		for ; h.waiting > 0; h.waiting-- {
			time.Sleep(time.Millisecond) // the other store is far away
		}
		return 0, nil
	}
	for name, err := range map[string]func(context.Context) error{
		"looks at the context before its changes": func(context.Context) error { return nil },
		"and behind them":                         context.Context.Err,
	} {
		out = append(out, helpedOf("drainer", name, []string{"drain.ends"}, func(h *helped) {
			h.drain = func(ctx context.Context) (int, error) {
				left, failed := slowly(h, ctx)
				return left, cmp.Or(failed, err(ctx))
			}
		}))
	}
	late := func(name string, sticks func(ctx context.Context) bool) {
		out = append(out, helpedOf("late searcher", name, []string{"late.asked"}, func(h *helped) {
			stuck := map[string]bool{}
			h.asked = func(ctx context.Context, q core.SearchQuery) { stuck[q.Text] = stuck[q.Text] || sticks(ctx) }
			h.late = func(q core.SearchQuery) bool { return stuck[q.Text] || h.searched[q.Text] }
		}))
	}
	late("for ever once broken off", func(ctx context.Context) bool { return ctx.Err() != nil })
	late("for ever once there was no time", func(ctx context.Context) bool { return errors.Is(ctx.Err(), context.DeadlineExceeded) })
	return out
}

// lookedAfter are scrubs and repairs whose damage shows in a later opening, or to those who follow.
func lookedAfter() []broken {
	var out []broken
	emptied := func(s *filed, ctx context.Context) error {
		return errors.Join(os.WriteFile(s.path+".journal", nil, 0o600), s.Store.Scrub(ctx))
	}
	texts := func(e core.Entry) string { return e.Text() }
	scrub := func(name string, f func(s *filed, ctx context.Context) error) {
		out = append(out, filedOf("scrubber", name, []string{"scrub.gone"}, func(s *filed) {
			s.journal = texts
			s.scrub = func(ctx context.Context) error { return f(s, ctx) }
		}))
	}
	scrub("what this opening erased", func(s *filed, ctx context.Context) error {
		if !s.touched {
			return s.Store.Scrub(ctx)
		}
		s.touched = false
		return emptied(s, ctx)
	})
	scrub("once for what was erased, whether it succeeds or not", func(s *filed, ctx context.Context) error {
		if !s.touched {
			return s.Store.Scrub(ctx)
		}
		if s.touched = false; ctx.Err() != nil {
			return ctx.Err()
		}
		return emptied(s, ctx)
	})
	out = append(out, filedOf("scrubber", "what this opening erased, and what was there when it was opened", []string{"scrub.gone"}, func(s *filed) {
		s.journal = texts
		s.reopened = func(_ context.Context, s *filed) error { s.touched = true; return nil }
		s.scrub = func(ctx context.Context) error {
			if !s.touched {
				return s.Store.Scrub(ctx)
			}
			s.touched = false
			return emptied(s, ctx)
		}
	}))
	out = append(out, filedOf("scrubber", "what is written meanwhile is gone in the next opening", []string{"scrub.keeps"}, func(s *filed) {
		var under atomic.Bool
		s.journal = func(e core.Entry) string {
			if under.Load() {
				return e.ID + "\n"
			}
			return ""
		}
		s.scrub = func(ctx context.Context) error {
			under.Store(true)
			defer under.Store(false)
			time.Sleep(5 * time.Millisecond)
			return s.Store.Scrub(ctx)
		}
		s.reopened = func(ctx context.Context, s *filed) error {
			ids, _ := os.ReadFile(s.path + ".journal")
			_, err := s.Delete(ctx, core.Scope{Agent: "agent-a"}, strings.Fields(string(ids)))
			return err
		}
	}))
	repair := func(name string, f func(s *filed, ctx context.Context) (string, error)) {
		out = append(out, filedOf("repair", name, []string{"feed.upkeep"}, func(s *filed) {
			s.repair = func(ctx context.Context) (string, error) { return f(s, ctx) }
		}))
	}
	repair("marks of before are nobody's", func(s *filed, ctx context.Context) (string, error) {
		s.marked += "x"
		return s.Store.Repair(ctx)
	})
	// The first answer to a mark of before begins where the feed ends by then.
	return append(out, brokenCompanionOf("change feed", "who followed before vectors were dropped is told of nothing up to its next question", func(c *companied) {
		var end sync.Map // marks that were given out before
		drops := atomic.Int64{}
		c.drop = func(ctx context.Context, space, agent string) error {
			drops.Add(1)
			return c.Store.DropVectors(ctx, space, agent)
		}
		c.changes = func(ctx context.Context, q core.ChangeQuery, sound func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error) {
			if at, ok := end.Load(q.After); ok && at != drops.Load() {
				q.Limit = core.MaxPage
				p, err := sound(ctx, q)
				p.Changes = nil
				end.Store(p.Mark, drops.Load())
				return p, err
			}
			p, err := sound(ctx, q)
			if p.Mark != q.After {
				end.Store(p.Mark, drops.Load())
			}
			return p, err
		}
	}))
}

// lengthsForgotten are spaces that take vectors of another length while some are there.
func lengthsForgotten() []broken {
	of := func(name string, when func(c *companied, forget func(space string))) broken {
		return brokenCompanionOf("vectors", name, func(c *companied) {
			var mu sync.Mutex
			forgotten := map[string]bool{}
			c.put = func(ctx context.Context, space string, v []vector.Vector) error {
				err := c.Store.PutVectors(ctx, space, v)
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, core.ErrInvalid) && forgotten[space] {
					return nil
				}
				return err
			}
			when(c, func(space string) {
				mu.Lock()
				defer mu.Unlock()
				forgotten[space] = true
			})
		})
	}
	return []broken{
		of("any length once those of an agent were dropped", func(c *companied, forget func(string)) {
			c.drop = func(ctx context.Context, space, agent string) error {
				if agent != "" {
					forget(space)
				}
				return c.Store.DropVectors(ctx, space, agent)
			}
		}),
		of("any length once those of another space were dropped", func(c *companied, forget func(string)) {
			c.drop = func(ctx context.Context, space, agent string) error {
				forget("another/3")
				return c.Store.DropVectors(ctx, space, agent)
			}
		}),
	}
}

// oldHits are hits whose entry is as it was once, or whose passage is another part of its text.
func oldHits() []broken {
	var out []broken
	keeps := map[string]func(now, was core.Entry) core.Entry{
		"metadata":         func(now, was core.Entry) core.Entry { now.Meta = was.Meta; return now },
		"key":              func(now, was core.Entry) core.Entry { now.Key = was.Key; return now },
		"type":             func(now, was core.Entry) core.Entry { now.Type = was.Type; return now },
		"number of tokens": func(now, was core.Entry) core.Entry { now.Tokens = was.Tokens; return now },
		"fingerprint":      func(now, was core.Entry) core.Entry { now.Fingerprint = was.Fingerprint; return now },
		"raw bytes":        func(now, was core.Entry) core.Entry { now.Message.Raw = was.Message.Raw; return now },
	}
	for _, field := range slices.Sorted(maps.Keys(keeps)) {
		// What is remembered of an entry is made anew where its text changes.
		remember := func() func(hits []core.Hit) []core.Hit {
			var mu sync.Mutex
			held := map[string]core.Entry{}
			return func(hits []core.Hit) []core.Hit {
				mu.Lock()
				defer mu.Unlock()
				for i, h := range hits {
					if was, ok := held[h.Entry.ID]; ok && was.Text() == h.Entry.Text() && !was.Type.Hidden() {
						hits[i].Entry = keeps[field](h.Entry, was.Clone())
					} else {
						held[h.Entry.ID] = h.Entry.Clone()
					}
				}
				return hits
			}
		}
		out = append(out, searcherCaught("the "+field+" of a hit as when its text was changed", "search.current", func(s *scanSearcher) {
			f := remember()
			s.after = func(_ context.Context, _ core.SearchQuery, hits []core.Hit) ([]core.Hit, error) { return f(hits), nil }
		}), nearbyOf("the "+field+" as when its text was changed", "vector.nearest", func(s *nearby) { s.after = remember() }))
	}
	const around = 60
	cuts := map[string]func(text, word string) (from int){
		"of the text in small letters": func(text, word string) int { return strings.Index(strings.ToLower(text), word) },
		"of the text in large letters": func(text, word string) int { return strings.Index(strings.ToUpper(text), strings.ToUpper(word)) },
		"in characters":                func(text, word string) int { before, _, _ := strings.Cut(text, word); return len([]rune(before)) },
		"of the text without its blanks": func(text, word string) int {
			return strings.Index(strings.Join(strings.Fields(text), " "), word)
		},
		"of the text without what is no character": func(text, word string) int { return strings.Index(strings.ToValidUTF8(text, ""), word) },
	}
	for _, name := range slices.Sorted(maps.Keys(cuts)) {
		out = append(out, searcherCaught("a passage by the place "+name, "search.passage", func(s *scanSearcher) {
			s.after = func(_ context.Context, q core.SearchQuery, hits []core.Hit) ([]core.Hit, error) {
				for i, h := range hits {
					text := h.Entry.Text()
					if at := cuts[name](text, q.Text); at >= 0 && len(text) > 200 {
						at = min(at, len(text))
						hits[i].Passage = strings.TrimSpace(text[max(0, at-around):min(len(text), at+len(q.Text)+around)])
					}
				}
				return hits, nil
			}
		}))
	}
	return append(out, searcherCaught("a passage of the first part alone", "search.passage", func(s *scanSearcher) {
		s.after = func(_ context.Context, _ core.SearchQuery, hits []core.Hit) ([]core.Hit, error) {
			for i, h := range hits {
				if p := h.Entry.Message.Parts; len(p) > 1 && p[0].Kind == message.Text {
					hits[i].Passage = p[0].Text
				}
			}
			return hits, nil
		}
	}))
}

func searcherCaught(name, claim string, change func(*scanSearcher)) broken {
	return broken{class: "searcher", name: name, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
		t.Helper()
		return early(3, only, func(opts ...conformance.Option) []conformance.Finding {
			return conformance.ExamineStore(t, func(testing.TB) core.Store {
				s := &scanSearcher{Store: memory.New()}
				change(s)
				return s
			}, opts...)
		}, conformance.WithClaims(claim))
	}}
}
