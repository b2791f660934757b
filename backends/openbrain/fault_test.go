package openbrain_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

// The table: whatever goes wrong with a request, once or for good, nothing is lost, nothing doubled, nothing told that must not be, and
// repeating the call mends everything.
func TestFaults(t *testing.T) {
	for i, row := range faults("") {
		t.Run(row.name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			for _, op := range operations {
				if row.skip > 0 && op.name != "append" {
					continue
				}
				for _, how := range []string{"once", "for good", "whatever is asked"} {
					testFault(t, i, op, how)
				}
			}
			settled(t, before)
		})
	}
}

// settled fails when goroutines are left.
func settled(t *testing.T, before int) {
	t.Helper()
	for range 2000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// short is the timeout where nothing is expected to succeed.
const short = 50 * time.Millisecond

// trial is one fault, one operation and one store.
type trial struct {
	t    *testing.T
	name string
	srv  *openbraintest.Server
	f    fault
	op   operation
	// asked is set when all requests fail.
	asked bool
	log   bytes.Buffer
	waits []time.Duration
	// met counts the requests that met the fault.
	met atomic.Int64
	// between is what happens before the next try.
	between func()
}

func testFault(t *testing.T, row int, op operation, how string) {
	t.Helper()
	srv := openbraintest.New(t)
	defer srv.Stop()
	x := &trial{t: t, name: op.name + ", " + how, srv: srv, f: faults(srv.Key())[row], op: op, asked: how == "whatever is asked"}
	srv.Insert(foreignText+" word1", "notes", map[string]any{"id": "n"})
	for _, e := range seeded() {
		mustAppend(t, x.open(0), e)
	}
	if how == "once" {
		x.once()
	} else {
		x.lasting()
	}
	x.over()
}

// open returns a store that logs everything and never waits. A timeout of 0 is the usual one; short ones are for faults that last.
func (x *trial) open(timeout time.Duration) *openbrain.Store {
	x.t.Helper()
	cfg := openbrain.DefaultConfig()
	cfg.BaseURL, cfg.APIKey = x.srv.URL(), x.srv.Key()
	if timeout > 0 {
		cfg.Timeout = timeout
	}
	if timeout == short {
		cfg.MaxRetries = 1
	}
	s, err := openbrain.Open(x.t.Context(), cfg, openbrain.WithClock(func() time.Time { return now }),
		openbrain.WithLogger(slog.New(slog.NewTextHandler(&x.log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		openbrain.WithSleep(func(ctx context.Context, d time.Duration) error {
			x.waits = append(x.waits, d)
			if x.between != nil {
				x.between()
			}
			return ctx.Err()
		}))
	if err != nil {
		x.t.Fatalf("Open: %v", err)
	}
	x.t.Cleanup(func() { _ = s.Close() })
	return s
}

// inject makes requests fail from now on, times of them.
func (x *trial) inject(times int) {
	if x.f.down {
		x.srv.Stop()
		return
	}
	f := openbraintest.Fault{Method: x.op.method, Path: x.op.path, Skip: x.f.skip, Times: times}
	f.Do = func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		x.met.Add(1)
		x.f.do(w, r, serve)
	}
	if x.asked {
		f.Method, f.Path = "", ""
	}
	x.srv.Inject(f)
}

func (x *trial) errorf(format string, args ...any) {
	x.t.Helper()
	x.t.Errorf(x.name+": "+format, args...)
}

// once lets one request fail.
func (x *trial) once() {
	x.t.Helper()
	timeout := time.Duration(0)
	if x.f.slow {
		timeout = 300 * time.Millisecond
	}
	s := x.open(timeout)
	defer func() { _ = s.Close() }()
	if _, err := s.Scan(x.t.Context(), core.ScanQuery{Scope: agentScope("main"), Limit: 10}); err != nil {
		x.t.Fatalf("%s: Scan before the fault: %v", x.name, err) // from now on the store knows where the entries are
	}
	if x.f.down || x.f.restart {
		restarts := 0
		x.between = func() {
			if restarts++; restarts == 1 {
				x.srv.Stop()
				x.srv.Start()
			}
		}
	}
	x.inject(1)
	err := x.op.call(x.t.Context(), s)
	x.between = nil
	switch {
	case x.f.passes && err != nil:
		x.errorf("error %v, want none: a retry helps", err)
	case len(x.waits) == 0 && x.met.Load() == 0:
		x.errorf("the fault was not met")
	case x.f.passes && x.f.wait > 0 && !slices.Equal(x.waits, []time.Duration{x.f.wait}):
		x.errorf("waited %v, want %v", x.waits, x.f.wait)
	case slices.ContainsFunc(x.waits, func(d time.Duration) bool { return d <= 0 || d > 30*time.Second }):
		x.errorf("waited %v, want more than nothing and at most maxWait", x.waits)
	case !x.f.passes:
		x.check(err)
	}
	if x.f.passes {
		x.holds(after(x.op.name))
		return
	}
	if err != nil {
		x.holds(seeded())
	}
	x.srv.Heal()
	if err := x.op.call(x.t.Context(), s); err != nil {
		x.errorf("repeated: %v", err)
	}
	x.holds(after(x.op.name))
}

// lasting lets all requests fail until the server is healed.
func (x *trial) lasting() {
	x.t.Helper()
	timeout := time.Duration(0)
	if x.f.slow {
		timeout = short
	}
	primed := x.open(0)
	defer func() { _ = primed.Close() }()
	s := primed
	if _, err := primed.Scan(x.t.Context(), core.ScanQuery{Scope: agentScope("main"), Limit: 10}); err != nil {
		x.t.Fatalf("%s: Scan before the fault: %v", x.name, err)
	}
	if timeout > 0 {
		s = x.open(timeout)
		defer func() { _ = s.Close() }()
	}
	x.inject(-1)
	err := x.op.call(x.t.Context(), s)
	if x.f.down {
		x.srv.Start()
	}
	if x.f.restart {
		x.srv.Stop()
		x.srv.Start()
	}
	x.srv.Heal()
	switch {
	case err == nil && (x.f.stored || x.without()):
	case err == nil:
		x.errorf("no error, want %v", x.f.want)
	default:
		x.check(err)
		if !x.f.stored {
			x.holds(seeded())
		}
	}
	if err := x.op.call(x.t.Context(), primed); err != nil {
		x.errorf("repeated: %v", err)
	}
	x.holds(after(x.op.name))
}

// without reports whether the operation has another way to its end.
func (x *trial) without() bool {
	lacking := x.f.gone || errors.Is(x.f.want, errors.ErrUnsupported)
	switch x.op.name {
	case "scan":
		return !x.asked && lacking // there is another list
	case "get":
		return !x.asked && (lacking || x.f.slow || errors.Is(x.f.want, core.ErrInvalid)) // there is the list
	}
	return false
}

// masked is what programs that clean logs take for a secret and its name.
var masked = regexp.MustCompile(`(?i)\b((?:api[_-]?key|token|secret|password)\s*[:=]\s*)\S+`)

// check looks at an error's kind and text.
func (x *trial) check(err error) {
	x.t.Helper()
	if err == nil {
		if x.without() || x.f.gone {
			return // an entry that is gone is erased
		}
		if errors.Is(x.f.want, core.ErrInvalid) && (x.op.name == "scan" || x.op.name == "search" || x.op.name == "get") {
			return // what is refused is asked for again: a smaller page, another way
		}
		if x.f.name == "409" && x.op.name == "append" {
			return // it is asked what the conflict is
		}
		x.errorf("no error, want %v", x.f.want)
		return
	}
	fits := errors.Is(err, x.f.want) || x.f.gone && errors.Is(err, core.ErrNotFound)
	if shown := masked.ReplaceAllString(err.Error(), "$1***"); shown != err.Error() {
		x.errorf("a program that cleans logs makes %q of it", shown)
	}
	if !fits || !strings.HasPrefix(err.Error(), "openbrain: "+x.op.name) || !strings.Contains(err.Error(), x.f.text) {
		x.errorf("error %q is not %v with %q", err, x.f.want, x.f.text)
	}
	for _, secret := range x.secrets() {
		if strings.Contains(err.Error(), secret) {
			x.errorf("error %q shows %q", err, secret)
		}
	}
}

func (x *trial) secrets() []string {
	return []string{x.srv.Key(), "nobody-may-quote", "word1", "127.0.0.1"}
}

// holds fails unless the entries are these, each once, for a reader of its own.
func (x *trial) holds(want []core.Entry) {
	x.t.Helper()
	got := all(x.t, x.open(0), agentScope("main"), false, core.MaxPage)
	if diff := cmp.Diff(want, got); diff != "" {
		x.errorf("entries (-want +got):\n%s", diff)
	}
}

// over checks what is left when all is done.
func (x *trial) over() {
	x.t.Helper()
	thoughts := len(after(x.op.name)) + 1 // the note of others
	if x.f.late != nil {
		thoughts += x.late()
	}
	if got := len(x.srv.Thoughts()); got > thoughts {
		x.errorf("server has %d thoughts, want %d: something was sent twice", got, thoughts)
	}
	for _, secret := range x.secrets() {
		if i := strings.Index(x.log.String(), secret); i >= 0 {
			x.errorf("the log shows %q: %.200s", secret, x.log.String()[max(0, i-100):])
		}
	}
}

// late lets requests arrive that were given up: they change nothing that can be seen, and erasing an entry erases what they left.
func (x *trial) late() int {
	x.t.Helper()
	n := x.f.late.Deliver()
	x.holds(after(x.op.name))
	if x.op.name != "append" {
		return 0
	}
	s := x.open(0)
	hits, err := s.Search(x.t.Context(), core.SearchQuery{Scope: agentScope("main"), Text: writtenText, Limit: 20})
	if want := len(after("append")); err != nil || len(hits) != want {
		x.errorf("Search = %d hits, %v; want %d: each entry once", len(hits), err, want)
	}
	if _, err := s.Delete(x.t.Context(), agentScope("main"), ids(fresh())); err != nil {
		x.errorf("Delete: %v", err)
	}
	x.holds(seeded())
	for _, th := range x.srv.Thoughts() {
		if strings.Contains(th.Content, writtenText) {
			x.errorf("a copy of an erased entry is left")
		}
	}
	return n
}
