package outbox_test

import (
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
)

// hydrating is a configuration that copies history.
func hydrating(c *outbox.Config) { c.Hydrate = true }

// history is a remote with history of two sessions and of another agent.
func history(t *testing.T, n int) *remote {
	t.Helper()
	far := newRemote()
	mustAppend(t, far.Store, entries(ann, 0, n)...)
	mustAppend(t, far.Store, entries(two, 0, n)...)
	mustAppend(t, far.Store, entries(core.SessionID{Agent: "bob", Session: "one"}, 0, 3)...)
	return far
}

func TestHydrate(t *testing.T) {
	t.Parallel()
	far := history(t, 500)
	local := memory.New()
	s := open(t, durable(t, hydrating), local, far)
	// What is read is there, whatever was copied by then; the rest follows by itself.
	holds(t, "local", s, ann, entries(ann, 0, 500))
	got, err := s.Get(t.Context(), core.Scope{Agent: "ann"}, ids(entries(two, 100, 110)))
	if diff := cmp.Diff(entries(two, 100, 110), got); err != nil || diff != "" {
		t.Errorf("Get: %v (-want +got):\n%s", err, diff)
	}
	eventually(t, "the agent's history is copied", func() bool { return len(status(t, s).Copying) == 0 })
	holds(t, "local", local, two, entries(two, 0, 500))
	if got := all(t, local, core.Scope{Agent: "bob"}); len(got) != 0 {
		t.Errorf("%d entries of an agent were copied that nobody uses", len(got))
	}
	mustAppend(t, s, entry(ann, 500))
	mustDrain(t, s)
	holds(t, "remote", far.Store, ann, entries(ann, 0, 501))
}

// TestHydrateOffline: what was not copied is not passed over in silence, and what was is there.
func TestHydrateOffline(t *testing.T) {
	t.Parallel()
	far, local := history(t, 30), kept{memory.New()}
	var down atomic.Bool
	far.fail = func(string, []string, bool) error {
		if down.Load() {
			return errDown
		}
		return nil
	}
	cfg := durable(t, hydrating, func(c *outbox.Config) { c.CloseTimeout = time.Millisecond })
	s := open(t, cfg, local, far)
	holds(t, "local", s, ann, entries(ann, 0, 30))
	eventually(t, "the agent's history is copied", func() bool { return len(status(t, s).Copying) == 0 })
	down.Store(true)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, cfg, local, far)
	holds(t, "local", s, two, entries(two, 0, 30))
	_, err := s.Scan(t.Context(), core.ScanQuery{Scope: core.Scope{Agent: "bob"}, Limit: 10})
	is(t, "Scan of what was not copied", err, core.ErrUnavailable)
	// Appends and erasures are accepted all the same.
	bob := core.SessionID{Agent: "bob", Session: "one"}
	mustAppend(t, s, entry(bob, 3))
	if n, err := s.Delete(t.Context(), bob.Scope(), []string{entry(bob, 1).ID, entry(bob, 3).ID}); n != 1 || err != nil {
		t.Errorf("Delete = %d, %v", n, err)
	}
	mustAppend(t, s, entry(bob, 4))
	if err := s.Update(t.Context(), bob.Scope(), entry(bob, 4).ID, core.Change{Meta: map[string]string{"m": "1"}}); err != nil {
		t.Errorf("Update: %v", err)
	}
	down.Store(false)
	mustDrain(t, s)
	want := all(t, s, bob.Scope())
	if got := ids(want); !slices.Equal(got, []string{entry(bob, 0).ID, entry(bob, 2).ID, entry(bob, 4).ID}) {
		t.Errorf("the local store has %v", got)
	}
	holds(t, "remote", far.Store, bob, want)
}

// TestHydrateIsNoResurrection: what is erased here while a page of the remote's is under way stays erased.
func TestHydrateIsNoResurrection(t *testing.T) {
	t.Parallel()
	far, local := history(t, 10), memory.New()
	var s *outbox.Store
	ready := make(chan struct{})
	var once atomic.Bool
	far.fail = func(op string, _ []string, after bool) error {
		if op != "scan" || !after || once.Swap(true) {
			return nil
		}
		<-ready
		// The page was read and is not here yet.
		if _, err := s.Delete(t.Context(), ann.Scope(), []string{entry(ann, 2).ID}); err != nil {
			return err
		}
		// Most times the remote hears of it before the page is stored here; not when it is the delivery itself that reads the page.
		for range 100 {
			if _, err := far.Get(t.Context(), ann.Scope(), []string{entry(ann, 2).ID}); errors.Is(err, core.ErrNotFound) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		return nil
	}
	s = open(t, durable(t, hydrating), local, far)
	close(ready)
	want := slices.Delete(entries(ann, 0, 10), 2, 3)
	holds(t, "local", s, ann, want)
	mustDrain(t, s)
	holds(t, "remote", far.Store, ann, want)
}

// TestHydrateResumes: an interrupted copy goes on where it stopped, and a cursor that is void begins anew.
func TestHydrateResumes(t *testing.T) {
	t.Parallel()
	far, local := history(t, 900), kept{memory.New()}
	var scans atomic.Int64
	var limit atomic.Int64
	limit.Store(3)
	far.fail = func(op string, _ []string, after bool) error {
		if op == "scan" && !after && scans.Add(1) > limit.Load() {
			return errDown
		}
		return nil
	}
	cfg := durable(t, hydrating, func(c *outbox.Config) { c.MinBackoff, c.MaxBackoff = time.Hour, time.Hour })
	s := open(t, cfg, local, far)
	_, err := s.Scan(t.Context(), core.ScanQuery{Scope: core.Scope{Agent: "ann"}, Limit: 10})
	is(t, "Scan while the copy fails", err, core.ErrUnavailable)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, cfg, local, far)
	scans.Store(0)
	limit.Store(100)
	if got := all(t, s, core.Scope{Agent: "ann"}); len(got) != 1800 {
		t.Errorf("%d entries, want 1800", len(got))
	}
	if n := scans.Load(); n > 7 {
		t.Errorf("%d pages were read after the restart, want the six that were missing", n)
	}
}

// TestRequeue: what was in the local store before there was an outbox is delivered when asked for.
func TestRequeue(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "store.db")
	local := openFile(t, file)
	mustAppend(t, local, entries(ann, 0, 120)...)
	if err := local.Update(t.Context(), ann.Scope(), entry(ann, 7).ID, erased("7")); err != nil {
		t.Fatal(err)
	}
	far := newRemote()
	mustAppend(t, far.Store, entries(ann, 0, 10)...)
	s := open(t, outbox.DefaultConfig(), local, far)
	if n, err := s.Requeue(t.Context(), core.Scope{Agent: "ann"}); n != 120 || err != nil {
		t.Fatalf("Requeue = %d, %v", n, err)
	}
	mustDrain(t, s)
	holds(t, "remote", far.Store, ann, all(t, local, ann.Scope()))
}

// TestHydrateSaysWhatIsBare: messages that come with their text alone are counted once, whoever asks and however often.
func TestHydrateSaysWhatIsBare(t *testing.T) {
	t.Parallel()
	far, local := newRemote(), kept{memory.New()}
	told := entries(ann, 0, 5)
	for i := range told[:3] {
		told[i].Meta = map[string]string{upkeep.MetaTextOnly: "yes"}
	}
	told[2].Type = core.TypeErased
	mustAppend(t, far.Store, told...)
	cfg := durable(t, hydrating)
	for range 2 {
		s := open(t, cfg, local, far)
		holds(t, "local", s, ann, told)
		eventually(t, "the agent's history is copied", func() bool { return len(status(t, s).Copying) == 0 })
		log, err := s.Backlog(t.Context())
		if err != nil || log.Bare != 2 {
			t.Errorf("Backlog = %+v, %v, want 2 with their text alone", log, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
