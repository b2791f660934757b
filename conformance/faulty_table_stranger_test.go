package conformance_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/vector"
)

// tableStrangers are parts and engines written by somebody who read the contract alone, each of which the suite of its day let pass.
func tableStrangers() []broken {
	return slices.Concat(strangersStores(), strangersParts(), strangersEngines())
}

func strangersStores() []broken {
	return []broken{
		brokenStoreOf("store: names confused", "keys joined with their session", func(s *brokenStore) {
			var mu sync.Mutex
			known := map[string]string{}
			s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
				mu.Lock()
				defer mu.Unlock()
				joined := func(e *core.Entry) string { return e.Agent + "\x00" + e.Session + "\x00" + e.Key }
				if len(entries) == 1 {
					if id, ok := known[joined(&entries[0])]; ok && id != entries[0].ID {
						return core.AppendResult{IDs: []string{id}, Duplicates: 1}, nil
					}
				}
				res, err := s.Store.Append(ctx, entries)
				for i := range entries {
					if err == nil {
						known[joined(&entries[i])] = entries[i].ID
					}
				}
				return res, err
			}
		}, conformance.WithClaims("odd.names")),
		brokenStoreOf("store: races", "a batch is stored session by session", func(s *brokenStore) {
			s.append = func(ctx context.Context, entries []core.Entry) (res core.AppendResult, err error) {
				sessions := map[string][]core.Entry{}
				for _, e := range entries {
					sessions[e.Session] = append(sessions[e.Session], e)
				}
				if len(sessions) < 3 {
					return s.Store.Append(ctx, entries)
				}
				for _, list := range sessions {
					if _, err = s.Store.Append(ctx, list); err != nil {
						return res, err
					}
					time.Sleep(time.Millisecond)
				}
				for _, e := range entries {
					res.IDs = append(res.IDs, e.ID)
				}
				return res, nil
			}
		}, conformance.WithClaims("race.shown")),
		brokenCompanionOf("vectors", "zero has no sign", func(c *companied) {
			c.put = func(ctx context.Context, space string, v []vector.Vector) error {
				v = slices.Clone(v)
				for i := range v {
					v[i].Values = slices.Clone(v[i].Values)
					for j, x := range v[i].Values {
						if x == 0 {
							v[i].Values[j] = float32(math.Abs(float64(x)))
						}
					}
				}
				return c.Store.PutVectors(ctx, space, v)
			}
		}),
	}
}

func strangersParts() []broken {
	longNote := func(p core.Patch) core.Patch {
		for i := range p.Replace {
			if rep := &p.Replace[i]; len(rep.Entries) > 20 {
				rep.Text += " " + strings.Join(rep.Entries, " ")
			}
		}
		return p
	}
	return []broken{
		brokenRetrieverOf("retriever: order", "scores are compared by tenths", func() func(context.Context, core.Query, sound) ([]core.Candidate, error) {
			return func(ctx context.Context, q core.Query, s sound) ([]core.Candidate, error) {
				got, err := s(ctx, q)
				if len(got) == 0 {
					return got, err
				}
				tenth := got[0].Score / 10
				slices.SortStableFunc(got, func(a, b core.Candidate) int {
					if n := int(b.Score/tenth) - int(a.Score/tenth); n != 0 {
						return n
					}
					return b.Entry.Time.Compare(a.Entry.Time)
				})
				return got, err
			}
		}),
		brokenCompactorOf("texts", "archive", "a note names all that it stands for", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			publish := c.Publish
			c.Publish = func(ctx context.Context, p core.Patch) error { return publish(ctx, longNote(p)) }
			p, err := s(ctx, c)
			return longNote(p), err
		}),
		brokenCompactorOf("publishing", "summary", "what was published last is proposed again", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			var last []core.Replacement
			if publish := c.Publish; publish != nil {
				c.Publish = func(ctx context.Context, p core.Patch) error {
					err := publish(ctx, p)
					if n := len(p.Replace); n > 0 && err == nil {
						last = p.Replace[n-1:]
					}
					return err
				}
			}
			p, err := s(ctx, c)
			p.Replace = append(last, p.Replace...)
			return p, err
		}),
		brokenCompactorOf("stubs", "mask", "of a failed result nothing is left", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			failed := map[string]bool{}
			for _, e := range c.Entries {
				for _, part := range e.Message.Parts {
					failed[e.ID] = failed[e.ID] || part.Kind == message.ToolResult && part.IsError
				}
			}
			p, err := s(ctx, c)
			for id, st := range p.Stubs {
				if failed[id] {
					for i := range st.Texts {
						st.Texts[i] = " \n"
					}
				}
			}
			return p, err
		}),
		brokenCompactorEach("concurrency", "index", "the newest call's session is named by all", func() func(context.Context, core.Compaction, *conformance.Model, soundCompact) (core.Patch, error) {
			var mu sync.Mutex
			newest := ""
			return func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
				mu.Lock()
				newest = c.Session.String()
				mu.Unlock()
				p, err := s(ctx, c)
				time.Sleep(time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				for i := range p.Replace {
					p.Replace[i].Meta = map[string]string{"session": newest}
				}
				return p, err
			}
		}),
	}
}

func strangersEngines() []broken {
	return []broken{
		on("contract.subagent", "a grant lasts an hour at least", recalling(nil), func(r *core.SpawnRequest) {
			if r.TTL > 0 {
				r.TTL = max(r.TTL, time.Hour)
			}
		}),
		caughtBy("contract.back", "there is more behind a page that is full", recalling(nil), func(w *wrongEngine) {
			w.search = func(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
				res, err := w.Engine.Search(ctx, req)
				if err == nil && req.Limit > 0 && len(res.Found) == req.Limit {
					res.Next = req.Offset + req.Limit
				}
				return res, err
			}
		}),
		caughtBy("back.found", "the length of what is expanded is in characters", recalling(nil), func(w *wrongEngine) {
			w.expand = func(ctx context.Context, req engine.ExpandRequest) (engine.ExpandResult, error) {
				res, err := w.Engine.Expand(ctx, req)
				if err == nil && len(res.Found) == 1 && res.Next == 0 && req.Offset == 0 {
					res.Total = utf8.RuneCountInString(res.Found[0].Excerpt)
				}
				return res, err
			}
		}),
		caughtBy("contract.addition", "a window that a host's list moves has not moved", recalling(nil), func(w *wrongEngine) {
			var mu sync.Mutex
			told := false
			w.before = func(_ string, req any) {
				if r, ok := req.(*core.AssembleRequest); ok {
					mu.Lock()
					told = r.Transcript != nil
					mu.Unlock()
				}
			}
			w.after = func(_ string, res any) {
				mu.Lock()
				defer mu.Unlock()
				if a, ok := res.(*core.AssembleResult); ok && told {
					a.Stepped = false
				}
			}
		}),
	}
}
