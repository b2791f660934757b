package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

var (
	ann = core.SessionID{Agent: "ann", Session: "one"}
	two = core.SessionID{Agent: "ann", Session: "two"}
)

// entry is an entry of a message with odd bytes.
func entry(id core.SessionID, n int) core.Entry {
	name := fmt.Sprintf("%s-%s-%d", id.Agent, id.Session, n)
	m := message.New(message.User, "text of "+name)
	m.Raw = []byte("raw\x00\xff " + name)
	m.Parts[0].Raw = []byte("part " + name)
	return core.Entry{
		ID: name, Agent: id.Agent, Session: id.Session, Seq: int64(n), Turn: int64(n / 2), Role: message.User, Type: core.TypeMessage,
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

func ids(es []core.Entry) []string {
	out := []string{}
	for _, e := range es {
		out = append(out, e.ID)
	}
	return out
}

// erased is the change that makes an entry a mere place.
func erased(id string) core.Change {
	m := message.Message{Role: message.User}
	return core.Change{
		Message: &m, Tokens: 1, Fingerprint: message.Fingerprint(m), Type: core.TypeErased, Key: "erased-" + id, Meta: map[string]string{},
	}
}

// kept is a store that survives Close: what a file is to a durable one.
type kept struct{ core.Store }

func (k kept) Close() error       { return nil }
func (k kept) Unwrap() core.Store { return k.Store }

// volatile is a configuration for tests that never open a second time: quick, and without a file.
func volatile(change ...func(*outbox.Config)) outbox.Config {
	cfg := outbox.DefaultConfig()
	cfg.Volatile = true
	cfg.MinBackoff, cfg.MaxBackoff = time.Millisecond, 20*time.Millisecond
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

// durable is a configuration with a journal.
func durable(tb testing.TB, change ...func(*outbox.Config)) outbox.Config {
	tb.Helper()
	return volatile(append([]func(*outbox.Config){func(c *outbox.Config) {
		c.Volatile, c.Path, c.Poll = false, filepath.Join(tb.TempDir(), "journal"), 5*time.Millisecond
	}}, change...)...)
}

func open(tb testing.TB, cfg outbox.Config, local, remote core.Store) *outbox.Store {
	tb.Helper()
	s, err := outbox.Open(tb.Context(), cfg, local, remote)
	if err != nil {
		tb.Fatalf("Open: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return s
}

func openFile(tb testing.TB, path string) *sqlite.Store {
	tb.Helper()
	cfg := sqlite.DefaultConfig()
	cfg.Path = path
	s, err := sqlite.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatalf("sqlite.Open: %v", err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// noSleep skips the client's own waits: the outbox has its own.
func noSleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

func openServer(tb testing.TB, server *openbraintest.Server) core.Store {
	tb.Helper()
	cfg := openbrain.DefaultConfig()
	cfg.BaseURL, cfg.APIKey = server.URL(), server.Key()
	s, err := openbrain.Open(tb.Context(), cfg, openbrain.WithSleep(noSleep))
	if err != nil {
		tb.Fatalf("openbrain.Open: %v", err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func mustAppend(tb testing.TB, s core.Store, es ...core.Entry) core.AppendResult {
	tb.Helper()
	res, err := s.Append(tb.Context(), es)
	if err != nil {
		tb.Fatalf("Append: %v", err)
	}
	return res
}

func mustDrain(tb testing.TB, s *outbox.Store) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Minute)
	defer cancel()
	if left, err := s.Drain(ctx); left != 0 || err != nil {
		tb.Fatalf("Drain = %d, %v, want 0 and no error", left, err)
	}
}

func status(tb testing.TB, s *outbox.Store) outbox.Status {
	tb.Helper()
	st, err := s.Status(tb.Context())
	if err != nil {
		tb.Fatalf("Status: %v", err)
	}
	return st
}

// all returns the entries of a scope.
func all(tb testing.TB, s core.Store, scope core.Scope) []core.Entry {
	tb.Helper()
	var out []core.Entry
	for e, err := range core.All(tb.Context(), s, scope, false) {
		if err != nil {
			tb.Fatalf("All: %v", err)
		}
		out = append(out, e)
	}
	return out
}

// holds compares what a store has of a session.
func holds(tb testing.TB, name string, s core.Store, id core.SessionID, want []core.Entry) {
	tb.Helper()
	if diff := cmp.Diff(want, all(tb, s, id.Scope())); diff != "" {
		tb.Errorf("entries of %s in the %s store (-want +got):\n%s", id, name, diff)
	}
}

// errDown is what a remote says that cannot be reached.
var errDown = fmt.Errorf("remote: connection refused: %w", core.ErrUnavailable)

// remote is a memory store with faults: fail, when not nil, is asked before each call and after it.
type remote struct {
	*memory.Store
	fail func(op string, ids []string, after bool) error
}

func newRemote() *remote { return &remote{Store: memory.New()} }

func (r *remote) around(op string, ids []string, call func() error) error {
	if r.fail != nil {
		if err := r.fail(op, ids, false); err != nil {
			return err
		}
	}
	if err := call(); err != nil {
		return err
	}
	if r.fail != nil {
		return r.fail(op, ids, true)
	}
	return nil
}

func (r *remote) Append(ctx context.Context, es []core.Entry) (res core.AppendResult, err error) {
	err = r.around("append", ids(es), func() (err error) { res, err = r.Store.Append(ctx, es); return err })
	return res, err
}

func (r *remote) Update(ctx context.Context, scope core.Scope, id string, change core.Change) error {
	return r.around("update", []string{id}, func() error { return r.Store.Update(ctx, scope, id, change) })
}

func (r *remote) Delete(ctx context.Context, scope core.Scope, ids []string) (n int, err error) {
	err = r.around("delete", ids, func() (err error) { n, err = r.Store.Delete(ctx, scope, ids); return err })
	return n, err
}

func (r *remote) Scan(ctx context.Context, q core.ScanQuery) (page core.Page, err error) {
	err = r.around("scan", nil, func() (err error) { page, err = r.Store.Scan(ctx, q); return err })
	return page, err
}

func (r *remote) Close() error { return nil }

// eventually waits for a condition that needs no time but turns of other goroutines.
func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for until := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			tb.Fatalf("after a minute it does not hold that %s", what)
		}
	}
}

func is(tb testing.TB, what string, err, want error) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Errorf("%s: error %v, want %v", what, err, want)
	}
}
