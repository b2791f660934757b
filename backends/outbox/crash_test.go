package outbox_test

import (
	"bufio"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

// The environment of a child process: what it does, on which file, with which server, and from which entry on.
const (
	envRole   = "OUTBOX_TEST_ROLE"
	envPath   = "OUTBOX_TEST_PATH"
	envURL    = "OUTBOX_TEST_URL"
	envKey    = "OUTBOX_TEST_KEY"
	envAgent  = "OUTBOX_TEST_AGENT"
	envNumber = "OUTBOX_TEST_NUMBER"
)

// child returns a command that runs TestChild in a process of its own.
func child(tb testing.TB, role, path, agent string, server *openbraintest.Server, n int) *exec.Cmd {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), os.Args[0], "-test.run=^TestChild$", "-test.count=1")
	cmd.Env = append(os.Environ(), envRole+"="+role, envPath+"="+path, envURL+"="+server.URL(), envKey+"="+server.Key(),
		envAgent+"="+agent, envNumber+"="+strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	return cmd
}

// TestChild is what the processes started by other tests run.
func TestChild(t *testing.T) {
	role := os.Getenv(envRole)
	if role == "" {
		t.Skip("not run: it is the body of child processes")
	}
	s := openBoth(t, os.Getenv(envPath), os.Getenv(envURL), os.Getenv(envKey))
	id, n := core.SessionID{Agent: os.Getenv(envAgent), Session: "one"}, number(envNumber, 0)
	switch role {
	case "ingest":
		ingest(t, s, id, n)
	case "writer":
		for i := range 200 {
			mustAppend(t, s, entry(core.SessionID{Agent: id.Agent, Session: fmt.Sprint("writer", n)}, i))
		}
	default:
		t.Fatalf("role %q is unknown", role)
	}
}

// openBoth opens an outbox over a file and a server.
func openBoth(tb testing.TB, path, url, key string) *outbox.Store {
	tb.Helper()
	cfg := openbrain.DefaultConfig()
	cfg.BaseURL, cfg.APIKey, cfg.MaxRetries = url, key, 0
	far, err := openbrain.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatalf("openbrain.Open: %v", err)
	}
	out := outbox.DefaultConfig()
	out.MinBackoff, out.MaxBackoff, out.Poll, out.BatchEntries = time.Millisecond, 20*time.Millisecond, 20*time.Millisecond, 5
	s, err := outbox.Open(tb.Context(), out, openFile(tb, path), far)
	if err != nil {
		tb.Fatalf("Open: %v", err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// say tells the parent, in one write that nothing buffers.
func say(t *testing.T, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(os.Stdout, format+"\n", args...); err != nil {
		t.Fatal(err)
	}
}

// everySeventh is erased right after it was appended.
func everySeventh(n int) bool { return n%7 == 3 }

// ingest appends from entry n on and erases some until the process is killed, and says what was acknowledged.
func ingest(t *testing.T, s *outbox.Store, id core.SessionID, n int) {
	t.Helper()
	for round := 0; ; round++ {
		size := 1 + round%4
		batch := entries(id, n, n+size)
		mustAppend(t, s, batch...)
		n += size
		say(t, "entries %d", n)
		for i, e := range batch {
			if seq := n - size + i; everySeventh(seq) {
				if err := s.Update(t.Context(), id.Scope(), e.ID, erased(e.ID)); err != nil {
					t.Fatal(err)
				}
				say(t, "erased %d", seq)
			}
		}
	}
}

// TestKilledWhileDelivering kills a process that ingests and delivers, at 8 points or as many as CRASH_POINTS says, while its
// server is killed and started again. After each point, the next process delivers what is left: every entry that was acknowledged is on
// both sides, once, byte for byte, and every erased one is erased on both.
func TestKilledWhileDelivering(t *testing.T) {
	needs.NoRace(t) // the detector looks into each process alone
	t.Parallel()
	points, seed := number("CRASH_POINTS", 8), int64(number("CRASH_SEED", rand.Int()))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("CRASH_SEED=%d", seed)
		}
	})
	r := rand.New(rand.NewSource(seed))
	server := openbraintest.New(t)
	path, id, n := "", core.SessionID{Session: "one"}, 0
	for point := range points {
		// Longer histories make the later points slow and not harder.
		if path == "" || n > 150 {
			id.Agent, n = fmt.Sprint("agent", point), 0
			path = filepath.Join(t.TempDir(), "store.db")
		}
		// What a child leaves is most times taken up by the next one, and sometimes by a healthy outbox.
		acks, delay := 1+r.Intn(60), time.Duration(r.Intn(1500))*time.Microsecond
		if r.Intn(3) == 0 {
			delay += time.Duration(r.Intn(60)) * time.Millisecond // in the midst of a delivery
		}
		acknowledged, erasures := killAfter(t, server, child(t, "ingest", path, id.Agent, server, n), acks, delay, r.Int63())
		n = examineBoth(t, server, path, id, max(acknowledged, n), erasures)
		if t.Failed() {
			t.Fatalf("at point %d of CRASH_SEED=%d, killed %v after %d acknowledgements", point, seed, delay, acks)
		}
	}
}

// killAfter kills a child some time after it said acks lines, and its server now and then.
func killAfter(t *testing.T, server *openbraintest.Server, cmd *exec.Cmd, acks int, delay time.Duration, seed int64) (acknowledged int, erasures map[int]bool) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		r := rand.New(rand.NewSource(seed))
		for up := true; ; up = !up {
			select {
			case <-over:
				if !up {
					server.Start()
				}
				return
			case <-time.After(time.Duration(1+r.Intn(40)) * time.Millisecond):
			}
			if up {
				server.Stop()
			} else {
				server.Start()
			}
		}
	}()
	erasures = map[int]bool{}
	lines := bufio.NewScanner(out)
	for i := 0; lines.Scan(); i++ {
		if i == acks {
			time.Sleep(delay)
			// SIGKILL on the systems that have it.
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
		seq := 0
		if _, err := fmt.Sscanf(lines.Text(), "entries %d", &acknowledged); err == nil {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "erased %d", &seq); err != nil {
			t.Errorf("the child says %q", lines.Text())
		}
		erasures[seq] = true
	}
	err = cmd.Wait()
	close(over)
	<-done
	// What the child asked for last is done by now, or never: the document has no way to tell a request that comes late from a new one.
	server.Stop()
	server.Start()
	if err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("the child ended before it was killed: %v", err)
	}
	return acknowledged, erasures
}

// examineBoth opens everything without further ado, has it delivered, and returns how many entries there are.
func examineBoth(t *testing.T, server *openbraintest.Server, path string, id core.SessionID, acknowledged int, erasures map[int]bool) int {
	t.Helper()
	s := openBoth(t, path, server.URL(), server.Key())
	mustDrain(t, s)
	got := all(t, s, id.Scope())
	if len(got) < acknowledged {
		t.Errorf("%d entries were acknowledged, %d are there", acknowledged, len(got))
	}
	want := entries(id, 0, len(got))
	for i := range want {
		// An erasure may have come about that nobody was told of.
		if erasures[i] || everySeventh(i) && got[i].Type == core.TypeErased {
			apply(&want[i], erased(want[i].ID))
			want[i].Meta = nil
		}
		if len(got[i].Meta) == 0 {
			got[i].Meta = nil
		}
	}
	if diff := cmp.Diff(want, got); diff != "" && len(got) > 0 {
		t.Errorf("entries after the crash (-want +got):\n%s", diff)
	}
	far := all(t, openServer(t, server), id.Scope())
	for i := range far {
		if len(far[i].Meta) == 0 {
			far[i].Meta = nil
		}
	}
	if diff := cmp.Diff(got, far); diff != "" {
		t.Errorf("entries at the server (-local +server):\n%s", diff)
	}
	if st := status(t, s); st.DeadLetters != 0 {
		t.Errorf("Status = %+v", st)
	}
	thoughts := 0
	for _, th := range server.Thoughts() {
		if th.Source == "openclaw:"+id.Agent {
			thoughts++
		}
	}
	if thoughts != len(got) {
		t.Errorf("the server keeps %d thoughts for %d entries", thoughts, len(got))
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	return len(got)
}
