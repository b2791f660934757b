package conformance_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/core/vector"
)

// outsideCompanions are companions that somebody broke who read the contract alone.
func outsideCompanions() []broken {
	return slices.Concat(outsideFeeds(), outsideFolders(), ofOneType(), outsideFigures(), outsideVectors(), outsideNearest())
}

func outsideFeeds() []broken {
	feed := func(name string, f func(ctx context.Context, q core.ChangeQuery, sound func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error)) broken {
		return brokenCompanionOf("change feed", name, func(c *companied) { c.changes = f })
	}
	return []broken{
		feed("there is always more behind a change", func(ctx context.Context, q core.ChangeQuery, sound func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error) {
			p, err := sound(ctx, q)
			p.More = p.More || len(p.Changes) > 0
			return p, err
		}),
		feed("there is more behind a full page", func(ctx context.Context, q core.ChangeQuery, sound func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error) {
			p, err := sound(ctx, q)
			p.More = len(p.Changes) == q.Limit
			return p, err
		}),
		feed("a mark where nothing is yet", func(ctx context.Context, q core.ChangeQuery, sound func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error) {
			if q.After == "begin" {
				q.After = ""
			}
			p, err := sound(ctx, q)
			if err == nil && p.Mark == "" {
				p.Mark = "begin"
			}
			return p, err
		}),
		// What a mark says of its store is not looked at: the places in it are good in every store.
		brokenCompanionOf("change feed", "marks of any store", func(c *companied) {
			c.changes = func(ctx context.Context, q core.ChangeQuery, sound func(context.Context, core.ChangeQuery) (core.ChangePage, error)) (core.ChangePage, error) {
				own, err := sound(ctx, core.ChangeQuery{Agent: q.Agent, Limit: 1})
				if err != nil || q.After == "" {
					return sound(ctx, q)
				}
				_, places, whole := strings.Cut(string(q.After), ".")
				store, _, _ := strings.Cut(string(own.Mark), ".")
				if whole {
					q.After = core.Mark(store + "." + places)
				}
				return sound(ctx, q)
			}
		}),
	}
}

func outsideFolders() []broken {
	beside := func(name string, f func(f *filed, use string) (string, error)) broken {
		return filedOf("folder beside", name, []string{"beside"}, func(s *filed) { s.beside = func(use string) (string, error) { return f(s, use) } })
	}
	also := func(allowed string) broken {
		return beside(fmt.Sprintf("uses with %q", allowed), func(f *filed, use string) (string, error) {
			if !strings.ContainsAny(use, allowed) {
				return f.Store.Beside(use)
			}
			dir := filepath.Join(f.path+".more", use)
			return dir, os.MkdirAll(dir, 0o700)
		})
	}
	return []broken{
		also("-"), also("_"), also("+"), also("~"), also("@"), also("٣"), also("ａ"),
		beside("32 letters of a use", func(f *filed, use string) (string, error) {
			if _, err := f.Store.Beside(use); err != nil {
				return "", err
			}
			return f.Store.Beside(use[:min(len(use), 32)])
		}),
		beside("uses of 63 letters", func(f *filed, use string) (string, error) {
			if len(use) > 63 {
				return "", core.ErrInvalid
			}
			return f.Store.Beside(use)
		}),
	}
}

// ofOneType are scrubbers and erasers that do something else with entries of one type.
func ofOneType() []broken {
	var out []broken
	for _, kind := range []core.EntryType{core.TypeHeartbeat, core.TypeSummary, core.TypeSubagent} {
		of := func(e core.Entry) bool { return e.Type == kind }
		out = append(out,
			filedOf("scrubber", string(kind)+" goes too", []string{"scrub.keeps"}, func(f *filed) {
				f.scrub = func(ctx context.Context) error { return errors.Join(f.erasedIf(ctx, of), f.Store.Scrub(ctx)) }
			}),
			helpedOf("session eraser", string(kind)+" stays", []string{"erase.session"}, func(h *helped) {
				h.erase = func(ctx context.Context, id core.SessionID) error {
					if id.Agent == "" || id.Session == "" {
						return core.ErrInvalid
					}
					return h.erasedIf(ctx, id, func(e core.Entry) bool { return e.Session == id.Session && !of(e) })
				}
			}))
	}
	return out
}

func outsideFigures() []broken {
	figures := func(name string, change func(c *companied, all []core.Entry, s *upkeep.Stats)) broken {
		return brokenCompanionOf("figures", name, func(c *companied) {
			var mu sync.Mutex
			order := map[string]int{} // in which entries came
			c.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
				mu.Lock()
				defer mu.Unlock()
				for _, e := range entries {
					order[e.ID] = len(order)
				}
				return c.Store.Append(ctx, entries)
			}
			c.stats = func(s *upkeep.Stats) {
				var all []core.Entry
				for _, agent := range []string{"agent-a", "agent-b"} {
					for e, err := range core.All(context.Background(), c.Store, core.Scope{Agent: agent}, false) {
						if err != nil {
							return // closed
						}
						all = append(all, e)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				slices.SortFunc(all, func(a, b core.Entry) int { return order[a.ID] - order[b.ID] })
				change(c, all, s)
			}
		})
	}
	return []broken{
		figures("characters for raw bytes", func(_ *companied, all []core.Entry, s *upkeep.Stats) {
			s.RawBytes = 0
			for _, e := range all {
				s.RawBytes += int64(len([]rune(string(e.Message.Raw))))
			}
		}),
		figures("the newest is the last that came", func(_ *companied, all []core.Entry, s *upkeep.Stats) {
			if len(all) > 0 {
				s.Newest = all[len(all)-1].Time
			}
		}),
		figures("the oldest is the first that came", func(_ *companied, all []core.Entry, s *upkeep.Stats) {
			if len(all) > 0 {
				s.Oldest = all[0].Time
			}
		}),
	}
}

func outsideVectors() []broken {
	put := func(name string, f func(c *companied, ctx context.Context, space string, v []vector.Vector) error) broken {
		return brokenCompanionOf("vectors", name, func(c *companied) {
			c.put = func(ctx context.Context, space string, v []vector.Vector) error { return f(c, ctx, space, v) }
		})
	}
	there := func(c *companied, ctx context.Context, id string) bool {
		for _, agent := range []string{"agent-a", "agent-b"} {
			if _, err := c.Get(ctx, core.Scope{Agent: agent}, []string{id}); err == nil {
				return true
			}
		}
		return false
	}
	rounded := func(name string, lost uint32) broken {
		return put(name, func(c *companied, ctx context.Context, space string, v []vector.Vector) error {
			v = slices.Clone(v)
			for i := range v {
				v[i].Values = slices.Clone(v[i].Values)
				for j, x := range v[i].Values {
					var b [4]byte
					binary.LittleEndian.PutUint32(b[:], math.Float32bits(x)&^lost)
					v[i].Values[j] = math.Float32frombits(binary.LittleEndian.Uint32(b[:]))
				}
			}
			return c.Store.PutVectors(ctx, space, v)
		})
	}
	return []broken{
		put("of several lengths in a new space the first", func(c *companied, ctx context.Context, space string, v []vector.Vector) error {
			spaces, err := c.Store.VectorSpaces(ctx, "")
			if err == nil && len(v) > 1 && !slices.ContainsFunc(spaces, func(s vector.Space) bool { return s.Name == space }) {
				v = slices.DeleteFunc(slices.Clone(v), func(x vector.Vector) bool { return len(x.Values) != len(v[0].Values) })
			}
			return c.Store.PutVectors(ctx, space, v)
		}),
		put("up to the first unknown one", func(c *companied, ctx context.Context, space string, v []vector.Vector) error {
			for i := range v {
				if ctx.Err() == nil && !there(c, ctx, v[i].ID) {
					v = v[:i]
					break
				}
			}
			return c.Store.PutVectors(ctx, space, v)
		}),
		put("an unknown one in front is an error", func(c *companied, ctx context.Context, space string, v []vector.Vector) error {
			if len(v) > 1 && !there(c, ctx, v[0].ID) {
				return core.ErrNotFound
			}
			return c.Store.PutVectors(ctx, space, v)
		}),
		put("what has the hash of one that is there is the same", func(c *companied, ctx context.Context, space string, v []vector.Vector) error {
			have := map[string]uint64{}
			name := func(v vector.Vector) string { return fmt.Sprint(v.ID, " ", v.Part) }
			for _, agent := range []string{"agent-a", "agent-b"} {
				page, err := c.Store.ScanVectors(ctx, vector.Query{Space: space, Agent: agent, Limit: core.MaxPage})
				if err != nil {
					return err
				}
				for _, old := range page.Vectors {
					have[name(old)] = old.Hash
				}
			}
			return c.Store.PutVectors(ctx, space, slices.DeleteFunc(slices.Clone(v), func(v vector.Vector) bool { hash, ok := have[name(v)]; return ok && hash == v.Hash }))
		}),
		rounded("numbers of half the length", 0x1fff), rounded("numbers of 16 bits of a float", 0xffff), rounded("the last bit lost", 1),
		brokenCompanionOf("vectors", "spaces without any of the agent's", func(c *companied) {
			c.spaces = func(ctx context.Context, agent string) ([]vector.Space, error) {
				own, err := c.Store.VectorSpaces(ctx, agent)
				all, _ := c.Store.VectorSpaces(ctx, "")
				for i, s := range all {
					all[i].Entries = 0
					if at := slices.IndexFunc(own, func(o vector.Space) bool { return o.Name == s.Name }); at >= 0 {
						all[i] = own[at]
					}
				}
				return all, err
			}
		}),
		brokenCompanionOf("vectors", "drops an agent's of every space", func(c *companied) {
			c.drop = func(ctx context.Context, space, agent string) error {
				spaces, _ := c.Store.VectorSpaces(ctx, "")
				for _, s := range spaces {
					if agent != "" {
						_ = c.Store.DropVectors(ctx, s.Name, agent)
					}
				}
				return c.Store.DropVectors(ctx, space, agent)
			}
		}),
		brokenCompanionOf("vectors", "drops every space", func(c *companied) {
			c.drop = func(ctx context.Context, space, agent string) error {
				spaces, _ := c.Store.VectorSpaces(ctx, "")
				for _, s := range spaces {
					if agent == "" {
						_ = c.Store.DropVectors(ctx, s.Name, "")
					}
				}
				return c.Store.DropVectors(ctx, space, agent)
			}
		}),
	}
}

func outsideNearest() []broken {
	ties := func(name string, f func(a, b core.Hit) int) broken {
		return nearbyOf(name, "vector.nearest", func(n *nearby) {
			n.ties = func(a, b core.Hit) int { return cmp.Or(b.Entry.Time.Compare(a.Entry.Time), f(a, b)) }
		})
	}
	number := func(h core.Hit) (n int) { _, _ = fmt.Sscanf(h.Entry.ID, "E-odd-%d", &n); return n }
	return []broken{
		ties("ties to the larger id", func(a, b core.Hit) int { return strings.Compare(b.Entry.ID, a.Entry.ID) }),
		ties("ties to the one that came first", func(a, b core.Hit) int { return number(a) - number(b) }),
		ties("ties to the one that came last", func(a, b core.Hit) int { return number(b) - number(a) }),
		ties("ties by session", func(a, b core.Hit) int {
			return cmp.Or(strings.Compare(b.Entry.Session, a.Entry.Session), strings.Compare(a.Entry.ID, b.Entry.ID))
		}),
	}
}
