package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/vector"
)

// filed is a store in a file whose folder, scrubbing, erasing of sessions and repair can be wrong.
type filed struct {
	*sqlite.Store
	// After erasing a session a feed that is silent does not tell of it, and vectors that stay are found.
	silent, stay bool
	gone         map[string]bool
	vectors      []vector.Vector
	repair       func(ctx context.Context) (string, error)
	path         string
	// journal is what of an entry goes to a file of its own too, which a scrub is to empty.
	journal func(core.Entry) string
	beside  func(use string) (string, error)
	scrub   func(ctx context.Context) error
	// marked is what marks of the feed begin with where a scrub makes another of it; reopened is what is done to a store that is opened again.
	marked string
	// touched says that this opening erased or changed something.
	touched  bool
	reopened func(ctx context.Context, f *filed) error
}

func (f *filed) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if f.journal != nil {
		old, err := os.ReadFile(f.path + ".journal")
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return core.AppendResult{}, err
		}
		for _, e := range entries {
			old = append(old, f.journal(e)...)
		}
		if err := os.WriteFile(f.path+".journal", old, 0o600); err != nil {
			return core.AppendResult{}, err
		}
	}
	return f.Store.Append(ctx, entries)
}

func (f *filed) Beside(use string) (string, error) {
	if f.beside != nil {
		return f.beside(use)
	}
	return f.Store.Beside(use)
}

func (f *filed) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	f.touched = true
	return f.Store.Delete(ctx, scope, ids)
}

func (f *filed) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	f.touched = true
	return f.Store.Update(ctx, scope, id, c)
}

// EraseSession is a companion that the store in a file has not.
func (f *filed) EraseSession(ctx context.Context, id core.SessionID) error {
	if id.Agent == "" || id.Session == "" {
		return fmt.Errorf("filed: %w", core.ErrInvalid)
	}
	var ids []string
	for e, err := range core.All(ctx, f.Store, id.Scope(), false) {
		if err != nil {
			return err
		}
		ids = append(ids, e.ID)
	}
	if f.gone == nil {
		f.gone = map[string]bool{}
	}
	for _, id := range ids {
		f.gone[id] = true
	}
	if f.stay {
		p, _ := f.Store.ScanVectors(ctx, vector.Query{Space: "one/3", Agent: id.Agent, Limit: core.MaxPage})
		f.vectors = append(f.vectors, slices.DeleteFunc(p.Vectors, func(v vector.Vector) bool { return !f.gone[v.ID] })...)
	}
	_, err := f.Delete(ctx, id.Scope(), ids)
	return err
}

// erasedIf deletes entries of both agents.
func (f *filed) erasedIf(ctx context.Context, which func(core.Entry) bool) error {
	for _, agent := range []string{"agent-a", "agent-b"} {
		for e, err := range core.All(ctx, f.Store, core.Scope{Agent: agent}, false) {
			if err == nil && which(e) {
				_, err = f.Delete(ctx, e.SessionID().Scope(), []string{e.ID})
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *filed) Changes(ctx context.Context, q core.ChangeQuery) (core.ChangePage, error) {
	after, ours := strings.CutPrefix(string(q.After), f.marked)
	if q.After = core.Mark(after); !ours && after != "" {
		return core.ChangePage{}, fmt.Errorf("filed: mark: %w", core.ErrNotFound)
	}
	p, err := f.Store.Changes(ctx, q)
	if p.Mark != "" {
		p.Mark = core.Mark(f.marked) + p.Mark
	}
	if f.silent {
		p.Changes = slices.DeleteFunc(p.Changes, func(c core.EntryChange) bool { return c.Entry == nil && f.gone[c.ID] })
	}
	return p, err
}

func (f *filed) ScanVectors(ctx context.Context, q vector.Query) (vector.Page, error) {
	p, err := f.Store.ScanVectors(ctx, q)
	if q.Agent == "agent-a" && q.Limit == core.MaxPage {
		p.Vectors = append(p.Vectors, f.vectors...)
	}
	return p, err
}

func (f *filed) Repair(ctx context.Context) (string, error) {
	if f.repair != nil {
		return f.repair(ctx)
	}
	return f.Store.Repair(ctx)
}

func (f *filed) Scrub(ctx context.Context) error {
	if f.scrub != nil {
		return f.scrub(ctx)
	}
	return f.Store.Scrub(ctx)
}

func filedOf(class, name string, claims []string, change func(*filed)) broken {
	return broken{class: "companion: " + class, name: name, find: func(t *testing.T, _ ...conformance.Option) []conformance.Finding {
		t.Helper()
		var mu sync.Mutex
		paths := map[core.Store]string{}
		open := func(tb testing.TB, path string) core.Store {
			tb.Helper()
			f := &filed{Store: inFile(tb, path), path: path}
			change(f)
			mu.Lock()
			defer mu.Unlock()
			paths[f] = path
			return f
		}
		return conformance.ExamineStore(t, func(tb testing.TB) core.Store { tb.Helper(); return open(tb, filepath.Join(tb.TempDir(), "store.db")) },
			conformance.WithExactly(1, 20260301), conformance.WithoutShrinking(), conformance.WithFirst(), conformance.WithClaims(claims...),
			conformance.WithMedia(func(_ testing.TB, s core.Store) string { return filepath.Dir(paths[s]) }),
			conformance.WithAnother(func(tb testing.TB, first core.Store) core.Store { tb.Helper(); return open(tb, paths[first]) }),
			conformance.WithReopen(func(tb testing.TB, old core.Store) core.Store {
				tb.Helper()
				_ = old.Close()
				s := open(tb, paths[old])
				if f, _ := s.(*filed); f.reopened != nil {
					if err := f.reopened(tb.Context(), f); err != nil {
						tb.Error(err)
					}
				}
				return s
			}))
	}}
}

func tableFiles() []broken {
	var out []broken
	beside := func(name string, f func(f *filed, use string) (string, error)) {
		out = append(out, filedOf("folder beside", name, []string{"beside"}, func(s *filed) { s.beside = func(use string) (string, error) { return f(s, use) } }))
	}
	beside("not made", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside(use)
		return filepath.Join(dir, "deeper"), err
	})
	beside("one for all uses", func(f *filed, use string) (string, error) {
		if _, err := f.Store.Beside(use); err != nil {
			return "", err
		}
		return f.Store.Beside("all")
	})
	beside("one in the other", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside(use)
		if err == nil && use != "index" {
			dir = filepath.Join(filepath.Dir(dir), "index", use)
			err = os.MkdirAll(dir, 0o700)
		}
		return dir, err
	})
	beside("another each time", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside(use)
		if err != nil {
			return "", err
		}
		return os.MkdirTemp(dir, "")
	})
	beside("uses in small letters", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside(use)
		if err == nil {
			dir = filepath.Join(filepath.Dir(dir), "use"+strings.ToLower(use))
			err = os.MkdirAll(dir, 0o700)
		}
		return dir, err
	})
	beside("one for all stores", func(f *filed, use string) (string, error) {
		if _, err := f.Store.Beside(use); err != nil {
			return "", err
		}
		dir := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(f.path))), "shared", use)
		return dir, os.MkdirAll(dir, 0o700)
	})
	beside("for all to read", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside(use)
		if err == nil {
			err = os.Chmod(dir, 0o755) //nolint:gosec // that is the fault
		}
		return dir, err
	})
	beside("emptied each time", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside(use)
		if err == nil {
			err = errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700))
		}
		return dir, err
	})
	beside("any use", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside("index")
		if err != nil {
			return "", err
		}
		dir = filepath.Join(filepath.Dir(dir), strings.ReplaceAll(use, "\x00", ""))
		return dir, os.MkdirAll(dir, 0o700)
	})
	beside("a use is made to fit", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside(use)
		if errors.Is(err, core.ErrInvalid) {
			return f.Store.Beside("rest")
		}
		return dir, err
	})
	beside("closed is fine", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside(use)
		if errors.Is(err, core.ErrClosed) {
			return filepath.Join(f.path+".d", use), nil
		}
		return dir, err
	})
	out = append(out, filedOf("folder beside", "another after each start", []string{"beside"}, func(s *filed) {
		start := fmt.Sprint("start", time.Now().UnixNano())
		s.beside = func(use string) (string, error) {
			if _, err := s.Store.Beside(use); err != nil {
				return "", err
			}
			return s.Store.Beside(start + use)
		}
	}))
	scrub := func(name, claim string, f func(s *filed, ctx context.Context) error) {
		out = append(out, filedOf("scrubber", name, []string{claim}, func(s *filed) { s.scrub = func(ctx context.Context) error { return f(s, ctx) } }))
	}
	leaves := func(name string, journal func(core.Entry) string, f func(s *filed, ctx context.Context) error) {
		out = append(out, filedOf("scrubber", name, []string{"scrub.gone"}, func(s *filed) {
			s.journal = journal
			s.scrub = func(ctx context.Context) error { return errors.Join(f(s, ctx), s.Store.Scrub(ctx)) }
		}))
	}
	texts := func(e core.Entry) string { return e.Text() }
	nothing := func(*filed, context.Context) error { return nil }
	leaves("texts stay in a journal", texts, nothing)
	leaves("keys stay in a journal", func(e core.Entry) string { return e.Key }, nothing)
	leaves("metadata stays in a journal", func(e core.Entry) string { return e.Meta["note"] }, nothing)
	leaves("a copy of the journal stays", texts, func(s *filed, _ context.Context) error { return os.Rename(s.path+".journal", s.path+".old") })
	leaves("the end of the journal stays", texts, func(s *filed, _ context.Context) error {
		b, err := os.ReadFile(s.path + ".journal")
		return errors.Join(err, os.WriteFile(s.path+".journal", b[len(b)/2:], 0o600))
	})
	leaves("in the background", texts, func(s *filed, _ context.Context) error {
		time.AfterFunc(time.Minute, func() { _ = os.Remove(s.path + ".journal") })
		return nil
	})
	scrub("an error where nothing was erased", "scrub.keeps", func(s *filed, ctx context.Context) error {
		if st, err := s.Stats(ctx); err != nil || st.Entries == 0 {
			return errors.New("broken: nothing to scrub")
		}
		return s.Store.Scrub(ctx)
	})
	scrub("what was emptied goes too", "scrub.keeps", func(s *filed, ctx context.Context) error {
		for _, agent := range []string{"agent-a", "agent-b"} {
			for e, err := range core.All(ctx, s.Store, core.Scope{Agent: agent}, false) {
				if err == nil && e.Type == core.TypeErased {
					_, _ = s.Delete(ctx, e.SessionID().Scope(), []string{e.ID})
				}
			}
		}
		return s.Store.Scrub(ctx)
	})
	scrub("views go too", "scrub.keeps", func(s *filed, ctx context.Context) error {
		return errors.Join(s.DeleteView(ctx, core.SessionID{Agent: "agent-a", Session: "main"}), s.Store.Scrub(ctx))
	})
	scrub("vectors go too", "scrub.keeps", func(s *filed, ctx context.Context) error {
		return errors.Join(s.DropVectors(ctx, "one/3", ""), s.Store.Scrub(ctx))
	})
	scrub("marks of before are nobody's", "scrub.keeps", func(s *filed, ctx context.Context) error {
		s.marked += "x"
		return s.Store.Scrub(ctx)
	})
	scrub("metadata goes too", "scrub.keeps", func(s *filed, ctx context.Context) error {
		for e, err := range core.All(ctx, s.Store, core.Scope{Agent: "agent-a"}, false) {
			if err == nil && len(e.Meta) > 0 {
				_ = s.Update(ctx, e.SessionID().Scope(), e.ID, core.Change{Meta: map[string]string{}})
			}
		}
		return s.Store.Scrub(ctx)
	})
	scrub("what is written meanwhile goes too", "scrub.keeps", func(s *filed, ctx context.Context) error {
		err := s.Store.Scrub(ctx)
		for n := range 2 {
			id := core.SessionID{Agent: "agent-a", Session: fmt.Sprint("meanwhile-", n)}
			for range 200 {
				p, _ := s.Scan(ctx, core.ScanQuery{Scope: id.Scope(), Limit: 1})
				for _, e := range p.Entries {
					_, _ = s.Delete(ctx, id.Scope(), []string{e.ID})
					return err
				}
				time.Sleep(time.Millisecond)
			}
		}
		return err
	})
	scrub("context ignored", "cancel.store", func(s *filed, ctx context.Context) error { return s.Store.Scrub(context.WithoutCancel(ctx)) })
	scrub("closed is clean", "close.closed", func(s *filed, ctx context.Context) error {
		if err := s.Store.Scrub(ctx); !errors.Is(err, core.ErrClosed) {
			return err
		}
		return nil
	})
	return out
}

// renumbered closes the gaps between the positions of a session.
func (f *filed) renumbered(ctx context.Context, scope core.Scope) error {
	var all []core.Entry
	for e, err := range core.All(ctx, f.Store, scope, false) {
		if err != nil {
			return err
		}
		if e.Seq != int64(len(all)) {
			if _, err := f.Delete(ctx, scope, []string{e.ID}); err != nil {
				return err
			}
			e.Seq = int64(len(all))
			if _, err := f.Store.Append(ctx, []core.Entry{e}); err != nil {
				return err
			}
		}
		all = append(all, e)
	}
	return nil
}

// tableVectorsReopened are stores whose vectors come back differently.
func tableVectorsReopened() []broken {
	var out []broken
	reopened := func(name string, f func(ctx context.Context, s *filed) error) {
		out = append(out, filedOf("vectors reopened", name, []string{"reopen"}, func(s *filed) { s.reopened = f }))
	}
	reopened("none", func(ctx context.Context, s *filed) error { return s.DropVectors(ctx, "one/3", "") })
	reopened("those of one agent", func(ctx context.Context, s *filed) error { return s.DropVectors(ctx, "one/3", "agent-b") })
	reopened("those of the first part", func(ctx context.Context, s *filed) error {
		var errs []error
		for _, agent := range []string{"agent-a", "agent-b"} {
			p, err := s.ScanVectors(ctx, vector.Query{Space: "one/3", Agent: agent, Limit: core.MaxPage})
			firsts := slices.DeleteFunc(p.Vectors, func(v vector.Vector) bool { return v.Part > 0 })
			errs = append(errs, err, s.DropVectors(ctx, "one/3", agent), s.PutVectors(ctx, "one/3", firsts))
		}
		return errors.Join(errs...)
	})
	reopened("some of what was erased", func(ctx context.Context, s *filed) error {
		for e, err := range core.All(ctx, s.Store, core.Scope{Agent: "agent-a"}, false) {
			if err != nil {
				return err
			}
			if e.Type == core.TypeErased {
				s.vectors = append(s.vectors, vector.Vector{ID: e.ID, Values: []float32{1, 2, 3}})
			}
		}
		return nil
	})
	return out
}

// tableRepaired are wrong ways to repair a store that is whole.
func tableRepaired() []broken {
	var out []broken
	repair := func(name, claim string, f func(s *filed, ctx context.Context) (string, error)) {
		out = append(out, filedOf("repair", name, []string{claim}, func(s *filed) {
			s.repair = func(ctx context.Context) (string, error) { return f(s, ctx) }
		}))
	}
	repair("everything goes", "repair.keeps", func(s *filed, ctx context.Context) (string, error) {
		return "", cmp.Or(s.erasedIf(ctx, func(core.Entry) bool { return true }), ctx.Err())
	})
	repair("what was emptied goes", "repair.keeps", func(s *filed, ctx context.Context) (string, error) {
		return "", cmp.Or(s.erasedIf(ctx, func(e core.Entry) bool { return e.Type == core.TypeErased }), ctx.Err())
	})
	repair("views go", "repair.keeps", func(s *filed, ctx context.Context) (string, error) {
		return "", s.DeleteView(ctx, core.SessionID{Agent: "agent-a", Session: "main"})
	})
	repair("vectors go", "repair.keeps", func(s *filed, ctx context.Context) (string, error) { return "", s.DropVectors(ctx, "one/3", "") })
	repair("positions made anew", "repair.keeps", func(s *filed, ctx context.Context) (string, error) {
		return "", s.renumbered(ctx, core.Scope{Agent: "agent-a", Session: "main"})
	})
	repair("positions of another session made anew", "repair.keeps", func(s *filed, ctx context.Context) (string, error) {
		return "", s.renumbered(ctx, core.Scope{Agent: "agent-b", Session: "main"})
	})
	repair("a copy each time", "repair.keeps", func(s *filed, ctx context.Context) (string, error) {
		_, err := s.Store.Repair(ctx)
		return s.path + ".copy", err
	})
	repair("an error where nothing is wrong", "repair.keeps", func(s *filed, ctx context.Context) (string, error) {
		_, err := s.Store.Repair(ctx)
		return "", cmp.Or(err, errors.New("broken: nothing to repair"))
	})
	repair("context ignored", "cancel.store", func(s *filed, ctx context.Context) (string, error) { return s.Store.Repair(context.WithoutCancel(ctx)) })
	repair("closed is whole", "close.closed", func(s *filed, ctx context.Context) (string, error) {
		saved, err := s.Store.Repair(ctx)
		if errors.Is(err, core.ErrClosed) {
			err = nil
		}
		return saved, err
	})
	return out
}

// tableErased are wrong sides of erasing a session that only a store with a feed and vectors has.
func tableErased() []broken {
	erase := func(name string, change func(*filed)) broken {
		return filedOf("session eraser", name, []string{"erase.session"}, change)
	}
	return []broken{
		erase("the feed does not tell", func(f *filed) { f.silent = true }),
		erase("vectors stay", func(f *filed) { f.stay = true }),
	}
}
