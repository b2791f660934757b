package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/retain"
	"github.com/contextengine/contextengine/internal/drawn"
)

func TestAppendIsIdempotentByKey(t *testing.T) {
	s := open(t, config(t))
	a, b := entry(ann, 0), entry(ann, 1)
	mustAppend(t, s, a)
	again, twin := a, b
	again.ID, twin.ID = "another-id", "twin"
	res := mustAppend(t, s, again, b, twin, a)
	if diff := cmp.Diff(core.AppendResult{IDs: []string{a.ID, b.ID, b.ID, a.ID}, Duplicates: 3}, res); diff != "" {
		t.Errorf("Append (-want +got):\n%s", diff)
	}
	other := a
	other.ID, other.Session = "in-two", "two"
	if res := mustAppend(t, s, other); res.Duplicates != 0 {
		t.Errorf("the same key in another session counted as a duplicate")
	}
}

func TestFailedAppendStoresNothing(t *testing.T) {
	stored, clash := entry(ann, 0), entry(ann, 1)
	clash.ID = stored.ID
	elsewhere, twin, empty := stored, entry(ann, 9), entry(ann, 2)
	elsewhere.Session, twin.Key, empty.Key = "two", "other", ""
	for name, tc := range map[string]struct {
		batch []core.Entry
		want  error
	}{
		"id with another key":      {[]core.Entry{entry(ann, 5), clash}, core.ErrConflict},
		"id in another session":    {[]core.Entry{entry(ann, 5), elsewhere}, core.ErrConflict},
		"id twice within a batch":  {[]core.Entry{entry(ann, 9), twin}, core.ErrConflict},
		"incomplete entry at last": {[]core.Entry{entry(ann, 5), empty}, core.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, config(t))
			mustAppend(t, s, stored)
			if _, err := s.Append(t.Context(), tc.batch); !errors.Is(err, tc.want) {
				t.Fatalf("Append = %v, want %v", err, tc.want)
			}
			if got := all(t, s, core.Scope{Agent: "ann"}); len(got) != 1 {
				t.Errorf("after the failed append the store holds %v, want the first entry alone", ids(got))
			}
		})
	}
}

func TestEntriesSurviveInFull(t *testing.T) {
	cfg := config(t)
	s := open(t, cfg)
	odd := entry(ann, 0)
	odd.Time = time.Date(2026, 2, 3, 4, 5, 6, 789_012_345, time.UTC)
	odd.Meta = map[string]string{"bytes\xff": "\x00", "": ""}
	odd.Fingerprint, odd.Key = "not hexadecimal", "key with \x00 and \xfe"
	odd.Message.Parts = append(odd.Message.Parts, message.Part{Kind: message.Text, Text: "bad \xc3\x28 utf-8", Raw: []byte{}})
	odd.Message.Time = time.Date(1, 2, 3, 4, 5, 6, 7, time.UTC)
	long := chat(t, ann, 1)
	edited := chat(t, ann, 2)
	edited.Message = edited.Message.WithParts([]message.Part{{Kind: message.Text, Text: strings.Repeat("long ", 1000)}})
	hosted := chat(t, ann, 3)
	hosted.Message.ID, hosted.Message.Time = "transcript-id", time.UnixMilli(5).UTC()
	zero := entry(ann, 4)
	zero.Time, zero.Meta, zero.Message = time.Time{}, nil, message.Message{Role: message.User}
	want := []core.Entry{odd, long, edited, hosted, zero}
	mustAppend(t, s, want...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, all(t, open(t, cfg), ann.Scope())); diff != "" {
		t.Errorf("entries after reopening (-want +got):\n%s", diff)
	}
}

func TestErasedContentLeavesTheFile(t *testing.T) {
	cfg := config(t)
	s := open(t, cfg)
	secret := func(n int) core.Entry {
		e := entry(ann, n)
		e.Message = message.New(message.User, strings.Repeat("the password is swordfish. ", 1+n%3*20))
		e.Meta = map[string]string{"note": "swordfish"}
		return e
	}
	var batch []core.Entry
	for n := range 200 {
		batch = append(batch, secret(n), entry(core.SessionID{Agent: "ann", Session: "kept"}, n))
	}
	mustAppend(t, s, batch...)
	redacted := message.New(message.User, "[redacted]")
	var gone []string
	for n := range 200 {
		if n%2 == 0 {
			gone = append(gone, secret(n).ID)
			continue
		}
		change := core.Change{Message: &redacted, Tokens: 1, Fingerprint: message.Fingerprint(redacted), Meta: map[string]string{}}
		if err := s.Update(t.Context(), ann.Scope(), secret(n).ID, change); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Delete(t.Context(), ann.Scope(), gone); err != nil || n != len(gone) {
		t.Fatalf("Delete = %d, %v, want %d", n, err, len(gone))
	}
	for _, name := range []string{cfg.Path, cfg.Path + "-wal"} {
		b, err := os.ReadFile(name)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if i := bytes.Index(b, []byte("swordfish")); i >= 0 {
			t.Errorf("%s still holds the erased text at byte %d", filepath.Base(name), i)
		}
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestClosedAndCancelled(t *testing.T) {
	s := open(t, config(t))
	mustAppend(t, s, entry(ann, 0))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	calls := map[string]func(ctx context.Context) error{
		"append": func(ctx context.Context) error { _, err := s.Append(ctx, entries(ann, 1, 2)); return err },
		"get":    func(ctx context.Context) error { _, err := s.Get(ctx, ann.Scope(), nil); return err },
		"scan": func(ctx context.Context) error {
			_, err := s.Scan(ctx, core.ScanQuery{Scope: ann.Scope(), Limit: 1})
			return err
		},
		"update": func(ctx context.Context) error { return s.Update(ctx, ann.Scope(), "x", core.Change{}) },
		"delete": func(ctx context.Context) error { _, err := s.Delete(ctx, ann.Scope(), nil); return err },
		"load":   func(ctx context.Context) error { _, err := s.LoadView(ctx, ann); return err },
		"swap":   func(ctx context.Context) error { return s.SwapView(ctx, viewOf(1)) },
		"drop":   func(ctx context.Context) error { return s.DeleteView(ctx, ann) },
		"ping":   s.Ping,
		"vacuum": s.Vacuum,
		"verify": s.Verify,
		"stats":  func(ctx context.Context) error { _, err := s.Stats(ctx); return err },
		"export": func(ctx context.Context) error { return s.Export(ctx, &bytes.Buffer{}, nil) },
		"retain": func(ctx context.Context) error { _, err := s.Retain(ctx, retain.Policy{MaxEntries: 1}); return err },
	}
	for name, call := range calls {
		if err := call(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a cancelled context = %v, want context.Canceled", name, err)
		}
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping = %v", err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatalf("Close = %v", err)
		}
	}
	for name, call := range calls {
		if err := call(t.Context()); !errors.Is(err, core.ErrClosed) {
			t.Errorf("%s after Close = %v, want ErrClosed", name, err)
		}
	}
	if _, err := os.Stat(s.Path() + "-wal"); !os.IsNotExist(err) {
		t.Errorf("Close left the write-ahead log: %v", err)
	}
}

// TestCloseAfterCancelledReads cuts reads off at any moment of them: when they have returned, Close is alone with the file.
func TestCloseAfterCancelledReads(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	r := drawn.Rand(t)
	for round := range 30 {
		s := open(t, cfg)
		mustAppend(t, s, entries(ann, 20*round, 20*(round+1))...)
		ctx, cancel := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				for ctx.Err() == nil {
					if _, err := s.Scan(ctx, core.ScanQuery{Scope: ann.Scope(), Limit: 1000}); err != nil && !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				}
			})
		}
		time.AfterFunc(time.Duration(r.IntN(3_000))*time.Microsecond, cancel)
		readers.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(s.Path() + "-wal"); !os.IsNotExist(err) {
			t.Fatalf("round %d: Close left the write-ahead log: %v", round, err)
		}
	}
}

// TestAppendAfterVacuumWasCancelled breaks off what closes the writer's connection, at any moment of it.
func TestAppendAfterVacuumWasCancelled(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	r := drawn.Rand(t)
	const rounds, each = 20, 100
	for round := range rounds {
		mustAppend(t, s, entries(ann, each*round, each*(round+1))...)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Duration(r.IntN(20_000))*time.Microsecond, cancel)
		if err := s.Vacuum(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
	}
	if got := all(t, s, ann.Scope()); len(got) != rounds*each {
		t.Errorf("%d entries, want %d", len(got), rounds*each)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Path() + "-wal"); !os.IsNotExist(err) {
		t.Errorf("Close left the write-ahead log: %v", err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*sqlite.Config){
		"path":        func(c *sqlite.Config) { c.Path = ":memory:" },
		"durability":  func(c *sqlite.Config) { c.Durability = "maybe" },
		"busyTimeout": func(c *sqlite.Config) { c.BusyTimeout = -1 },
		"cacheMiB":    func(c *sqlite.Config) { c.CacheMiB = 1 },
		"readers":     func(c *sqlite.Config) { c.Readers = 65 },
		"check":       func(c *sqlite.Config) { c.Check = "often" },
		"recover":     func(c *sqlite.Config) { c.Recover = "hope" },
	} {
		cfg := sqlite.DefaultConfig()
		change(&cfg)
		if err := cfg.Validate(); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("Validate with a bad %s = %v, want ErrInvalid naming it", name, err)
		}
	}
	if err := (sqlite.Config{}).Validate(); err != nil {
		t.Errorf("Validate of zero values = %v", err)
	}
}

func TestDefaultPath(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	s := open(t, sqlite.DefaultConfig())
	if want := filepath.Join(state, "contextengine", "store.db"); s.Path() != want {
		t.Errorf("Path = %q, want %q", s.Path(), want)
	}
	t.Setenv("XDG_STATE_HOME", "not/absolute")
	t.Setenv("HOME", state)
	if p, err := sqlite.DefaultPath(); err != nil || p != filepath.Join(state, ".local", "state", "contextengine", "store.db") {
		t.Errorf("DefaultPath = %q, %v, want it in the home folder", p, err)
	}
}

func TestPathWithOddCharacters(t *testing.T) {
	cfg := config(t)
	cfg.Path = filepath.Join(filepath.Dir(cfg.Path), "a b?c#d%41&mode=memory", "störe.db")
	s := open(t, cfg)
	mustAppend(t, s, entry(ann, 0))
	if _, err := os.Stat(cfg.Path); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := all(t, open(t, cfg), ann.Scope()); len(got) != 1 {
		t.Errorf("after reopening there are %d entries, want 1", len(got))
	}
}

func TestBusyWriterIsUnavailable(t *testing.T) {
	cfg := config(t)
	cfg.BusyTimeout = 30 * time.Millisecond
	s, other := open(t, cfg), open(t, cfg)
	mustAppend(t, s, entry(ann, 0))
	release := other.HoldWriteLock(t)
	_, err := s.Append(t.Context(), entries(ann, 1, 2))
	if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "is being written by another process") {
		t.Errorf("Append while another has the lock = %v, want ErrUnavailable", err)
	}
	if got := all(t, s, ann.Scope()); len(got) != 1 {
		t.Errorf("a reader sees %d entries while another writes, want 1", len(got))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.Append(ctx, entries(ann, 1, 2)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Append whose context ends while it waits = %v, want DeadlineExceeded", err)
	}
	release()
	mustAppend(t, s, entry(ann, 1))
}

// TestHomeInThePath: no shell looks at a configuration.
func TestHomeInThePath(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for path, want := range map[string]string{"~/a.db": "a.db", "$HOME/b.db": "b.db", "${HOME}/c/d.db": "c/d.db"} {
		cfg := config(t)
		cfg.Path = path
		if got := open(t, cfg).Path(); got != filepath.Join(home, want) {
			t.Errorf("the store of %q is at %q, want %q", path, got, filepath.Join(home, want))
		}
	}
}
