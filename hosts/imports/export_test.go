package imports_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/hosts/imports"
)

// plain hides what a store can do on its own, except for views.
type plain struct {
	core.Store
	core.ViewStore
}

// nativeExport and nativeImport are those of the store itself, in whatever words it reports progress.
func nativeExport(t *testing.T, s *sqlite.Store, w io.Writer) error {
	t.Helper()
	return s.Export(t.Context(), w, nil)
}

func nativeImport(t *testing.T, s *sqlite.Store, r io.Reader) error {
	t.Helper()
	_, err := s.Import(t.Context(), r, nil)
	return err
}

// fill puts two agents into a store, with a view each, and entries that JSON cannot hold.
func fill(t *testing.T, s *sink) {
	t.Helper()
	importText(t, s, "one.jsonl", long(700), imports.Options{Agent: "ann"})
	importText(t, s, "two.jsonl", chatLines, imports.Options{Agent: "ann"})
	importText(t, s, "one.jsonl", chatLines, imports.Options{Agent: "bob"})
	odd := message.Message{Role: message.User, Parts: []message.Part{{Kind: message.Text, Text: "bad \xff\x00 text"}, {Kind: "new", Raw: []byte{}}}, Raw: []byte("\xfe"), ID: "\xfd", Key: "odd"}
	odd.Usage.Input = 3
	_, err := s.engine.IngestBatch(t.Context(), core.IngestBatchRequest{Session: core.SessionID{Agent: "bob", Session: "odd"}, Messages: []message.Message{odd}})
	if err != nil {
		t.Fatal(err)
	}
}

func export(t *testing.T, store core.Store, scope core.Scope) string {
	t.Helper()
	var b bytes.Buffer
	done, err := imports.Export(t.Context(), store, &b, scope, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := int64(strings.Count(b.String(), "\n")); n != done.Entries+done.Views+2 {
		t.Errorf("%d lines for %+v", n, done)
	}
	return b.String()
}

// timeless is an export without the time that it was made at, and the versions of views, which begin anew.
func timeless(text string) string {
	text = regexp.MustCompile(`("version":1,"time":)"[^"]*"`).ReplaceAllString(text, `$1""`)
	return regexp.MustCompile(`(?m)^(\{"view":\{"session":\{[^}]*\},"version":)\d+`).ReplaceAllString(text, "${1}0")
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func() core.Store{
		"memory": func() core.Store { return memorySink(t).store },
		"sqlite": func() core.Store { return sqliteStore(t) },
		"sqlite, walked": func() core.Store {
			s := sqliteStore(t)
			return &plain{s, s}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSink(t, open())
			fill(t, s)
			first := export(t, s.store, core.Scope{})
			other := newSink(t, open())
			if _, err := imports.Restore(t.Context(), other.store, strings.NewReader(first), nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(timeless(first), timeless(export(t, other.store, core.Scope{}))); diff != "" {
				t.Errorf("exported, imported and exported again (-first +second):\n%.1000s", diff)
			}
			for _, scope := range []core.Scope{{Agent: "ann"}, {Agent: "bob"}} {
				if diff := cmp.Diff(s.stored(t, scope.Agent, ""), other.stored(t, scope.Agent, "")); diff != "" {
					t.Errorf("entries of %s (-first +second):\n%.1000s", scope.Agent, diff)
				}
			}
			// The engine goes on where the other one was.
			if got, want := other.texts(t, "bob", "odd"), "u:bad \xff\x00 text"; got != want {
				t.Errorf("text that is not UTF-8: %q, want %q", got, want)
			}
		})
	}
}

// What one store exports every other one reads, text that JSON cannot hold included.
func TestBetweenStores(t *testing.T) {
	t.Parallel()
	store := sqliteStore(t)
	s := newSink(t, store)
	fill(t, s)
	var own bytes.Buffer
	if err := nativeExport(t, store, &own); err != nil {
		t.Fatal(err)
	}
	walked := export(t, &plain{store, store}, core.Scope{})
	for name, text := range map[string]string{"the store's own": own.String(), "walked": walked} {
		m := memorySink(t)
		done, err := imports.Restore(t.Context(), m.store, strings.NewReader(text), nil)
		if err != nil || done.Entries != 713 || done.Views != 4 {
			t.Fatalf("%s into memory: %+v, %v", name, done, err)
		}
		q := sqliteStore(t)
		if err := nativeImport(t, q, strings.NewReader(text)); err != nil {
			t.Fatalf("%s into sqlite: %v", name, err)
		}
		for _, agent := range []string{"ann", "bob"} {
			want := bySession(s.stored(t, agent, ""))
			for store, got := range map[string][]core.Entry{"memory": m.stored(t, agent, ""), "sqlite": (&sink{store: q}).stored(t, agent, "")} {
				if diff := cmp.Diff(want, bySession(got)); diff != "" {
					t.Errorf("%s, entries of %s in %s (-want +got):\n%.1000s", name, agent, store, diff)
				}
			}
		}
	}
}

// bySession sorts entries: the order across sessions is the store's.
func bySession(entries []core.Entry) []core.Entry {
	slices.SortStableFunc(entries, func(a, b core.Entry) int { return a.SessionID().Compare(b.SessionID()) })
	return entries
}

func TestExportOfAScope(t *testing.T) {
	t.Parallel()
	s := memorySink(t)
	fill(t, s)
	text := export(t, s.store, core.Scope{Agent: "ann", Session: "two"})
	if strings.Contains(text, `"bob"`) || strings.Count(text, `{"entry":`) != 6 || strings.Count(text, `{"view":`) != 1 {
		t.Errorf("one session of an agent:\n%.500s", text)
	}
	if n := strings.Count(export(t, s.store, core.Scope{Agent: "bob"}), `{"entry":`); n != 7 {
		t.Errorf("%d entries of an agent, want 7", n)
	}
	// Without views nobody knows the agents.
	if _, err := imports.Export(t.Context(), struct{ core.Store }{s.store}, &bytes.Buffer{}, core.Scope{}, nil); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "agent") {
		t.Errorf("a store without views: %v, want ErrInvalid naming the agent", err)
	}
	if _, err := imports.Export(t.Context(), s.store, &bytes.Buffer{}, core.Scope{Session: "two"}, nil); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("a session without agent: %v, want ErrInvalid", err)
	}
}

// counting is a store that says how much it has.
type counting struct {
	*memory.Store
	n int
}

func (c counting) Stats(context.Context) (upkeep.Stats, error) {
	return upkeep.Stats{Entries: c.n}, nil
}

func TestExportMissesNobody(t *testing.T) {
	t.Parallel()
	s := memorySink(t)
	fill(t, s)
	for n, ok := range map[int]bool{713: true, 714: false} {
		_, err := imports.Export(t.Context(), counting{s.store.(*memory.Store), n}, &bytes.Buffer{}, core.Scope{}, nil)
		if ok != (err == nil) {
			t.Errorf("the store says that it has %d of 713 entries: %v", n, err)
		}
	}
}

func TestRestoreOfFiles(t *testing.T) {
	t.Parallel()
	s := memorySink(t)
	fill(t, s)
	text := export(t, s.store, core.Scope{})
	file := filepath.Join(t.TempDir(), "e.jsonl.gz")
	var z bytes.Buffer
	for _, part := range []string{text, export(t, s.store, core.Scope{Agent: "bob"})} { // two exports behind each other
		w := gzip.NewWriter(&z)
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, z.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]core.Store{"memory": memorySink(t).store, "sqlite": sqliteStore(t)} {
		to := newSink(t, store)
		for _, tt := range []struct {
			o    imports.Options
			want string
		}{
			{imports.Options{DryRun: true}, "4 sessions, 720 messages: 713 imported, 7 known, 0 erased, 0 skipped"},
			{imports.Options{}, "4 sessions, 720 messages: 713 imported, 7 known, 0 erased, 0 skipped"},
			{imports.Options{}, "4 sessions, 720 messages: 0 imported, 720 known, 0 erased, 0 skipped"},
		} {
			r := importFile(t, to, file, tt.o)
			wantCounts(t, name, r, tt.want)
			if r.Format != imports.Lines || r.Views != 6 || r.First.IsZero() || r.Last.Before(r.First) {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
	if _, err := imports.File(t.Context(), file, memorySink(t), imports.Options{Agent: "x"}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("an agent for an export: %v, want ErrInvalid", err)
	}
}

// guarded is a decorator that counts what is appended, over a store that could import by itself.
type guarded struct {
	core.Store
	appended int
}

func (g *guarded) Unwrap() core.Store { return importing{g.Store} }

func (g *guarded) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	g.appended += len(entries)
	return g.Store.Append(ctx, entries)
}

type importing struct{ core.Store }

func (importing) Import(context.Context, io.Reader, func(upkeep.Transfer)) (upkeep.Transfer, error) {
	return upkeep.Transfer{Entries: -1}, nil
}

func TestRestoreThroughDecorators(t *testing.T) {
	t.Parallel()
	s := memorySink(t)
	importText(t, s, "c.jsonl", chatLines, imports.Options{})
	text := export(t, s.store, core.Scope{})
	g := &guarded{Store: memorySink(t).store}
	if done, err := imports.Restore(t.Context(), g, strings.NewReader(text), nil); err != nil || done.Entries != 6 || g.appended != 6 {
		t.Errorf("%+v, %v, %d passed the decorator, want 6", done, err, g.appended)
	}
	if done, err := imports.Restore(t.Context(), importing{}, strings.NewReader(text), nil); err != nil || done.Entries != -1 {
		t.Errorf("a store that imports by itself: %+v, %v", done, err)
	}
}

func TestRestoreMalformed(t *testing.T) {
	t.Parallel()
	s := memorySink(t)
	importText(t, s, "c.jsonl", chatLines, imports.Options{})
	lines := strings.SplitAfter(export(t, s.store, core.Scope{}), "\n")
	with := func(n int, text string) string {
		l := append([]string(nil), lines...)
		l[n-1] = text + "\n"
		return strings.Join(l, "")
	}
	for name, tt := range map[string]struct {
		text, want string
		kept       int
	}{
		"a line":   {with(3, `{"entry":{`), "line 3", 5},
		"a type":   {with(3, `{"entry":{"id":5}}`), "line 3", 5},
		"no key":   {with(3, `{"entry":{"id":"x","agent":"a","session":"s"}}`), "line 3", 5},
		"exact":    {with(3, `{"entry":{"id":"x"},"exact":"AAAA"}`), "line 3", 5},
		"no entry": {with(3, `{}`), "line 3", 5},
		"format":   {with(1, `{"header":{"format":"contextengine-export","version":9}}`), "version 9", 0},
		"cut off":  {strings.Join(lines[:5], ""), "cut off", 4},
		"numbers":  {strings.Join(append(append([]string(nil), lines[:4]...), lines[5:]...), ""), "the export says", 5},
	} {
		to := memorySink(t)
		_, err := imports.Data(t.Context(), "e.jsonl", []byte(tt.text), to, imports.Options{From: imports.Lines})
		if !errors.Is(err, core.ErrInvalid) || !errors.Is(err, imports.ErrMalformed) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "e.jsonl") {
			t.Errorf("%s: %v, want ErrInvalid naming file and %q", name, err, tt.want)
		}
		to = memorySink(t)
		r := importText(t, to, "e.jsonl", tt.text, imports.Options{From: imports.Lines, KeepGoing: true})
		if r.SkippedCount == 0 || len(to.stored(t, "main", "c")) != tt.kept {
			t.Errorf("%s, keeping going: %s, %d stored, want %d", name, counts(r), len(to.stored(t, "main", "c")), tt.kept)
		}
	}
}

func BenchmarkImport(b *testing.B) {
	text := long(10_000)
	for b.Loop() {
		s := memorySink(b)
		importText(b, s, "long.jsonl", text, imports.Options{})
	}
	b.ReportMetric(float64(b.N)*10_000/b.Elapsed().Seconds(), "messages/s")
}
