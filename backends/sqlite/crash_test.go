package sqlite_test

import (
	"bufio"
	"fmt"
	"math/rand"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/needs"
)

// TestKilledWhileWriting kills a process that ingests, at 20 points or as many as CRASH_POINTS says, and looks after each
// whether everything that was acknowledged is there, once and as it was.
func TestKilledWhileWriting(t *testing.T) {
	needs.NoRace(t) // the detector looks into each process alone
	t.Parallel()
	points := number("CRASH_POINTS", 20)
	seed := int64(number("CRASH_SEED", rand.Int()))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("CRASH_SEED=%d", seed)
		}
	})
	r := rand.New(rand.NewSource(seed))
	path := filepath.Join(t.TempDir(), "store.db")
	n, version := 0, uint64(0)
	for point := range points {
		// Files that grow without end make the later points slow and not harder.
		if n > 800 {
			path = filepath.Join(t.TempDir(), fmt.Sprint("store", point, ".db"))
			n, version = 0, 0
		}
		acks, delay := 1+r.Intn(60), time.Duration(r.Intn(1500))*time.Microsecond
		acknowledged, published := killAfter(t, path, n, acks, delay)
		if acknowledged < n {
			acknowledged = n
		}
		version = max(version, published)
		n, version = examine(t, path, acknowledged, version)
		if t.Failed() {
			t.Fatalf("at point %d of CRASH_SEED=%d, killed %v after %d acknowledgements", point, seed, delay, acks)
		}
	}
}

// killAfter kills a child some time after it said acks lines, and returns the last entry and view that it acknowledged.
func killAfter(t *testing.T, path string, from, acks int, delay time.Duration) (acknowledged int, published uint64) {
	t.Helper()
	cmd := child(t, "ingest", path, from, time.Minute)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for i := 0; lines.Scan(); i++ {
		if i == acks {
			time.Sleep(delay)
			// SIGKILL on the systems that have it.
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := fmt.Sscanf(lines.Text(), "entries %d", &acknowledged); err == nil {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "view %d", &published); err != nil {
			t.Fatalf("the child says %q", lines.Text())
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("the child ended before it was killed: %v", err)
	}
	return acknowledged, published
}

// examine opens the store without further ado, and returns how many entries it holds and the version of its view.
func examine(t *testing.T, path string, acknowledged int, published uint64) (int, uint64) {
	t.Helper()
	cfg := sqlite.DefaultConfig()
	cfg.Path, cfg.Check = path, sqlite.CheckOpen
	s, err := sqlite.Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("Open after the crash: %v", err)
	}
	defer s.Close()
	got := all(t, s, ann.Scope())
	if len(got) < acknowledged {
		t.Errorf("%d entries were acknowledged, %d are there", acknowledged, len(got))
	}
	if diff := differ(entries(ann, 0, len(got)), got); diff != "" {
		t.Errorf("entries after the crash (-want +got):\n%s", diff)
	}
	version := uint64(0)
	if v, err := s.LoadView(t.Context(), ann); err == nil {
		version = v.Version
		if diff := cmp.Diff(viewOf(version), v); diff != "" {
			t.Errorf("the view after the crash was never published (-want +got):\n%s", diff)
		}
	} else if published > 0 {
		t.Errorf("LoadView: %v", err)
	}
	if version < published {
		t.Errorf("view %d was acknowledged, %d is there", published, version)
	}
	if scratch := all(t, s, core.Scope{Agent: "ann", Session: "scratch"}); len(scratch) > 1 {
		t.Errorf("%d deleted entries are there", len(scratch)-1)
	} else if len(scratch) == 1 {
		// It was appended and not yet deleted; its id would be in the way of the next child's.
		if _, err := s.Delete(t.Context(), core.Scope{Agent: "ann"}, ids(scratch)); err != nil {
			t.Error(err)
		}
	}
	follower := copyOf{agent: "ann"}
	follower.follow(t, s, 1000)
	follower.compare(t, s)
	if err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	return len(got), version
}
