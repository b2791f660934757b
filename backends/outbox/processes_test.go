package outbox_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

// TestTwoDeliverNever: of several outboxes over one journal one delivers, for all; when it closes, another one takes over.
func TestTwoDeliverNever(t *testing.T) {
	t.Parallel()
	local, far := kept{memory.New()}, newRemote()
	var mu sync.Mutex
	sent := map[string]int{}
	far.fail = func(op string, ids []string, after bool) error {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			if op == "append" && after {
				sent[id]++
			}
		}
		return nil
	}
	cfg := durable(t)
	var stores []*outbox.Store
	for range 3 {
		stores = append(stores, open(t, cfg, local, far))
	}
	write := func(round int) {
		var wg sync.WaitGroup
		for i, s := range stores {
			wg.Go(func() {
				id := core.SessionID{Agent: "ann", Session: fmt.Sprint("s", i)}
				for n := range 50 {
					if _, err := s.Append(t.Context(), []core.Entry{entry(id, round*50+n)}); err != nil && !strings.Contains(err.Error(), "closed") {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
	leaders := func() (out []int) {
		for i, s := range stores {
			if st, err := s.Status(t.Context()); err == nil && st.Delivering {
				out = append(out, i)
			}
		}
		return out
	}
	write(0)
	if got := leaders(); !slices.Equal(got, []int{0}) {
		t.Fatalf("%v deliver, want the first alone", got)
	}
	for _, s := range stores {
		mustDrain(t, s)
	}
	if err := stores[0].Close(); err != nil {
		t.Fatal(err)
	}
	stores = stores[1:]
	eventually(t, "another one delivers", func() bool { return len(leaders()) == 1 })
	write(1)
	for _, s := range stores {
		mustDrain(t, s)
	}
	mu.Lock()
	defer mu.Unlock()
	for id, n := range sent {
		if n != 1 {
			t.Errorf("%q was delivered %d times", id, n)
		}
	}
	if got, want := len(all(t, far.Store, core.Scope{Agent: "ann"})), 5*50; got != want {
		t.Errorf("the remote has %d entries, want %d", got, want)
	}
}

// TestProcesses: processes that write to one file at the same time deliver all of it once.
func TestProcesses(t *testing.T) {
	needs.NoRace(t) // the detector looks into each process alone
	t.Parallel()
	server := openbraintest.New(t)
	path := filepath.Join(t.TempDir(), "store.db")
	s := openBoth(t, path, server.URL(), server.Key())
	var wg sync.WaitGroup
	for n := range 2 {
		cmd := child(t, "writer", path, "ann", server, n)
		wg.Go(func() {
			if out, err := cmd.Output(); err != nil {
				t.Errorf("writer %d: %v\n%s", n, err, out)
			}
		})
	}
	own := core.SessionID{Agent: "ann", Session: "own"}
	for n := range 100 {
		mustAppend(t, s, entry(own, n))
	}
	wg.Wait()
	mustDrain(t, s)
	far := openServer(t, server)
	for name, n := range map[string]int{"own": 100, "writer0": 200, "writer1": 200} {
		id := core.SessionID{Agent: "ann", Session: name}
		holds(t, "local", s, id, entries(id, 0, n))
		holds(t, "remote", far, id, entries(id, 0, n))
	}
	if got := len(server.Thoughts()); got != 500 {
		t.Errorf("the server keeps %d thoughts for 500 entries", got)
	}
}

// TestJournalShrinks: what was delivered does not stay in the file for ever, and what waits does.
func TestJournalShrinks(t *testing.T) {
	t.Parallel()
	far := newRemote()
	var mu sync.Mutex
	down := false
	far.fail = func(string, []string, bool) error {
		mu.Lock()
		defer mu.Unlock()
		if down {
			return errDown
		}
		return nil
	}
	local := kept{memory.New()}
	cfg := durable(t, func(c *outbox.Config) { c.CloseTimeout = time.Millisecond })
	s := open(t, cfg, local, far)
	largest := int64(0)
	for n := range 5000 {
		mustAppend(t, s, entry(ann, n))
		if n%500 == 0 {
			mustDrain(t, s)
			largest = max(largest, status(t, s).JournalBytes)
		}
	}
	mustDrain(t, s)
	if st := status(t, s); st.JournalBytes > 300<<10 || largest > 600<<10 {
		t.Errorf("the journal is %d bytes with nothing waiting, and was %d", st.JournalBytes, largest)
	}
	mu.Lock()
	down = true
	mu.Unlock()
	for n := range 100 {
		mustAppend(t, s, entry(two, n))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	down = false
	mu.Unlock()
	s = open(t, cfg, local, far)
	if st := status(t, s); st.Delivered < 5000 {
		t.Errorf("Status = %+v", st)
	}
	mustDrain(t, s)
	holds(t, "remote", far.Store, two, entries(two, 0, 100))
}
