package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// edit changes the session's stored view, whatever it is, and nothing else: as a crash or an older version left it.
func (f *fixture) edit(edits ...core.Edit) {
	f.t.Helper()
	v, err := f.store.LoadView(f.t.Context(), f.id)
	if err != nil {
		f.t.Fatal(err)
	}
	v.Apply(edits...)
	v.Apply(edit.Publish{Version: v.Version + 1})
	if err := f.store.SwapView(f.t.Context(), v); err != nil {
		f.t.Fatal(err)
	}
	f.restart()
}

// anyhow is an edit that no engine makes.
type anyhow func(*core.View)

func (a anyhow) Edit(v *core.View) { a(v) }

// TestFlawsOfViews: what a view names and the store has not, or what it names twice, is told, and mending leaves a session that shows what there is, once.
func TestFlawsOfViews(t *testing.T) {
	said := []message.Message{user("m0"), assistant("m1"), user("m2"), assistant("m3"), user("m4"), assistant("m5")}
	for name, c := range map[string]struct {
		harm   func(*fixture)
		flaw   string
		mended int
		want   string
	}{
		"nothing": {func(*fixture) {}, "", 0, "m0 | m1 | m2 | m3 | m4 | m5"},
		"entries are gone": {func(f *fixture) {
			if _, err := f.store.Delete(f.t.Context(), f.id.Scope(), []string{f.entry("m1").ID, f.entry("m2").ID}); err != nil {
				f.t.Fatal(err)
			}
		}, "2 positions of the view hold no entry", 2, "m0 | m3 | m4 | m5"},
		"something else stands there": {func(f *fixture) {
			if err := f.store.Update(f.t.Context(), f.id.Scope(), f.entry("m1").ID, core.Change{Type: core.TypeSummary}); err != nil {
				f.t.Fatal(err)
			}
		}, "1 positions of the view hold no entry", 1, "m0 | m2 | m3 | m4 | m5"},
		"there twice": {func(f *fixture) {
			f.edit(anyhow(func(v *core.View) { v.Path = append(v.Path, core.Span{From: 1, To: 3}) }))
		}, "2 positions are in the view twice", 2, "m0 | m1 | m2 | m3 | m4 | m5"},
		"it begins behind the end": {func(f *fixture) {
			f.edit(anyhow(func(v *core.View) { v.Start = 9 }))
		}, "the window begins at 9, behind the end of the 6 entries of the view", 1, "[6 earlier messages are stored but not shown.]"},
		"its summaries end behind the end": {func(f *fixture) {
			f.edit(anyhow(func(v *core.View) { v.Start, v.Frontier = 6, 8 }))
		}, "the window begins at 8, behind the end of the 6 entries of the view", 1, ""},
		"more leads than there is": {func(f *fixture) {
			f.edit(anyhow(func(v *core.View) { v.Lead = 7 }))
		}, "the window begins at 7, behind the end of the 6 entries of the view", 1, "m0 | m1 | m2 | m3 | m4 | m5"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.ingest(said...)
			f.assemble(1000)
			c.harm(f)
			f.restart()
			var want []string
			if c.flaw != "" {
				want = []string{"s1: " + c.flaw}
			}
			if got := flaws(t, f.store); !slices.Equal(got, want) {
				t.Errorf("before: %q, want %q", got, want)
			}
			_ = second(f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 1000})) // some can be read as they are, and are in memory then
			for _, want := range []int{c.mended, 0} {
				if n, err := f.engine.Mend(t.Context(), f.id); n != want || err != nil {
					t.Errorf("Mend = %d, %v, want %d", n, err, want)
				}
			}
			if got := flaws(t, f.store); got != nil {
				t.Errorf("afterwards: %q", got)
			}
			for range 2 {
				if got := shown(f.assemble(1000)); got != c.want {
					t.Errorf("shown: %q, want %q", got, c.want)
				}
				f.ingest(user("on"))
				c.want = strings.TrimPrefix(c.want+" | on", " | ")
			}
			f.restart()
			if got := shown(f.assemble(1000)); got != c.want {
				t.Errorf("after a restart: %q, want %q", got, c.want)
			}
		})
	}
}

// TestFlawsOfManyViews: every view of a store is compared, however many there are, and every entry of a long one; whoever has seen enough may stop.
func TestFlawsOfManyViews(t *testing.T) {
	f := newFixture(t)
	var batch []message.Message
	for n := range core.MaxPage + 2 {
		batch = append(batch, user(fmt.Sprint("m", n)))
	}
	f.ingest(batch...)
	for n := range 2 * core.MaxPage {
		v := core.View{Session: core.SessionID{Agent: "other", Session: fmt.Sprintf("s%05d", n)}, Version: 1}
		if n == core.MaxPage-2 || n >= 2*core.MaxPage-2 { // the first page ends with the first of them
			v.Path = []core.Span{{To: 1}}
			v.Lead = 2
		}
		if err := f.store.SwapView(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"s00998: 1 positions of the view hold no entry", "s00998: the window begins at 2, behind the end of the 1 entries of the view",
		"s01998: 1 positions of the view hold no entry", "s01998: the window begins at 2, behind the end of the 1 entries of the view",
		"s01999: 1 positions of the view hold no entry", "s01999: the window begins at 2, behind the end of the 1 entries of the view",
	}
	if got := flaws(t, f.store); !slices.Equal(got, want) {
		t.Errorf("flaws: %q, want %q", got, want)
	}
	n := 0
	for range engine.Flaws(t.Context(), f.store) {
		if n++; n == 5 {
			break
		}
	}
	if n != 5 {
		t.Errorf("it ended after %d", n)
	}
	if got := flaws(t, viewless{f.store}); got != nil {
		t.Errorf("a store without views: %q", got)
	}
}

// unreadable is a store of which a part cannot be read.
type unreadable struct {
	*memory.Store
	lists, views, entries error
}

func (s *unreadable) ListViews(ctx context.Context, q core.ViewQuery) ([]core.SessionID, error) {
	if s.lists != nil {
		return nil, s.lists
	}
	return s.Store.ListViews(ctx, q)
}

func (s *unreadable) LoadView(ctx context.Context, id core.SessionID) (core.View, error) {
	if s.views != nil && id.Session == "b" {
		return core.View{}, s.views
	}
	return s.Store.LoadView(ctx, id)
}

func (s *unreadable) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	if s.entries != nil && q.Scope.Session == "b" {
		return core.Page{}, s.entries
	}
	return s.Store.Scan(ctx, q)
}

// TestFlawsThatCannotBeFound: what cannot be read is an error and the last thing that is said, never taken for a store without flaws; a view that was dropped
// meanwhile is no flaw, and the others are compared.
func TestFlawsThatCannotBeFound(t *testing.T) {
	fault := errors.New("disk on fire")
	for name, c := range map[string]struct {
		store unreadable
		want  string
	}{
		"the list":          {unreadable{lists: fault}, "error"},
		"a view":            {unreadable{views: fault}, "a error"},
		"the entries":       {unreadable{entries: fault}, "a error"},
		"dropped meanwhile": {unreadable{views: core.ErrNotFound}, "a c"},
	} {
		t.Run(name, func(t *testing.T) {
			store := &c.store
			store.Store = memory.New()
			for _, session := range []string{"a", "b", "c"} {
				v := core.View{Session: core.SessionID{Agent: "ada", Session: session}, Version: 1, Path: []core.Span{{To: 1}}}
				if err := store.SwapView(t.Context(), v); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for f, err := range engine.Flaws(t.Context(), store) {
				switch {
				case err == nil:
					got = append(got, f.Session.Session)
				case errors.Is(err, fault):
					got = append(got, "error")
				default:
					t.Errorf("error %v, want that of the store", err)
				}
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("it says %q, want %q", s, c.want)
			}
		})
	}
}
