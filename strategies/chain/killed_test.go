package chain_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/needs"
)

// TestKilledWhileCompacting kills a process that compacts, at 3 points of each row or as many as KILL_POINTS says, and then lets one end the work. Whatever
// the moment, at most the calls are paid for again that were under way, and nothing that was said is lost.
func TestKilledWhileCompacting(t *testing.T) {
	needs.NoRace(t) // the detector looks into each process alone
	t.Parallel()
	points, seed := number("KILL_POINTS", 3), int64(number("KILL_SEED", rand.Int()))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("KILL_SEED=%d", seed)
		}
	})
	n := number("KILL_MESSAGES", 600)
	for i, row := range []struct {
		tiers string
		force bool
	}{{"summary", true}, {"summary", false}, {"mask+summary+index", true}, {"mask+summary+index", false}} {
		t.Run(fmt.Sprintf("%s/force=%t", row.tiers, row.force), func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, n, serve(t, seed+int64(i)))
			h.tiers, h.force = row.tiers, row.force
			whole, covered := h.undisturbed(t)
			r := rand.New(rand.NewSource(seed + int64(i)))
			h.open(t)
			lost, kills := 0, 0
			for point := range points {
				// What is left of the work is shared by the points that are left.
				left := max(whole-h.paid, 1)
				answers, delay := 1+r.Intn(max(2*left/(points-point+1), 1)), time.Duration(r.Intn(6000))*time.Microsecond
				gone, ended := h.kill(t, answers, delay)
				if t.Failed() {
					t.Fatalf("at point %d of KILL_SEED=%d, killed %v after %d answers", point, seed, delay, answers)
				}
				if ended {
					break
				}
				lost += gone
				kills++
			}
			end := h.finish(t)
			if end.Left > 0 || end.Prompt > killedBudget || end.Compact.TokensAfter > killedBudget {
				t.Errorf("at the end: %d left, prompt of %d tokens, %d live (%q): want a session within %d", end.Left, end.Prompt, end.Compact.TokensAfter, end.Compact.Reason, killedBudget)
			}
			calls := h.model.calls()
			if calls.repaid > lost {
				t.Errorf("%d calls about messages that were asked about before; %d were lost in %d kills", calls.repaid, lost, kills)
			}
			// Parts that are published already take room in the window, so that more may have left it by the time the next process looks; what that one adds
			// may take another call to condense.
			due := kills + (whole*max(end.Covered, covered)+covered-1)/covered
			if calls.begun > due+lost {
				t.Errorf("%d calls in all, want at most the %d that an undisturbed run takes for %d entries, and the %d that %d kills lost", calls.begun, due, end.Covered, lost, kills)
			}
			t.Logf("%d calls undisturbed; %d in all, %d killed, %d lost, %d repaid", whole, calls.begun, kills, lost, calls.repaid)
		})
	}
}

// history is a backlog in a file, and what became of it.
type history struct {
	model *endpoint
	tiers string
	force bool
	// full is the file as it was filled, path the one that is compacted.
	full, path string
	want       []core.Entry
	// paid is the number of calls whose results are stored.
	paid int
}

// newHistory ingests n messages.
func newHistory(t *testing.T, n int, model *endpoint) *history {
	t.Helper()
	h := &history{model: model, full: filepath.Join(t.TempDir(), "full.db")}
	e := reopened(t, h.full, compactorOf(t, "summary", model.URL))
	msgs := backlog(n)
	for i := range msgs {
		for j := range msgs[i].Parts {
			if p := &msgs[i].Parts[j]; p.Kind != message.ToolCall {
				p.Text = fmt.Sprintf("mark-%05d %s", i, p.Text)
			}
		}
	}
	if _, err := e.IngestBatch(t.Context(), core.IngestBatchRequest{Session: killed, Messages: msgs}); err != nil {
		t.Fatal(err)
	}
	if err := e.Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.path = h.full
	h.want, _ = h.stored(t)
	return h
}

// open begins with the full file again.
func (h *history) open(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile(h.full)
	if err != nil {
		t.Fatal(err)
	}
	h.path = filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(h.path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	h.paid = 0
	h.model.reset()
}

// undisturbed returns the calls of a compaction that nobody kills, and how many entries it covers.
func (h *history) undisturbed(t *testing.T) (calls, covered int) {
	t.Helper()
	h.open(t)
	end := h.finish(t)
	c := h.model.calls()
	if c.begun < 12 || c.repaid > 0 {
		t.Fatalf("%d calls, %d of them in vain: too few to kill something in between", c.begun, c.repaid)
	}
	return c.begun, end.Covered
}

// finish lets a child do all that is due.
func (h *history) finish(t *testing.T) ending {
	t.Helper()
	var out bytes.Buffer
	cmd := child(t, h.tiers, h.force, h.path, h.model.URL)
	cmd.Stdout = &out
	before := h.model.calls().begun
	if err := cmd.Run(); err != nil {
		t.Fatalf("the last process: %v: %s", err, &out)
	}
	line, _, _ := strings.Cut(out.String(), "\n")
	var end ending
	if err := json.Unmarshal([]byte(line), &end); err != nil {
		t.Fatalf("the last process says %q: %v", &out, err)
	}
	if lost := h.examine(t, before); lost > 0 {
		t.Errorf("%d calls that nobody disturbed were for nothing", lost)
	}
	return end
}

// kill ends a child some time after so many answers. It returns how many of its calls were for nothing, and whether the child was done before.
func (h *history) kill(t *testing.T, answers int, delay time.Duration) (lost int, ended bool) {
	t.Helper()
	before := h.model.calls().begun
	stop := h.model.after(answers)
	cmd := child(t, h.tiers, h.force, h.path, h.model.URL)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("a process that nobody killed: %v", err)
		}
		return h.examine(t, before), true
	case <-stop:
	}
	time.Sleep(delay)
	// SIGKILL on the systems that have it. The child may just have ended.
	_ = cmd.Process.Kill()
	if err := <-done; err != nil && cmd.ProcessState.Exited() {
		t.Fatalf("a process that was not yet killed: %v", err)
	}
	return h.examine(t, before), cmd.ProcessState.Exited()
}

// examine compares what is stored with what was said, and returns how many of the calls begun since then left nothing behind.
func (h *history) examine(t *testing.T, before int) (lost int) {
	t.Helper()
	h.model.idle(t)
	got, summaries := h.stored(t)
	if diff := cmp.Diff(h.want, got); diff != "" {
		t.Errorf("what was ingested (-want +got):\n%s", diff)
	}
	paid := 0
	for _, s := range summaries {
		n, err := strconv.Atoi(s.Meta["calls"])
		if s.Meta["kind"] != "index" && err != nil {
			t.Errorf("a summary of kind %q does not say what it took: %v", s.Meta["kind"], err)
		}
		paid += n
	}
	calls := h.model.calls()
	lost = calls.begun - before - (paid - h.paid)
	if h.paid = paid; lost < 0 || lost > killedParallel {
		t.Errorf("%d calls were lost, want at most the %d that run at once", lost, killedParallel)
	}
	if calls.most > killedParallel {
		t.Errorf("%d calls at once, want at most %d", calls.most, killedParallel)
	}
	return lost
}

// stored returns the messages and the summaries of the session, and checks that its summaries stand for its beginning, one after the other.
func (h *history) stored(t *testing.T) (messages, summaries []core.Entry) {
	t.Helper()
	e := reopened(t, h.path, compactorOf(t, "summary", h.model.URL))
	d, err := e.Describe(t.Context(), engine.DescribeRequest{Session: killed})
	if err != nil {
		t.Fatal(err)
	}
	at := int64(0)
	for _, s := range d.Summaries {
		for _, sp := range s.Of {
			if sp.From < at {
				t.Errorf("summary %s stands for messages from %d on, behind one for those up to %d", s.ID, sp.From, at)
			}
			at = sp.To
		}
	}
	if err := e.Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	return entriesOf(t, h.path)
}
