package conformance

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// patience is how long a part may take for one call; less once one has hung, so that the other checks go on. The longest call there is takes
	// seconds with the race detector, and several times that where other processes have the cores.
	patience  = time.Minute
	impatient = 2 * time.Second
)

// watch looks after the cases of one suite: a call of the part that does not return is a finding like any other.
type watch struct {
	limit atomic.Int64
	// beats counts the calls that began.
	beats atomic.Int64
	// tally counts for the report.
	tally *tally
	// late says that a call of this case came back too late, or not at all, and was not waited for.
	late atomic.Bool
	// hurried says that a call hung once.
	hurried atomic.Bool
	// slack is what a case that calculates between its calls may take longer.
	slack atomic.Int64
}

func newWatch(limit time.Duration) *watch {
	w := &watch{tally: newTally()}
	w.limit.Store(int64(limit))
	return w
}

// beat is told when a call begins.
func (w *watch) beat() {
	if w != nil {
		w.beats.Add(1)
	}
}

// patient lets what follows in this case take longer by d.
func (w *watch) patient(d time.Duration) {
	if w != nil {
		w.slack.Store(int64(d))
	}
}

// run runs one case. A panic becomes a text, and so does a call that does not return: hung is true then, and the case is left behind.
func (w *watch) run(tb testing.TB, f func() string) (text string, hung bool) {
	tb.Helper()
	w.slack.Store(0)
	done := make(chan string, 1)
	left, name := make(chan struct{}), make(chan string, 1)
	go func() {
		defer close(left)
		name <- self()
		done <- guard(f)
	}()
	tick := time.NewTicker(max(time.Duration(w.limit.Load())/8, time.Millisecond))
	defer tick.Stop()
	last, since := w.beats.Load(), time.Now()
	for {
		select {
		case text := <-done:
			return text, w.behind()
		case <-left:
			select {
			case text := <-done:
				return text, w.behind()
			default:
			}
			// The part's own set-up ended the test.
			if tb.Skipped() {
				tb.SkipNow()
			}
			tb.FailNow()
		case <-tick.C:
			if n := w.beats.Load(); n != last {
				last, since = n, time.Now()
			} else if limit := time.Duration(w.limit.Load()); time.Since(since) > limit+time.Duration(w.slack.Load()) {
				w.hurry()
				return fmt.Sprintf("a call has not returned after %s:\n%s", limit, waiting(<-name)), true
			}
		}
	}
}

// behind reports whether a call of this case was left behind. The suite has no patience with the part from then on.
func (w *watch) behind() bool {
	if !w.late.Swap(false) {
		return false
	}
	w.hurry()
	return true
}

func (w *watch) hurry() {
	w.hurried.Store(true)
	w.limit.Store(min(w.limit.Load(), int64(impatient)))
}

// self is what stacks call the goroutine that asks, as "goroutine 7".
func self() string {
	buf := make([]byte, 64)
	name, _, _ := strings.Cut(string(buf[:runtime.Stack(buf, false)]), " [")
	return name
}

// waiting shows where the call stands that does not return, of the goroutine so named. Other suites may run beside it.
func waiting(name string) string {
	buf := make([]byte, 16<<20)
	buf = buf[:runtime.Stack(buf, true)]
	for g := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.HasPrefix(g, name+" [") {
			lines := strings.Split(g, "\n")
			return strings.Join(lines[:min(len(lines), 17)], "\n")
		}
	}
	return ""
}

// watched runs the cases of one check: the first that hangs ends it, and its text is the finding's.
type watched struct {
	*watch
	hung string
}

func (w *watched) run(tb testing.TB, f func() string) string {
	tb.Helper()
	if w.hung != "" {
		return "" // no smaller case of this one is looked for
	}
	text, hung := w.watch.run(tb, f)
	if hung {
		w.hung = text
	}
	return text
}

// finish cleans up after a case, or gives up where that hangs too.
func (w *watched) finish(c *caseTB) {
	done := make(chan struct{})
	go func() { defer close(done); _ = guard(func() string { c.end(); return "" }) }()
	limit := time.Duration(w.limit.Load())
	if w.hung == "" {
		limit = max(limit, time.Minute)
	}
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// atOnce makes n calls at the same time and returns the first text in their order. A panic of one is its text.
func atOnce(n int, call func(i int) string) string {
	texts := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { texts[i] = guard(func() string { return call(i) }) })
	}
	wg.Wait()
	return cmp.Or(texts...)
}

// guard runs f and turns a panic of the implementation into a text.
func guard(f func() string) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprintf("panicked: %v\n%s", r, origin(debug.Stack()))
		}
	}()
	return f()
}

// origin is the part of a stack that says where the panic came from.
func origin(stack []byte) string {
	_, rest, found := strings.Cut(string(stack), "panic(")
	if !found {
		return ""
	}
	lines := strings.Split(rest, "\n")
	const shown = 7
	return strings.Join(lines[min(2, len(lines)):min(len(lines), shown)], "\n")
}

// calling is a context whose every use is a beat: suites hand it to each call.
func (w *watch) calling(ctx context.Context) context.Context {
	w.beat()
	return ctx
}
