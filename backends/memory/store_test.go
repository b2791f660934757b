package memory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

var ann = core.SessionID{Agent: "ann", Session: "one"}

func entry(id core.SessionID, n int) core.Entry {
	name := fmt.Sprintf("%s-%s-%d", id.Agent, id.Session, n)
	m := message.New(message.User, "text of "+name)
	m.Raw = []byte("raw\x00\xff " + name)
	m.Parts[0].Raw = []byte("part " + name)
	return core.Entry{
		ID: name, Agent: id.Agent, Session: id.Session, Seq: int64(n), Role: message.User, Type: core.TypeMessage,
		Time: time.Unix(int64(n), 0).UTC(), Tokens: 7, Key: "k" + name, Fingerprint: message.Fingerprint(m), Message: m,
		Meta: map[string]string{"n": name},
	}
}

func entries(id core.SessionID, from, to int) []core.Entry {
	var out []core.Entry
	for n := from; n < to; n++ {
		out = append(out, entry(id, n))
	}
	return out
}

func mustAppend(t *testing.T, s *memory.Store, es ...core.Entry) core.AppendResult {
	t.Helper()
	res, err := s.Append(t.Context(), es)
	if err != nil {
		t.Fatalf("Append: %v", err)
	}
	return res
}

func ids(es []core.Entry) []string {
	out := []string{}
	for _, e := range es {
		out = append(out, e.ID)
	}
	return out
}

func TestAppendIsIdempotentByKey(t *testing.T) {
	s := memory.New()
	a, b := entry(ann, 0), entry(ann, 1)
	mustAppend(t, s, a)
	again := a
	again.ID = "another-id"
	twin := b
	twin.ID = "twin"
	res := mustAppend(t, s, again, b, twin, a)
	want := core.AppendResult{IDs: []string{a.ID, b.ID, b.ID, a.ID}, Duplicates: 3}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Errorf("Append (-want +got):\n%s", diff)
	}
	other := a
	other.ID, other.Session = "in-two", "two"
	if res := mustAppend(t, s, other); res.Duplicates != 0 {
		t.Errorf("the same key in another session counted as a duplicate")
	}
}

func TestFailedAppendStoresNothing(t *testing.T) {
	stored := entry(ann, 0)
	clash := entry(ann, 1)
	clash.ID = stored.ID
	elsewhere := stored
	elsewhere.Session = "two"
	twin := entry(ann, 9)
	twin.Key = "other"
	empty := entry(ann, 2)
	empty.Key = ""
	for name, tc := range map[string]struct {
		batch []core.Entry
		want  error
	}{
		"id with another key":      {[]core.Entry{entry(ann, 5), clash}, core.ErrConflict},
		"id in another session":    {[]core.Entry{entry(ann, 5), elsewhere}, core.ErrConflict},
		"id twice within a batch":  {[]core.Entry{entry(ann, 9), twin}, core.ErrConflict},
		"incomplete entry at last": {[]core.Entry{entry(ann, 5), empty}, core.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			s := memory.New()
			mustAppend(t, s, stored)
			if _, err := s.Append(t.Context(), tc.batch); !errors.Is(err, tc.want) {
				t.Fatalf("Append = %v, want %v", err, tc.want)
			}
			page, err := s.Scan(t.Context(), core.ScanQuery{Scope: core.Scope{Agent: "ann"}, Limit: 10})
			if err != nil || len(page.Entries) != 1 {
				t.Errorf("after the failed append Scan = %v, %v, want only the first entry", ids(page.Entries), err)
			}
		})
	}
}

func TestEntriesAreCopied(t *testing.T) {
	s := memory.New()
	given, want := entry(ann, 0), entry(ann, 0)
	mustAppend(t, s, given)
	spoil := func(e core.Entry) {
		e.Meta["n"] = "spoilt"
		e.Message.Raw[0] = 'X'
		e.Message.Parts[0].Raw[0] = 'X'
		e.Message.Parts[0].Text = "spoilt"
		before := string(e.Message.Parts[0].Raw)
		_ = append(e.Message.Raw, "overflow"...)
		if got := string(e.Message.Parts[0].Raw); got != before {
			t.Errorf("appending to a message's bytes changed its part's from %q to %q", before, got)
		}
	}
	spoil(given)
	for range 2 {
		got, err := s.Get(t.Context(), ann.Scope(), []string{want.ID})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got[0]); diff != "" {
			t.Fatalf("the stored entry changed (-want +got):\n%s", diff)
		}
		spoil(got[0])
	}
}

func TestGet(t *testing.T) {
	s := memory.New()
	es := entries(ann, 0, 4)
	mustAppend(t, s, es...)
	got, err := s.Get(t.Context(), core.Scope{Agent: "ann"}, []string{es[3].ID, es[0].ID, es[3].ID})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{es[3].ID, es[0].ID, es[3].ID}, ids(got)); diff != "" {
		t.Errorf("Get (-want +got):\n%s", diff)
	}
	for _, scope := range []core.Scope{{Agent: "bob"}, {Agent: "ann", Session: "two"}} {
		got, err := s.Get(t.Context(), scope, []string{es[0].ID})
		if !errors.Is(err, core.ErrNotFound) || got != nil {
			t.Errorf("Get in %v = %v, %v, want nothing and ErrNotFound", scope, ids(got), err)
		}
	}
	if _, err := s.Get(t.Context(), core.Scope{}, nil); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("Get without an agent = %v, want ErrInvalid", err)
	}
}

func TestUpdate(t *testing.T) {
	s := memory.New()
	e := entry(ann, 0)
	mustAppend(t, s, e)
	before, _ := s.Get(t.Context(), ann.Scope(), []string{e.ID})
	m := message.New(message.User, "redacted")
	if err := s.Update(t.Context(), ann.Scope(), e.ID, core.Change{Message: &m, Tokens: 2, Fingerprint: "f"}); err != nil {
		t.Fatal(err)
	}
	got, _ := s.Get(t.Context(), ann.Scope(), []string{e.ID})
	want := e
	want.Message, want.Tokens, want.Fingerprint = m, 2, "f"
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("Update (-want +got):\n%s", diff)
	}
	if before[0].Text() != e.Text() {
		t.Error("an entry returned earlier changed with the update")
	}
	if err := s.Update(t.Context(), ann.Scope(), e.ID, core.Change{Meta: map[string]string{}}); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Get(t.Context(), ann.Scope(), []string{e.ID}); len(got[0].Meta) != 0 || got[0].Tokens != 2 {
		t.Errorf("after replacing the metadata alone: %v tokens, meta %v", got[0].Tokens, got[0].Meta)
	}
	if err := s.Update(t.Context(), core.Scope{Agent: "bob"}, e.ID, core.Change{}); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("Update in a foreign scope = %v, want ErrNotFound", err)
	}
}

func TestDelete(t *testing.T) {
	s := memory.New()
	es := entries(ann, 0, 3)
	mustAppend(t, s, es...)
	n, err := s.Delete(t.Context(), ann.Scope(), []string{es[1].ID, "unknown", es[1].ID})
	if err != nil || n != 1 {
		t.Fatalf("Delete = %d, %v, want 1", n, err)
	}
	if n, _ := s.Delete(t.Context(), core.Scope{Agent: "bob"}, ids(es)); n != 0 {
		t.Errorf("Delete in a foreign scope removed %d entries", n)
	}
	if res := mustAppend(t, s, es[1]); res.Duplicates != 0 {
		t.Error("a deleted entry still occupies its key")
	}
}

func TestClosedAndCancelled(t *testing.T) {
	s := memory.New()
	mustAppend(t, s, entry(ann, 0))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	calls := map[string]func(ctx context.Context) error{
		"append": func(ctx context.Context) error { _, err := s.Append(ctx, entries(ann, 1, 2)); return err },
		"get":    func(ctx context.Context) error { _, err := s.Get(ctx, ann.Scope(), nil); return err },
		"scan": func(ctx context.Context) error {
			_, err := s.Scan(ctx, core.ScanQuery{Scope: ann.Scope(), Limit: 1})
			return err
		},
		"update": func(ctx context.Context) error { return s.Update(ctx, ann.Scope(), "x", core.Change{}) },
		"delete": func(ctx context.Context) error { _, err := s.Delete(ctx, ann.Scope(), nil); return err },
		"load":   func(ctx context.Context) error { _, err := s.LoadView(ctx, ann); return err },
		"swap":   func(ctx context.Context) error { return s.SwapView(ctx, core.View{Session: ann, Version: 1}) },
		"drop":   func(ctx context.Context) error { return s.DeleteView(ctx, ann) },
	}
	for name, call := range calls {
		if err := call(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a cancelled context = %v, want context.Canceled", name, err)
		}
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatalf("Close = %v", err)
		}
	}
	for name, call := range calls {
		if err := call(t.Context()); !errors.Is(err, core.ErrClosed) {
			t.Errorf("%s after Close = %v, want ErrClosed", name, err)
		}
	}
}

func TestOpen(t *testing.T) {
	s, err := memory.Open(t.Context(), memory.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, entry(ann, 0))
	if _, ok := core.As[core.ViewStore](s); !ok {
		t.Error("the store does not offer views")
	}
}

func TestConcurrentUse(t *testing.T) {
	s := memory.New()
	const workers, each = 8, 60
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			own := core.SessionID{Agent: "ann", Session: fmt.Sprint("s", w%3)}
			for i := range each {
				n := w*each + i
				if _, err := s.Append(t.Context(), []core.Entry{entry(own, n)}); err != nil {
					t.Errorf("Append: %v", err)
				}
				got, err := s.Get(t.Context(), own.Scope(), []string{entry(own, n).ID})
				if err != nil || len(got) != 1 {
					t.Errorf("Get = %v, %v", got, err)
					continue
				}
				got[0].Message.Raw[0]++ // the caller's own
				if err := s.Update(t.Context(), own.Scope(), got[0].ID, core.Change{Meta: map[string]string{"i": "x"}}); err != nil {
					t.Errorf("Update: %v", err)
				}
				for _, err := range core.All(t.Context(), s, core.Scope{Agent: "ann"}, i%2 == 0) {
					if err != nil {
						t.Errorf("All: %v", err)
					}
				}
				if i%5 == 0 {
					if _, err := s.Delete(t.Context(), own.Scope(), []string{got[0].ID}); err != nil {
						t.Errorf("Delete: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	n := 0
	for range core.All(t.Context(), s, core.Scope{Agent: "ann"}, false) {
		n++
	}
	if want := workers * each * 4 / 5; n != want {
		t.Errorf("%d entries are left, want %d", n, want)
	}
}
