package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func noted(agent string, n int) core.Entry {
	id := fmt.Sprint(agent, n)
	return core.Entry{
		ID: id, Key: "k" + id, Agent: agent, Session: fmt.Sprint("s", n%3), Seq: int64(n), Role: message.User, Time: time.Unix(int64(n), 0).UTC(),
		Type: core.TypeMessage, Message: message.New(message.User, "text of "+id),
	}
}

func appended(t *testing.T, s *Store, agent string, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		if _, err := s.Append(t.Context(), []core.Entry{noted(agent, n)}); err != nil {
			t.Fatal(err)
		}
	}
}

// twoOf opens one file twice, as two processes would.
func twoOf(t *testing.T) (s, other *Store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	var stores [2]*Store
	for i := range stores {
		var err error
		if stores[i], err = openWith(t, path, migrations()); err != nil {
			t.Fatal(err)
		}
	}
	return stores[0], stores[1]
}

// occupied has somebody write, or not, until the function it returns is called.
func occupied(s *Store, writing bool) (release func()) {
	if !writing {
		return func() {}
	}
	s.turn <- struct{}{}
	return func() { <-s.turn }
}

func TestGetAnyNumber(t *testing.T) {
	s, other := twoOf(t)
	const all = 150
	appended(t, s, "ann", 0, all)
	appended(t, s, "bob", 0, 3)
	scope := core.Scope{Agent: "ann"}
	for _, writing := range []bool{false, true} {
		release := occupied(s, writing)
		for _, n := range []int{0, 1, 2, someIDs/4 - 1, someIDs / 4, someIDs, someIDs + 1, manyIDs - 1, manyIDs, manyIDs + 1, manyIDs + someIDs, all} {
			ids, want := make([]string, n), make([]core.Entry, n)
			for i := range ids {
				e := noted("ann", i*7%all/2) // some of them twice
				ids[i], want[i] = e.ID, e
			}
			got, err := s.Get(t.Context(), scope, ids)
			if err != nil || cmp.Diff(want, got) != "" {
				t.Fatalf("Get of %d = %d, %v, differs: %s", n, len(got), err, cmp.Diff(want, got))
			}
			for _, wrong := range []string{"nobody's", "bob1"} {
				for at := 0; at < n; at += 1 + n/3 {
					right := ids[at]
					ids[at] = wrong
					got, err := s.Get(t.Context(), scope, ids)
					if want := fmt.Sprintf("sqlite: get: entry %q: ", wrong); !errors.Is(err, core.ErrNotFound) || err.Error() != want+core.ErrNotFound.Error() || got != nil {
						t.Errorf("Get of %d with %q at %d = %v, %v, want ErrNotFound", n, wrong, at, got, err)
					}
					ids[at] = right
				}
			}
		}
		release()
	}
	// What another process writes is seen at once.
	m := message.New(message.User, "changed")
	for range 3 {
		if err := other.Update(t.Context(), scope, "ann5", core.Change{Message: &m}); err != nil {
			t.Fatal(err)
		}
		got, err := s.Get(t.Context(), scope, []string{"ann5"})
		if err != nil || cmp.Diff(m, got[0].Message) != "" {
			t.Fatalf("Get after another process has changed an entry = %v, %v", got, err)
		}
		m.Parts[0].Text += " again"
	}
	if _, err := other.Delete(t.Context(), scope, []string{"ann5"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), scope, []string{"ann4", "ann5", "ann6", "ann7"}); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("Get after another process has deleted an entry = %v, want ErrNotFound", err)
	}
}

// TestFollowWherever follows with few and with many changes at a time, while the writer is idle and while it is not.
func TestFollowWherever(t *testing.T) {
	s, other := twoOf(t)
	n := 0
	add := func(t *testing.T) core.Entry {
		t.Helper()
		e := noted("ann", n)
		appended(t, s, "ann", n, n+1)
		appended(t, s, "bob", n, n+1)
		n++
		return e
	}
	everyOther := func(id string) bool { return (id[len(id)-1]-'0')%2 == 0 }
	for _, writing := range []bool{false, true} {
		release := occupied(other, writing)
		add(t)
		page, err := other.Changes(t.Context(), core.ChangeQuery{Agent: "ann", Limit: core.MaxPage})
		if err != nil || page.More || len(page.Changes) != n {
			t.Fatalf("Changes from the beginning = %d, more %t, %v, want %d", len(page.Changes), page.More, err, n)
		}
		for _, batch := range []int{1, 0, 2, longGlance / 2, longGlance/2 + 1, longGlance + 1, 3 * longGlance, 1} {
			mark := page.Mark
			var all, odd []core.EntryChange
			for range batch {
				e := add(t)
				all = append(all, core.EntryChange{ID: e.ID, Entry: &e})
				if !everyOther(e.ID) {
					odd = append(odd, all[len(all)-1])
				}
			}
			for _, c := range []struct {
				known func(string) bool
				want  []core.EntryChange
			}{{nil, all}, {everyOther, odd}, {func(string) bool { return true }, nil}} {
				page, err = other.Changes(t.Context(), core.ChangeQuery{Agent: "ann", After: mark, Limit: core.MaxPage, Known: c.known})
				if err != nil || page.More {
					t.Fatalf("Changes = more %t, %v", page.More, err)
				}
				if diff := cmp.Diff(c.want, page.Changes); diff != "" {
					t.Errorf("told of %d new entries (-want +got):\n%s", batch, diff)
				}
				if moved := page.Mark != mark; moved != (batch > 0) {
					t.Errorf("after %d new entries the mark has moved: %t", batch, moved)
				}
			}
		}
		release()
	}
}

// TestKnownKeepsNobodyWaiting asks Known while the writer is free: it may wait for somebody who waits for the writer.
func TestKnownKeepsNobodyWaiting(t *testing.T) {
	s, _ := twoOf(t)
	appended(t, s, "ann", 0, 2)
	page, err := s.Changes(t.Context(), core.ChangeQuery{Agent: "ann", Limit: core.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	appended(t, s, "ann", 2, 4)
	asked := 0
	page, err = s.Changes(t.Context(), core.ChangeQuery{Agent: "ann", After: page.Mark, Limit: 10, Known: func(id string) bool {
		asked++
		if len(s.turn) > 0 {
			t.Errorf("Known is asked for %s while the writer is in use", id)
		}
		return id != "ann3"
	}})
	if err != nil || len(page.Changes) != 1 || page.Changes[0].ID != "ann3" || asked < 2 {
		t.Errorf("Changes = %+v, %v, want the one that is not known", page, err)
	}
}

// TestGlance checks who reads, and that nothing is left behind.
func TestGlance(t *testing.T) {
	s, _ := twoOf(t)
	appended(t, s, "ann", 0, 1)
	for _, c := range []struct {
		what string
		f    func(ctx context.Context, from reader) error
		done bool
		want error
	}{
		{"a read", func(ctx context.Context, from reader) error {
			var n int
			return from.row(ctx, &s.r.left, 1, 1, 1, "x").Scan(&n)
		}, true, nil},
		{"an error", func(context.Context, reader) error { return core.ErrNotFound }, true, core.ErrNotFound},
		{"a row of another kind", func(ctx context.Context, from reader) error {
			var b []byte
			return s.scanned(from.row(ctx, &s.r.left, 1, 1, 1, "x").Scan(&b))
		}, true, ErrDamaged},
		{"no row", func(ctx context.Context, from reader) error {
			return s.scanned(from.row(ctx, &s.r.get, "nobody's").Scan(new(int)))
		}, true, core.ErrNotFound},
		{"too much", func(context.Context, reader) error { return errNoGlance }, false, nil},
	} {
		done, err := s.glance(t.Context(), "look", c.f)
		if done != c.done || !errors.Is(err, c.want) {
			t.Errorf("%s: done %t, %v, want %t, %v", c.what, done, err, c.done, c.want)
		}
		appended(t, s, "ann", 1, 2) // a transaction that was left open would not let it
	}
	release := s.HoldWriteLock(t)
	s.turn <- struct{}{}
	if done, err := s.glance(t.Context(), "look", func(context.Context, reader) error { return nil }); done || err != nil {
		t.Errorf("while somebody writes: done %t, %v, want to be told to go elsewhere", done, err)
	}
	<-s.turn
	release()
	ended, stop := context.WithCancel(t.Context())
	stop()
	if done, err := s.glance(ended, "look", func(context.Context, reader) error { return nil }); !done || !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: done %t, %v, want Canceled", done, err)
	}
}

func TestAssign(t *testing.T) {
	var (
		n      int64
		i      int
		s      string
		b      []byte
		v      any
		text   sql.NullString
		number sql.NullInt64
	)
	for _, c := range []struct {
		to    any
		value any
		ok    bool
	}{
		{&n, int64(1), true}, {&n, "1", false}, {&n, nil, false}, {&n, 1.5, false},
		{&i, int64(1), true}, {&i, nil, false},
		{&s, "a", true}, {&s, []byte("a"), false}, {&s, nil, false},
		{&b, []byte("a"), true}, {&b, nil, true}, {&b, "a", false},
		{&v, "a", true}, {&v, nil, true},
		{&text, "a", true}, {&text, nil, true}, {&text, int64(1), false},
		{&number, int64(1), true}, {&number, nil, true}, {&number, "1", false},
		{new(float64), 1.5, false},
	} {
		if ok := assign(c.to, c.value); ok != c.ok {
			t.Errorf("a %T into a %T: %t, want %t", c.value, c.to, ok, c.ok)
		}
	}
	if n != 0 && n != 1 || b != nil || text.Valid {
		t.Errorf("the last values are %d, %q and %v", n, b, text)
	}
}
