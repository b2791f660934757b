package imports_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/hosts/imports"
	"github.com/contextengine/contextengine/strategies/archive"
)

// sink is an engine over a store.
type sink struct {
	engine *engine.Engine
	store  core.Store
	// failAfter makes ingesting fail after so many batches; negative means never.
	failAfter int
}

func (s *sink) Target(context.Context, core.SessionID) (imports.Target, error) {
	return imports.Target{Ingester: s, Store: s.store}, nil
}

func (s *sink) IngestBatch(ctx context.Context, req core.IngestBatchRequest) (core.IngestResult, error) {
	if s.failAfter == 0 {
		return core.IngestResult{}, core.ErrUnavailable
	}
	s.failAfter--
	return s.engine.IngestBatch(ctx, req)
}

func newSink(tb testing.TB, store core.Store) *sink {
	tb.Helper()
	return &sink{engine: engineOver(tb, store, engine.DefaultConfig()), store: store, failAfter: -1}
}

func engineOver(tb testing.TB, store core.Store, cfg engine.Config) *engine.Engine {
	tb.Helper()
	compactor, err := archive.New(archive.DefaultConfig())
	if err != nil {
		tb.Fatal(err)
	}
	cfg.Failure = engine.FailStrict
	e, err := engine.New(engine.Parts{Store: store, Compactor: compactor, Counter: utf8.RuneCountInString}, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Dispose(context.Background()) })
	return e
}

func memorySink(tb testing.TB) *sink {
	tb.Helper()
	store, err := memory.Open(tb.Context(), memory.DefaultConfig())
	if err != nil {
		tb.Fatal(err)
	}
	return newSink(tb, store)
}

func sqliteStore(tb testing.TB) *sqlite.Store {
	tb.Helper()
	cfg := sqlite.DefaultConfig()
	cfg.Path = filepath.Join(tb.TempDir(), "store.db")
	s, err := sqlite.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// stored returns what a session has.
func (s *sink) stored(tb testing.TB, agent, session string) []core.Entry {
	tb.Helper()
	var out []core.Entry
	for e, err := range core.All(tb.Context(), s.store, core.Scope{Agent: agent, Session: session}, false) {
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// texts returns what the messages of a session say, a tool call as name and arguments.
func (s *sink) texts(tb testing.TB, agent, session string) string {
	tb.Helper()
	var out []string
	for _, e := range s.stored(tb, agent, session) {
		out = append(out, said(e.Message))
	}
	return strings.Join(out, "|")
}

func said(m message.Message) string {
	text := m.Text()
	for _, c := range m.Calls() {
		text += fmt.Sprintf("%s(%s)", c.Name, c.Args)
	}
	return string(m.Role[:1]) + ":" + text
}

func importFile(tb testing.TB, s imports.Sink, file string, o imports.Options) imports.Report {
	tb.Helper()
	r, err := imports.File(tb.Context(), file, s, o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func importText(tb testing.TB, s imports.Sink, name, text string, o imports.Options) imports.Report {
	tb.Helper()
	r, err := imports.Data(tb.Context(), name, []byte(text), s, o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// counts is the short form of a report.
func counts(r imports.Report) string {
	return fmt.Sprintf("%d sessions, %d messages: %d imported, %d known, %d erased, %d skipped", r.Sessions, r.Messages, r.Imported, r.Duplicates, r.Erased, r.SkippedCount)
}

func wantCounts(tb testing.TB, what string, r imports.Report, want string) {
	tb.Helper()
	if got := counts(r); got != want {
		tb.Errorf("%s: %s, want %s", what, got, want)
	}
}

func jsonText(tb testing.TB, v any) string {
	tb.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}
