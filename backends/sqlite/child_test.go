package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
)

// The environment of a child process: what it does, on which file, and as which one of several.
const (
	envRole   = "SQLITE_TEST_ROLE"
	envPath   = "SQLITE_TEST_PATH"
	envNumber = "SQLITE_TEST_NUMBER"
	envFor    = "SQLITE_TEST_FOR"
)

// number returns a whole number from the environment.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// child returns a command that runs TestChild in a process of its own.
func child(tb testing.TB, role, path string, n int, lasts time.Duration) *exec.Cmd {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), os.Args[0], "-test.run=^TestChild$", "-test.count=1")
	cmd.Env = append(os.Environ(), envRole+"="+role, envPath+"="+path, envNumber+"="+strconv.Itoa(n), envFor+"="+lasts.String())
	cmd.Stderr = os.Stderr
	return cmd
}

// TestChild is what the processes started by other tests run.
func TestChild(t *testing.T) {
	role := os.Getenv(envRole)
	if role == "" {
		t.Skip("not run: it is the body of child processes")
	}
	cfg := sqlite.DefaultConfig()
	cfg.Path, cfg.Check = os.Getenv(envPath), sqlite.CheckNever
	lasts, err := time.ParseDuration(os.Getenv(envFor))
	if err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(lasts)
	s := open(t, cfg)
	switch role {
	case "ingest":
		ingest(t, s, number(envNumber, 0))
	case "writer":
		writeUntil(t, s, number(envNumber, 0), until)
	case "reader":
		readUntil(t, s, until)
	case "once":
		mustAppend(t, s, entry(ann, number(envNumber, 0)))
		say(t, "holds %d", len(all(t, s, ann.Scope())))
	case "follower":
		follow(t, s, until)
	default:
		t.Fatalf("role %q is unknown", role)
	}
}

// follow reads the changes while others write, and says of how many entries it was told once nothing came for a while.
func follow(t *testing.T, s *sqlite.Store, until time.Time) {
	t.Helper()
	q := core.ChangeQuery{Agent: "ann", Limit: 100}
	told := map[string]bool{}
	for quiet := 0; quiet < 100; {
		page, err := s.Changes(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Changes {
			if c.Entry == nil || told[c.ID] {
				t.Fatalf("nothing is deleted or told twice, but %+v is", c)
			}
			told[c.ID] = true
		}
		q.After = page.Mark
		if page.More {
			continue
		}
		time.Sleep(20 * time.Millisecond)
		if quiet++; len(page.Changes) > 0 || time.Now().Before(until) {
			quiet = 0
		}
	}
	say(t, "followed %d", len(told))
}

// say tells the parent, in one write that nothing buffers.
func say(t *testing.T, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(os.Stdout, format+"\n", args...); err != nil {
		t.Fatal(err)
	}
}

// ingest appends from entry n on and publishes views until the process is killed, and says what was acknowledged.
func ingest(t *testing.T, s *sqlite.Store, n int) {
	t.Helper()
	version := uint64(0)
	if v, err := s.LoadView(t.Context(), ann); err == nil {
		version = v.Version
	} else if !errors.Is(err, core.ErrNotFound) {
		t.Fatal(err)
	}
	scratch := core.SessionID{Agent: "ann", Session: "scratch"}
	for round := 0; ; round++ {
		size := 1 + round%4
		mustAppend(t, s, entries(ann, n, n+size)...)
		n += size
		say(t, "entries %d", n)
		if round%3 == 0 {
			version++
			if err := s.SwapView(t.Context(), viewOf(version)); err != nil {
				t.Fatal(err)
			}
			say(t, "view %d", version)
		}
		if round%20 == 10 {
			// Deleting truncates the log: another place to die in.
			mustAppend(t, s, entry(scratch, round))
			if err := s.PutVectors(t.Context(), "m/8", vectorsOf(entries(scratch, round, round+1), 8)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Delete(t.Context(), scratch.Scope(), []string{entry(scratch, round).ID}); err != nil {
				t.Fatal(err)
			}
		}
		if round%50 == 30 {
			if err := s.Scrub(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// viewOf is the view that a test publishes as this version.
func viewOf(version uint64) core.View {
	return core.View{
		Session: ann, Version: version, Next: int64(version) * 3,
		Summaries: []core.Summary{{ID: fmt.Sprint("s", version), Text: strings.Repeat(fmt.Sprint("summary ", version), 50)}},
	}
}

// shared is the session that both writers write, with the same keys.
var shared = core.SessionID{Agent: "ann", Session: "shared"}

func writeUntil(t *testing.T, s *sqlite.Store, self int, until time.Time) {
	t.Helper()
	own := core.SessionID{Agent: "ann", Session: fmt.Sprint("writer", self)}
	n, busy := 0, 0
	for time.Now().Before(until) {
		batch := []core.Entry{entry(own, n), entry(shared, n), entry(own, n+1)}
		// Each writer has ids of its own: it is the key that decides.
		batch[1].ID += fmt.Sprint("-by-", self)
		res, err := s.Append(t.Context(), batch)
		if errors.Is(err, core.ErrUnavailable) && strings.Contains(err.Error(), "is being written by another process") {
			busy++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if res.IDs[0] != batch[0].ID || res.IDs[2] != batch[2].ID {
			t.Fatalf("Append names %v", res.IDs)
		}
		n += 2
	}
	say(t, "wrote %d busy %d", n, busy)
}

func readUntil(t *testing.T, s *sqlite.Store, until time.Time) {
	t.Helper()
	last := map[core.SessionID]int{}
	for reads := 0; time.Now().Before(until); reads++ {
		for _, id := range []core.SessionID{{Agent: "ann", Session: "writer0"}, {Agent: "ann", Session: "writer1"}, shared} {
			q := core.ScanQuery{Scope: id.Scope(), FromSeq: int64(max(0, last[id]-20)), Limit: 200}
			page, err := s.Scan(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			// The writers' own sessions have no gaps, the shared one has every second position.
			for i, e := range page.Entries {
				at := int(q.FromSeq) + i
				if id == shared {
					at = int(q.FromSeq+1)/2*2 + i*2
				}
				want := entry(id, at)
				if id == shared {
					want.ID = e.ID
				}
				if diff := cmp.Diff(want, e); diff != "" {
					t.Fatalf("entry %d of %s (-want +got):\n%s", i, id, diff)
				}
			}
			if n := len(page.Entries); n > 0 {
				newest := int(page.Entries[n-1].Seq)
				if newest < last[id]-1 {
					t.Fatalf("the newest entry of %s was %d and is %d", id, last[id], newest)
				}
				last[id] = newest
			}
		}
	}
}
