package openbrain_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/hosts/openbrain"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/internal/sharedtest"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// TestSeveralClientsOfOneSession: engines with a client of their own serve one session of a server at the same time. A position exists once, because the server
// keeps them.
func TestSeveralClientsOfOneSession(t *testing.T) {
	t.Parallel()
	store := memory.New()
	index, err := lexical.New(lexical.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := index.Attach(store); err != nil {
		t.Fatal(err)
	}
	cfg := openbrain.DefaultConfig()
	cfg.Keys = []openbrain.Key{key("test", adminKey, "*")}
	s, err := openbrain.New(cfg, store, index)
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(s.Handler())
	t.Cleanup(func() { ts.Close(); _ = s.Close() })
	id := core.SessionID{Agent: "ann", Session: "shared"}
	var log sharedtest.Log
	var workers []sharedtest.Worker
	for _, name := range []string{"a", "b", "c"} {
		workers = append(workers, sharedtest.Worker{Store: connect(t, ts.URL, adminKey), Session: id, Name: name, Messages: 25, Log: &log})
	}
	if err := sharedtest.Together(t.Context(), workers...); err != nil {
		t.Error(err)
	}
	last := connect(t, ts.URL, adminKey)
	sharedtest.Check(t, last, id, log.String())
}

// TestOtherClientsAreSeen: what one client ingested, erased, compacted and purged is seen by the engine of another one at its next call, for one request where
// nothing happened.
func TestOtherClientsAreSeen(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, nil)
	id := core.SessionID{Agent: "ann", Session: "shared"}
	eng := func() *engine.Engine {
		e, err := sharedtest.Engine(connect(t, f.url, "any"))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	here, there := eng(), eng()
	say := func(e *engine.Engine, texts ...string) []string {
		t.Helper()
		req := core.IngestBatchRequest{Session: id}
		for _, text := range texts {
			req.Messages = append(req.Messages, message.New(message.User, text+strings.Repeat(" word", 20)))
		}
		res, err := e.IngestBatch(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return res.IDs
	}
	shown := func(e *engine.Engine) string {
		t.Helper()
		res, err := e.Assemble(t.Context(), core.AssembleRequest{Session: id, Budget: sharedtest.Budget, PromptMode: core.PromptNone})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for i := range res.Messages {
			first, _, _ := strings.Cut(res.Messages[i].Text(), " word")
			out = append(out, first)
		}
		return strings.Join(out, ", ")
	}
	want := func(what, text string) {
		t.Helper()
		for name, e := range map[string]*engine.Engine{"there": there, "here": here} {
			if got := shown(e); got != text {
				t.Errorf("%s: %s shows %q, want %q", what, name, got, text)
			}
		}
	}
	forget := func(req engine.ForgetRequest) {
		t.Helper()
		req.Scope = id.Scope()
		if _, err := here.Forget(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	ids := say(here, "one", "two", "three")
	want("at first", "one, two, three")
	ids = append(ids, say(here, "four")...)
	want("ingested", "one, two, three, four")
	forget(engine.ForgetRequest{Entries: ids[1:2]})
	want("erased", "one, three, four")

	before := strings.Count(f.log.String(), "msg=request")
	shown(there)
	if n := strings.Count(f.log.String(), "msg=request") - before; n != 1 {
		t.Errorf("a call when nothing happened takes %d requests, want 1", n)
	}

	for i := range 6 {
		say(there, fmt.Sprint("more", i))
	}
	if res, err := there.Compact(t.Context(), core.CompactRequest{Session: id, Budget: sharedtest.Budget, Force: true}); err != nil || !res.Compacted {
		t.Fatalf("compact: %+v, %v", res, err)
	}
	if got := shown(there); !strings.Contains(got, "they talked") {
		t.Fatalf("compacted: %q", got)
	}
	forget(engine.ForgetRequest{Entries: ids[:1]})
	for _, e := range []*engine.Engine{there, here} {
		if got := shown(e); strings.Contains(got, "they talked") {
			t.Errorf("a summary of what was erased is shown: %q", got)
		}
	}
	forget(engine.ForgetRequest{Purge: true})
	want("purged", "")
	say(there, "anew")
	say(here, "and more")
	say(there, "and so on")
	want("anew", "anew, and more, and so on")
}

// TestWhatOthersStoredIsNotListed: clients that use one session by turns read what the other one stored from the newest thoughts, however many there are: nothing lists
// what is known.
func TestWhatOthersStoredIsNotListed(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, nil)
	id := core.SessionID{Agent: "ann", Session: "shared"}
	eng := func() *engine.Engine {
		e, err := sharedtest.Engine(connect(t, f.url, "any"))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	here, there := eng(), eng()
	said := 0
	say := func(e *engine.Engine, n int) (ids []string) {
		t.Helper()
		for range n {
			said++
			res, err := e.Ingest(t.Context(), core.IngestRequest{Session: id, Message: message.New(message.User, sharedtest.Text("n", said))})
			if err != nil {
				t.Fatal(err)
			}
			ids = res.IDs
		}
		return ids
	}
	shown := func(e *engine.Engine) string {
		t.Helper()
		res, err := e.Assemble(t.Context(), core.AssembleRequest{Session: id, Budget: sharedtest.Budget, PromptMode: core.PromptNone})
		if err != nil {
			t.Fatal(err)
		}
		return res.Messages[len(res.Messages)-1].Text()
	}
	say(here, 3)
	ids := say(there, 50)
	if _, err := here.Forget(t.Context(), engine.ForgetRequest{Scope: id.Scope(), Entries: ids}); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*engine.Engine{here, there} {
		say(e, 1)
		shown(e)
	}
	lists := func() int { return strings.Count(f.log.String(), "method=GET route=/v1/thoughts ") }
	before := lists()
	for _, n := range []int{1, 2, 21, 60} {
		for _, e := range []*engine.Engine{here, there} {
			if say(e, n); !strings.HasPrefix(shown(e), fmt.Sprintf("n-%d.", said)) {
				t.Errorf("shown after message %d: %q", said, shown(e))
			}
		}
	}
	if n := lists() - before; n != 0 {
		t.Errorf("%d listings to take 8 turns, want none", n)
	}
}

// The environment of a child process: where the server is.
const envURL = "SEVERAL_TEST_URL"

// TestSeveralProcessesOfOneSession: processes that are killed serve one session of a server over a file.
func TestSeveralProcessesOfOneSession(t *testing.T) {
	needs.NoRace(t) // the detector looks into each process alone
	id := core.SessionID{Agent: "ann", Session: "shared"}
	if sharedtest.Child(t, id, func(tb testing.TB) core.Store { tb.Helper(); return connect(tb, os.Getenv(envURL), "any") }) {
		return
	}
	for range sharedtest.Number("SEVERAL_RUNS", 1) {
		f := overFile(t, nil)
		log := sharedtest.Processes(t, envURL+"="+f.url)
		sharedtest.Check(t, connect(t, f.url, "any"), id, log)
	}
}

// TestPurgeTakesOneDeletion: a session is purged with one deletion, however long it is, and nothing of it is left.
func TestPurgeTakesOneDeletion(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, nil)
	id := core.SessionID{Agent: "ann", Session: "shared"}
	e, err := sharedtest.Engine(connect(t, f.url, "any"))
	if err != nil {
		t.Fatal(err)
	}
	req := core.IngestBatchRequest{Session: id}
	for i := range 12 {
		req.Messages = append(req.Messages, message.New(message.User, fmt.Sprint("message ", i)))
	}
	if _, err := e.IngestBatch(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	rec, err := e.Forget(t.Context(), engine.ForgetRequest{Scope: id.Scope(), Purge: true})
	if err != nil || rec.Entries != 12 || rec.Sessions != 1 {
		t.Errorf("receipt %+v, %v", rec, err)
	}
	log := f.log.String()
	if deletes, patches := strings.Count(log, "method=DELETE"), strings.Count(log, "method=PATCH"); deletes != 1 || patches != 0 {
		t.Errorf("%d deletions and %d changes, want 1 and 0", deletes, patches)
	}
	for entry, err := range core.All(t.Context(), connect(t, f.url, "any"), id.Scope(), false) {
		t.Errorf("left: %v, %v", entry.ID, err)
	}
}

// envPath tells a child process where the local file of its outbox is.
const envPath = "SEVERAL_TEST_PATH"

// TestSeveralProcessesOfOneOutbox: processes that are killed serve one session of one outbox in front of a server: what is delivered is what the local store holds.
func TestSeveralProcessesOfOneOutbox(t *testing.T) {
	needs.NoRace(t) // the detector looks into each process alone
	id := core.SessionID{Agent: "ann", Session: "shared"}
	open := func(tb testing.TB, path, url string) *outbox.Store {
		tb.Helper()
		cfg := sqlite.DefaultConfig()
		cfg.Path = path
		local, err := sqlite.Open(tb.Context(), cfg)
		if err != nil {
			tb.Fatal(err)
		}
		out := outbox.DefaultConfig()
		out.MinBackoff, out.MaxBackoff, out.Poll = time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
		s, err := outbox.Open(tb.Context(), out, local, connect(tb, url, "any"))
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = s.Close() })
		return s
	}
	if sharedtest.Child(t, id, func(tb testing.TB) core.Store { tb.Helper(); return open(tb, os.Getenv(envPath), os.Getenv(envURL)) }) {
		return
	}
	for range sharedtest.Number("SEVERAL_RUNS", 1) {
		f := overFile(t, nil)
		path := filepath.Join(t.TempDir(), "local.db")
		log := sharedtest.Processes(t, envURL+"="+f.url, envPath+"="+path)
		s := open(t, path, f.url)
		sharedtest.Check(t, s, id, log)
		if left, err := s.Drain(t.Context()); left > 0 || err != nil {
			t.Fatalf("%d changes are left: %v", left, err)
		}
		sharedtest.Same(t, s, connect(t, f.url, "any"), id)
	}
}
