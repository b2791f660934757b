package conformance_test

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/core/vector"
)

// companied is a store in a file whose companions can be wrong.
type companied struct {
	*sqlite.Store
	append  func(ctx context.Context, entries []core.Entry) (core.AppendResult, error)
	changes func(ctx context.Context, q core.ChangeQuery, sound func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error)
	put     func(ctx context.Context, space string, v []vector.Vector) error
	scan    func(ctx context.Context, q vector.Query) (vector.Page, error)
	spaces  func(ctx context.Context, agent string) ([]vector.Space, error)
	drop    func(ctx context.Context, space, agent string) error
	stats   func(*upkeep.Stats)
}

func (c *companied) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if c.append != nil {
		return c.append(ctx, entries)
	}
	return c.Store.Append(ctx, entries)
}

func (c *companied) Changes(ctx context.Context, q core.ChangeQuery) (core.ChangePage, error) {
	if c.changes != nil {
		return c.changes(ctx, q, c.Store.Changes)
	}
	return c.Store.Changes(ctx, q)
}

func (c *companied) PutVectors(ctx context.Context, space string, v []vector.Vector) error {
	if c.put != nil {
		return c.put(ctx, space, v)
	}
	return c.Store.PutVectors(ctx, space, v)
}

func (c *companied) ScanVectors(ctx context.Context, q vector.Query) (vector.Page, error) {
	if c.scan != nil {
		return c.scan(ctx, q)
	}
	return c.Store.ScanVectors(ctx, q)
}

func (c *companied) VectorSpaces(ctx context.Context, agent string) ([]vector.Space, error) {
	if c.spaces != nil {
		return c.spaces(ctx, agent)
	}
	return c.Store.VectorSpaces(ctx, agent)
}

func (c *companied) DropVectors(ctx context.Context, space, agent string) error {
	if c.drop != nil {
		return c.drop(ctx, space, agent)
	}
	return c.Store.DropVectors(ctx, space, agent)
}

func (c *companied) Stats(ctx context.Context) (upkeep.Stats, error) {
	st, err := c.Store.Stats(ctx)
	if c.stats != nil {
		c.stats(&st)
	}
	return st, err
}

// companionChecks are the families of checks that look at the companions of a class.
var companionChecks = map[string]string{"change feed": "feed", "vectors": "vector", "figures": "stats"}

func brokenCompanionOf(class, name string, change func(*companied)) broken {
	return broken{class: "companion: " + class, name: name, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
		t.Helper()
		var paths sync.Map // the path of a store
		open := func(tb testing.TB, path string) core.Store {
			tb.Helper()
			cfg := sqlite.DefaultConfig()
			cfg.Path = path
			s, err := sqlite.Open(tb.Context(), cfg)
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() { _ = s.Close() })
			c := &companied{Store: s}
			change(c)
			paths.Store(c, path)
			return c
		}
		return early(3, only, func(opts ...conformance.Option) []conformance.Finding {
			return conformance.ExamineStore(t, func(tb testing.TB) core.Store { tb.Helper(); return open(tb, filepath.Join(tb.TempDir(), "store.db")) }, opts...)
		}, conformance.WithPatience(2*time.Second),
			conformance.WithClaims(companionChecks[class], "cancel.store", "close.closed"),
			conformance.WithReopen(func(tb testing.TB, old core.Store) core.Store {
				tb.Helper()
				_ = old.Close()
				path, _ := paths.Load(old)
				return open(tb, path.(string)) //nolint:forcetypeassert // open put it there
			}))
	}}
}

// tableCompanions are wrong companions of stores.
func tableCompanions(*testing.T) []broken {
	var out []broken
	feed := func(name string, f func(ctx context.Context, q core.ChangeQuery, sound func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error)) {
		out = append(out, brokenCompanionOf("change feed", name, func(c *companied) { c.changes = f }))
	}
	page := func(name string, f func(q core.ChangeQuery, p *core.ChangePage)) {
		feed(name, func(ctx context.Context, q core.ChangeQuery, s func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error) {
			p, err := s(ctx, q)
			f(q, &p)
			return p, err
		})
	}
	page("nothing", func(_ core.ChangeQuery, p *core.ChangePage) { p.Changes = nil })
	page("the first left out", func(_ core.ChangeQuery, p *core.ChangePage) { p.Changes = p.Changes[min(1, len(p.Changes)):] })
	page("the last left out", func(_ core.ChangeQuery, p *core.ChangePage) { p.Changes = p.Changes[:max(0, len(p.Changes)-1)] })
	page("ends with the first page", func(_ core.ChangeQuery, p *core.ChangePage) { p.More = false })
	feed("five hundred and no more", func(ctx context.Context, q core.ChangeQuery, s func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error) {
		if q.Limit <= 500 {
			return s(ctx, q)
		}
		q.Limit = 500
		p, err := s(ctx, q)
		p.More = false
		return p, err
	})
	page("never ends", func(_ core.ChangeQuery, p *core.ChangePage) { p.More = true })
	page("the mark stays", func(q core.ChangeQuery, p *core.ChangePage) { p.Mark = q.After })
	page("no mark", func(_ core.ChangeQuery, p *core.ChangePage) { p.Mark = "" })
	page("deletions left out", func(_ core.ChangeQuery, p *core.ChangePage) {
		p.Changes = slices.DeleteFunc(p.Changes, func(c core.EntryChange) bool { return c.Entry == nil })
	})
	page("updates left out", func(_ core.ChangeQuery, p *core.ChangePage) {
		p.Changes = slices.DeleteFunc(p.Changes, func(c core.EntryChange) bool { return c.Entry != nil && c.Entry.Meta["reworked"] != "" })
	})
	page("updates of metadata alone left out", func(_ core.ChangeQuery, p *core.ChangePage) {
		p.Changes = slices.DeleteFunc(p.Changes, func(c core.EntryChange) bool { return c.Entry != nil && c.Entry.Meta["alone"] != "" })
	})
	page("updates of the key alone left out", func(_ core.ChangeQuery, p *core.ChangePage) {
		p.Changes = slices.DeleteFunc(p.Changes, func(c core.EntryChange) bool { return c.Entry != nil && c.Entry.Key == "alone" })
	})
	out = append(out, brokenCompanionOf("change feed", "entries share their metadata", func(c *companied) {
		shared := map[string]map[string]string{}
		c.changes = func(ctx context.Context, q core.ChangeQuery, sound func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error) {
			p, err := sound(ctx, q)
			for _, c := range p.Changes {
				if e := c.Entry; e != nil {
					as := e.ID + e.Fingerprint + e.Key
					if shared[as] == nil {
						shared[as] = e.Meta
					}
					e.Meta = shared[as]
				}
			}
			return p, err
		}
	}))
	out = append(out, brokenCompanionOf("change feed", "entries as they were when first told, changed by who has them", func(c *companied) {
		var mu sync.Mutex
		told := map[string]*core.Entry{}
		c.changes = func(ctx context.Context, q core.ChangeQuery, sound func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error) {
			p, err := sound(ctx, q)
			mu.Lock()
			defer mu.Unlock()
			for i, c := range p.Changes {
				if e := c.Entry; e != nil && told[c.ID] != nil && told[c.ID].Key == e.Key && told[c.ID].Type == e.Type {
					p.Changes[i].Entry = told[c.ID]
				} else if e != nil {
					told[c.ID] = e
				}
			}
			return p, err
		}
	}))
	page("erased ones left out", func(_ core.ChangeQuery, p *core.ChangePage) {
		p.Changes = slices.DeleteFunc(p.Changes, func(c core.EntryChange) bool { return c.Entry != nil && c.Entry.Type == core.TypeErased })
	})
	page("heartbeats left out", func(_ core.ChangeQuery, p *core.ChangePage) {
		p.Changes = slices.DeleteFunc(p.Changes, func(c core.EntryChange) bool { return c.Entry != nil && c.Entry.Type == core.TypeHeartbeat })
	})
	page("erased ones are gone", func(_ core.ChangeQuery, p *core.ChangePage) {
		for i := range p.Changes {
			if e := p.Changes[i].Entry; e != nil && e.Type == core.TypeErased {
				p.Changes[i].Entry = nil
			}
		}
	})
	page("newest first", func(_ core.ChangeQuery, p *core.ChangePage) { slices.Reverse(p.Changes) })
	page("by id", func(_ core.ChangeQuery, p *core.ChangePage) {
		slices.SortFunc(p.Changes, func(a, b core.EntryChange) int { return strings.Compare(b.ID, a.ID) })
	})
	page("session by session", func(_ core.ChangeQuery, p *core.ChangePage) {
		slices.SortStableFunc(p.Changes, func(a, b core.EntryChange) int {
			if a.Entry == nil || b.Entry == nil {
				return 0
			}
			return strings.Compare(a.Entry.Session, b.Entry.Session)
		})
	})
	known := func(name string, leave func(c core.EntryChange, known bool) bool) {
		page("known: "+name, func(q core.ChangeQuery, p *core.ChangePage) {
			if q.Known != nil {
				p.Changes = slices.DeleteFunc(p.Changes, func(c core.EntryChange) bool { return leave(c, q.Known(c.ID)) })
			}
		})
	}
	known("left out for good", func(_ core.EntryChange, known bool) bool { return known })
	known("changes left out", func(c core.EntryChange, known bool) bool { return known && c.Entry != nil })
	known("deletions left out", func(c core.EntryChange, known bool) bool { return known && c.Entry == nil })
	known("deletions of others left out", func(c core.EntryChange, known bool) bool { return !known && c.Entry == nil })
	known("the others left out", func(_ core.EntryChange, known bool) bool { return !known })
	known("those of one session left out", func(c core.EntryChange, known bool) bool {
		return known && c.Entry != nil && c.Entry.Session == "other"
	})
	var kept sync.Map
	feed("a page is given out twice", func(ctx context.Context, q core.ChangeQuery, s func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error) {
		p, err := s(ctx, q)
		if err != nil || len(p.Changes) < 12 {
			return p, err
		}
		got, _ := kept.LoadOrStore(p.Mark, p)
		if same, ok := got.(core.ChangePage); ok {
			return same, nil
		}
		return p, err
	})
	page("deletions without a name", func(_ core.ChangeQuery, p *core.ChangePage) {
		for i := range p.Changes {
			if p.Changes[i].Entry == nil {
				p.Changes[i].ID = ""
			}
		}
	})
	for _, l := range entryLeaves() {
		if l.path == ".Meta" || l.path == ".Message.Raw" || l.path == ".Tokens" || l.path == ".Key" || l.path == ".Type" {
			page("entries without "+l.path, func(_ core.ChangeQuery, p *core.ChangePage) {
				for i := range p.Changes {
					if p.Changes[i].Entry != nil {
						e := entriesOf([]core.Entry{*p.Changes[i].Entry}, nil)[0]
						l.clear(reflect.ValueOf(&e).Elem())
						p.Changes[i].Entry = &e
					}
				}
			})
		}
	}
	feed("of all agents", func(ctx context.Context, q core.ChangeQuery, s func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error) {
		p, err := s(ctx, q)
		if q.Agent == "agent-a" && q.After == "" && err == nil {
			more, _ := s(ctx, core.ChangeQuery{Agent: "agent-b", Limit: 1})
			p.Changes = append(p.Changes[:max(len(p.Changes)-len(more.Changes), 0):max(len(p.Changes)-len(more.Changes), 0)], more.Changes...)
		}
		return p, err
	})
	feed("limit ignored", func(ctx context.Context, q core.ChangeQuery, s func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error) {
		q.Limit = core.MaxPage
		return s(ctx, q)
	})
	feed("mark ignored", func(ctx context.Context, q core.ChangeQuery, s func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error) {
		q.After = ""
		return s(ctx, q)
	})
	feed("an odd mark begins anew", func(ctx context.Context, q core.ChangeQuery, s func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error) {
		p, err := s(ctx, q)
		if errors.Is(err, core.ErrNotFound) {
			q.After = ""
			return s(ctx, q)
		}
		return p, err
	})
	feed("an odd mark is invalid", func(ctx context.Context, q core.ChangeQuery, s func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error) {
		p, err := s(ctx, q)
		if errors.Is(err, core.ErrNotFound) {
			err = core.ErrInvalid
		}
		return p, err
	})
	feed("goes on when cancelled", func(ctx context.Context, q core.ChangeQuery, s func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error) {
		return s(context.WithoutCancel(ctx), q)
	})
	feed("hangs", func(context.Context, core.ChangeQuery, func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error) {
		select {}
	})

	vectors := func(name string, change func(c *companied)) {
		out = append(out, brokenCompanionOf("vectors", name, change))
	}
	scanned := func(name string, f func(q vector.Query, p *vector.Page)) {
		vectors(name, func(c *companied) {
			c.scan = func(ctx context.Context, q vector.Query) (vector.Page, error) {
				p, err := c.Store.ScanVectors(ctx, q)
				f(q, &p)
				return p, err
			}
		})
	}
	for _, f := range []string{"ID", "Part", "Start", "End", "Hash", "Values"} {
		scanned("without "+f, func(_ vector.Query, p *vector.Page) {
			for i := range p.Vectors {
				reflect.ValueOf(&p.Vectors[i]).Elem().FieldByName(f).SetZero()
			}
		})
	}
	scanned("the first left out", func(_ vector.Query, p *vector.Page) { p.Vectors = p.Vectors[min(1, len(p.Vectors)):] })
	scanned("ends with the first page", func(_ vector.Query, p *vector.Page) { p.Next = "" })
	scanned("hashes in 63 bits", func(_ vector.Query, p *vector.Page) {
		for i := range p.Vectors {
			p.Vectors[i].Hash &= 1<<63 - 1
		}
	})
	scanned("rounded", func(_ vector.Query, p *vector.Page) {
		for i := range p.Vectors {
			for j := range p.Vectors[i].Values {
				p.Vectors[i].Values[j] = float32(int(p.Vectors[i].Values[j]))
			}
		}
	})
	query := func(name string, f func(q *vector.Query)) {
		vectors(name, func(c *companied) {
			c.scan = func(ctx context.Context, q vector.Query) (vector.Page, error) {
				f(&q)
				return c.Store.ScanVectors(ctx, q)
			}
		})
	}
	query("limit ignored", func(q *vector.Query) { q.Limit = core.MaxPage })
	query("cursor ignored", func(q *vector.Query) { q.Cursor = "" })
	query("one agent's for all", func(q *vector.Query) { q.Agent = "agent-a" })
	query("of one space", func(q *vector.Query) { q.Space = "one/3" })
	put := func(name string, f func(c *companied, ctx context.Context, space string, v []vector.Vector) error) {
		vectors(name, func(c *companied) {
			c.put = func(ctx context.Context, space string, v []vector.Vector) error { return f(c, ctx, space, v) }
		})
	}
	put("unknown ids refused", func(c *companied, ctx context.Context, space string, v []vector.Vector) error {
		if slices.ContainsFunc(v, func(v vector.Vector) bool { return v.ID == "E-nobody" }) {
			return core.ErrNotFound
		}
		return c.Store.PutVectors(ctx, space, v)
	})
	put("spaces mixed", func(c *companied, ctx context.Context, _ string, v []vector.Vector) error {
		return c.Store.PutVectors(ctx, "one/3", v)
	})
	put("parts forgotten", func(c *companied, ctx context.Context, space string, v []vector.Vector) error {
		return c.Store.PutVectors(ctx, space, slices.DeleteFunc(slices.Clone(v), func(v vector.Vector) bool { return v.Part > 0 }))
	})
	put("lengths cut", func(c *companied, ctx context.Context, space string, v []vector.Vector) error {
		if err := c.Store.PutVectors(ctx, space, v); !errors.Is(err, core.ErrInvalid) {
			return err
		}
		return nil
	})
	put("nothing replaced", func() func(c *companied, ctx context.Context, space string, v []vector.Vector) error {
		var mu sync.Mutex
		seen := map[string]bool{}
		return func(c *companied, ctx context.Context, space string, v []vector.Vector) error {
			mu.Lock()
			defer mu.Unlock()
			if len(v) == 1 && seen[space+v[0].ID] && len(v[0].Values) == 3 {
				return nil
			}
			for i := range v {
				seen[space+v[i].ID] = true
			}
			return c.Store.PutVectors(ctx, space, v)
		}
	}())
	put("goes on when cancelled", func(c *companied, ctx context.Context, space string, v []vector.Vector) error {
		return c.Store.PutVectors(context.WithoutCancel(ctx), space, v)
	})
	spaces := func(name string, f func(s []vector.Space) []vector.Space) {
		vectors(name, func(c *companied) {
			c.spaces = func(ctx context.Context, agent string) ([]vector.Space, error) {
				s, err := c.Store.VectorSpaces(ctx, agent)
				return f(s), err
			}
		})
	}
	spaces("spaces backwards", func(s []vector.Space) []vector.Space { slices.Reverse(s); return s })
	byNumber := func(sign int) func(s []vector.Space) []vector.Space {
		return func(s []vector.Space) []vector.Space {
			slices.SortStableFunc(s, func(a, b vector.Space) int { return sign * (a.Entries - b.Entries) })
			return s
		}
	}
	spaces("spaces of most entries first", byNumber(-1))
	spaces("spaces of fewest entries first", byNumber(1))
	spaces("spaces by dimensions", func(s []vector.Space) []vector.Space {
		slices.SortStableFunc(s, func(a, b vector.Space) int { return a.Dimensions - b.Dimensions })
		return s
	})
	spaces("no spaces", func([]vector.Space) []vector.Space { return nil })
	spaces("no dimensions", func(s []vector.Space) []vector.Space {
		for i := range s {
			s[i].Dimensions = 0
		}
		return s
	})
	spaces("vectors counted for entries", func(s []vector.Space) []vector.Space {
		for i := range s {
			s[i].Entries++
		}
		return s
	})
	vectors("spaces of all agents", func(c *companied) {
		c.spaces = func(ctx context.Context, _ string) ([]vector.Space, error) { return c.Store.VectorSpaces(ctx, "") }
	})
	vectors("drops though cancelled", func(c *companied) {
		c.drop = func(ctx context.Context, space, agent string) error {
			return c.Store.DropVectors(context.WithoutCancel(ctx), space, agent)
		}
	})
	vectors("drops though closed", func(c *companied) {
		c.drop = func(ctx context.Context, space, agent string) error {
			if err := c.Store.DropVectors(ctx, space, agent); !errors.Is(err, core.ErrClosed) {
				return err
			}
			return nil
		}
	})
	vectors("drops spaces whose names begin so", func(c *companied) {
		c.drop = func(ctx context.Context, space, agent string) error {
			spaces, err := c.Store.VectorSpaces(ctx, agent)
			for _, s := range spaces {
				if err == nil && strings.HasPrefix(s.Name, space) {
					err = c.Store.DropVectors(ctx, s.Name, agent)
				}
			}
			return err
		}
	})
	vectors("drops nothing", func(c *companied) { c.drop = func(context.Context, string, string) error { return nil } })
	vectors("drops those of all agents", func(c *companied) {
		c.drop = func(ctx context.Context, space, _ string) error { return c.Store.DropVectors(ctx, space, "") }
	})
	vectors("drops those of an agent alone", func(c *companied) {
		c.drop = func(ctx context.Context, space, agent string) error {
			if agent == "" {
				return nil
			}
			return c.Store.DropVectors(ctx, space, agent)
		}
	})
	stats := func(name string, f func(*upkeep.Stats)) {
		out = append(out, brokenCompanionOf("figures", name, func(c *companied) { c.stats = f }))
	}
	out = append(out, brokenCompanionOf("vectors", "unknown ones wait for their entry", func(c *companied) {
		waiting := map[string][]vector.Vector{}
		c.put = func(ctx context.Context, space string, v []vector.Vector) error {
			for _, v := range v {
				v.Values = slices.Clone(v.Values)
				waiting[space] = append(waiting[space], v)
			}
			return c.Store.PutVectors(ctx, space, v)
		}
		c.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
			res, err := c.Store.Append(ctx, entries)
			for space, all := range waiting {
				for _, v := range all {
					if err == nil && slices.Contains(res.IDs, v.ID) {
						err = c.Store.PutVectors(ctx, space, []vector.Vector{v})
					}
				}
			}
			return res, err
		}
	}))
	out = append(out, brokenCompanionOf("figures", "raw bytes only added up", func(c *companied) {
		raw := int64(0)
		c.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
			res, err := c.Store.Append(ctx, entries)
			for i, e := range entries {
				if err == nil && res.IDs[i] == e.ID {
					raw += int64(len(e.Message.Raw))
				}
			}
			return res, err
		}
		c.stats = func(s *upkeep.Stats) { s.RawBytes = raw }
	}))
	stats("an empty store is of 1970", func(s *upkeep.Stats) {
		if s.Entries == 0 {
			s.Oldest, s.Newest = time.UnixMilli(0), time.UnixMilli(0)
		}
	})
	stats("times end in 2262", func(s *upkeep.Stats) {
		if s.Entries > 0 {
			s.Oldest, s.Newest = time.Unix(0, s.Oldest.UnixNano()), time.Unix(0, s.Newest.UnixNano())
		}
	})
	figures := upkeep.Stats{}
	out = append(out, brokenCompanionOf("figures", "an empty store is as it was", func(c *companied) {
		c.stats = func(s *upkeep.Stats) {
			if s.Entries == 0 {
				s.Oldest, s.Newest = figures.Oldest, figures.Newest
			}
			figures = *s
		}
	}))
	stats("texts for raw bytes", func(s *upkeep.Stats) { s.RawBytes = 1 + int64(s.Entries)*40 })
	stats("one entry too many", func(s *upkeep.Stats) { s.Entries++ })
	stats("agents for sessions", func(s *upkeep.Stats) { s.Sessions = s.Agents + 7 })
	stats("agents counted wrongly", func(s *upkeep.Stats) { s.Agents += 2 })
	stats("the newest is the oldest", func(s *upkeep.Stats) { s.Oldest = s.Newest })
	stats("the oldest is the newest", func(s *upkeep.Stats) { s.Newest = s.Oldest })
	stats("the newest is today's", func(s *upkeep.Stats) { s.Newest = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) })
	stats("the oldest is the beginning of time", func(s *upkeep.Stats) { s.Oldest = time.Unix(0, 0) })
	stats("newest first", func(s *upkeep.Stats) { s.Oldest, s.Newest = s.Newest.Add(time.Second), s.Oldest })
	return out
}
