package outbox_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// number returns a whole number from the environment.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// TestFaults: whatever is done and whatever the remote answers, it is what the local store is as soon as it is well again. OUTBOX_RUNS and
// OUTBOX_SEED choose how many runs and which.
func TestFaults(t *testing.T) {
	t.Parallel()
	seed := uint64(number("OUTBOX_SEED", rand.Int()))
	for run := range number("OUTBOX_RUNS", 12) {
		if !t.Run(strconv.Itoa(run), func(t *testing.T) { faultRun(t, rand.New(rand.NewPCG(seed, uint64(run)))) }) {
			t.Fatalf("run %d of OUTBOX_SEED=%d", run, seed)
		}
	}
}

// weather decides what a remote answers.
type weather struct {
	mu  sync.Mutex
	r   *rand.Rand
	bad int // percent
}

func (w *weather) set(bad int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bad = bad
}

func (w *weather) fail(op string, _ []string, _ bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.r.IntN(200) >= w.bad { // asked twice for each call
		return nil
	}
	kinds := []error{core.ErrUnavailable, core.ErrUnavailable, core.ErrAuth, core.ErrInvalid, fmt.Errorf("an odd one"), askedError{time.Millisecond}}
	return fmt.Errorf("remote: %s: %w", op, kinds[w.r.IntN(len(kinds))])
}

// faultWorld is one run.
type faultWorld struct {
	t    *testing.T
	r    *rand.Rand
	s    *outbox.Store
	open func() *outbox.Store
	next map[core.SessionID]int
	live map[core.SessionID][]core.Entry
	gone []core.Entry
	made int
}

func faultRun(t *testing.T, r *rand.Rand) {
	t.Helper()
	local, far := kept{memory.New()}, newRemote()
	w := &weather{r: rand.New(rand.NewPCG(r.Uint64(), 0))}
	far.fail = w.fail
	cfg := durable(t, func(c *outbox.Config) {
		c.BatchEntries, c.MaxAttempts, c.CloseTimeout = 1+r.IntN(6), 1+r.IntN(3), time.Duration(1+r.IntN(5))*time.Millisecond
		c.MaxBackoff = 3 * time.Millisecond
	})
	f := &faultWorld{t: t, r: r, next: map[core.SessionID]int{}, live: map[core.SessionID][]core.Entry{}}
	f.open = func() *outbox.Store { return open(t, cfg, local, far) }
	f.s = f.open()
	for range 60 {
		if r.IntN(8) == 0 {
			w.set([]int{0, 30, 60, 100, 200}[r.IntN(5)])
		}
		f.step()
	}
	w.set(0)
	for range 20 {
		if _, err := f.s.Retry(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left, _ := f.s.Drain(t.Context()); left == 0 {
			break
		}
	}
	for _, id := range []core.SessionID{ann, two} {
		here := all(t, f.s, id.Scope())
		if diff := cmp.Diff(f.live[id], here); diff != "" && len(here)+len(f.live[id]) > 0 {
			t.Errorf("session %s in the local store (-want +got):\n%s", id, diff)
		}
		holds(t, "remote", far.Store, id, here)
	}
	if st := status(t, f.s); st.Waiting != 0 || st.DeadLetters != 0 || st.WaitingBytes != 0 || st.Missing != 0 {
		t.Errorf("Status = %+v", st)
	}
}

// step does something, or closes and opens the store.
func (f *faultWorld) step() {
	f.t.Helper()
	id := []core.SessionID{ann, two}[f.r.IntN(2)]
	switch k := f.r.IntN(20); {
	case k == 0:
		if err := f.s.Close(); err != nil {
			f.t.Fatal(err)
		}
		f.s = f.open()
	case k < 10 || len(f.live[id]) == 0:
		f.append(id)
	case k < 12:
		f.again(id)
	case k < 16:
		f.update(id)
	default:
		f.delete(id)
	}
	if f.r.IntN(3) == 0 {
		time.Sleep(time.Duration(f.r.IntN(2000)) * time.Microsecond)
	}
}

func (f *faultWorld) append(id core.SessionID) {
	var batch []core.Entry
	for range 1 + f.r.IntN(4) {
		e := entry(id, f.next[id])
		f.next[id]++
		batch = append(batch, e)
		f.live[id] = append(f.live[id], e)
	}
	if other := f.revived(id); other != nil {
		batch = append(batch, *other)
	}
	mustAppend(f.t, f.s, batch...)
}

// revived is an entry that was deleted and comes back, in part with another content.
func (f *faultWorld) revived(id core.SessionID) *core.Entry {
	i := slices.IndexFunc(f.gone, func(e core.Entry) bool { return e.SessionID() == id })
	if i < 0 || f.r.IntN(2) == 0 {
		return nil
	}
	e := f.gone[i]
	f.gone = slices.Delete(f.gone, i, i+1)
	e.Meta = map[string]string{"life": strconv.Itoa(f.made)}
	f.made++
	at, _ := slices.BinarySearchFunc(f.live[id], e.Seq, func(o core.Entry, seq int64) int { return int(o.Seq - seq) })
	f.live[id] = slices.Insert(f.live[id], at, e)
	return &e
}

// again appends what is known, under its own ids or new ones.
func (f *faultWorld) again(id core.SessionID) {
	f.t.Helper()
	e := f.live[id][f.r.IntN(len(f.live[id]))]
	want := e.ID
	if f.r.IntN(2) == 0 {
		e.ID += "-again"
	}
	if res := mustAppend(f.t, f.s, e); res.IDs[0] != want || res.Duplicates != 1 {
		f.t.Fatalf("Append of a known key = %+v", res)
	}
}

func (f *faultWorld) update(id core.SessionID) {
	f.t.Helper()
	e := &f.live[id][f.r.IntN(len(f.live[id]))]
	f.made++
	var c core.Change
	switch f.r.IntN(4) {
	case 0:
		c = erased(fmt.Sprint(f.made))
	case 1:
		c.Meta = map[string]string{"made": strconv.Itoa(f.made)}
	case 2:
		// The keys of two entries change places by way of a third.
		c.Key = fmt.Sprint("key", f.made)
	default:
		m := message.New(message.User, fmt.Sprint("changed ", f.made))
		c.Message, c.Tokens, c.Fingerprint = &m, f.made, message.Fingerprint(m)
	}
	if err := f.s.Update(f.t.Context(), id.Scope(), e.ID, c); err != nil {
		f.t.Fatalf("Update: %v", err)
	}
	old := e.Key
	apply(e, c)
	if c.Key != "" && c.Type == "" && f.r.IntN(2) == 0 {
		o := &f.live[id][f.r.IntN(len(f.live[id]))]
		if err := f.s.Update(f.t.Context(), id.Scope(), o.ID, core.Change{Key: old}); err != nil {
			f.t.Fatalf("Update: %v", err)
		}
		o.Key = old
	}
}

func apply(e *core.Entry, c core.Change) {
	if c.Message != nil {
		e.Message, e.Tokens, e.Fingerprint = *c.Message, c.Tokens, c.Fingerprint
	}
	if c.Meta != nil {
		e.Meta = c.Meta
	}
	if c.Type != "" {
		e.Type = c.Type
	}
	if c.Key != "" {
		e.Key = c.Key
	}
}

func (f *faultWorld) delete(id core.SessionID) {
	f.t.Helper()
	i := f.r.IntN(len(f.live[id]))
	e := f.live[id][i]
	scope := id.Scope()
	if f.r.IntN(2) == 0 {
		scope.Session = ""
	}
	n, err := f.s.Delete(f.t.Context(), scope, []string{e.ID, "unknown"})
	if n != 1 || err != nil {
		f.t.Fatalf("Delete = %d, %v", n, err)
	}
	f.live[id] = slices.Delete(f.live[id], i, i+1)
	f.gone = append(f.gone, e)
}
