package registry_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/registry"
)

func mustBuild(t *testing.T, r *registry.Registry, text string, opts registry.BuildOptions) *registry.Instance {
	t.Helper()
	i, err := r.Build(t.Context(), mustLoad(t, r, yaml(text)), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return i
}

func mustEngine(t *testing.T, i *registry.Instance, agent, session string) core.ContextEngine {
	t.Helper()
	e, _, err := i.Engine(t.Context(), agent, session)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func say(t *testing.T, e core.ContextEngine, agent, session, text string) {
	t.Helper()
	_, err := e.Ingest(t.Context(), core.IngestRequest{
		Session: core.SessionID{Agent: agent, Session: session}, Message: message.New(message.User, text),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSharing: one engine for each distinct configuration, one store for each distinct store, one index for each store.
func TestSharing(t *testing.T) {
	s := &shop{}
	r := newRegistry(t, s)
	i := mustBuild(t, r, `
agents:
  same: {recentMessages: 20, retriever: {type: hybrid, limit: 5}}
  other: {recentMessages: 5}
  disk: {store: disk}
  disk2: {store: {type: disk, path: x.db}, recentMessages: 5}
  old: {engine: legacy}
`, registry.BuildOptions{IDs: counterIDs(), Version: "7"})
	base := mustEngine(t, i, "any", "1")
	for _, c := range []struct {
		agent, session string
		same           bool
		stores         int
	}{
		{"any", "2", true, 1}, {"else", "1", true, 1}, {"same", "1", true, 1}, {"other", "1", false, 1},
		{"disk", "1", false, 2}, {"disk2", "1", false, 2}, {"old", "1", false, 2},
	} {
		e := mustEngine(t, i, c.agent, c.session)
		if (e == base) != c.same || len(s.stores) != c.stores || len(s.indexes) != c.stores {
			t.Errorf("%s: same engine %v, %d stores, %d indexes; want %v, %d, %d",
				c.agent, e == base, len(s.stores), len(s.indexes), c.same, c.stores, c.stores)
		}
	}
	if n := len(i.Engines()); n != 5 {
		t.Errorf("%d engines, want 5", n)
	}
	for n, x := range s.indexes {
		if x.attached != 1 {
			t.Errorf("index %d was attached %d times, want once", n, x.attached)
		}
	}
	want := core.Info{ID: "composed", Name: "composed context engine", Version: "7"}
	info := base.Info()
	if got := (core.Info{ID: info.ID, Name: info.Name, Version: info.Version}); !cmp.Equal(got, want) {
		t.Errorf("Info() = %+v, want %+v", got, want)
	}
	if got, want := info.Parts, (core.PartNames{Store: "memory", Retriever: "hybrid", Compactor: "archive"}); got != want {
		t.Errorf("parts are %+v, want %+v", got, want)
	}
	if got := mustEngine(t, i, "old", "1").Info().ID; got != "legacy" {
		t.Errorf("agent old has engine %q", got)
	}
}

// TestAnnouncements: what one engine appends reaches the shared index once, and the memory of every retriever on the same store once.
func TestAnnouncements(t *testing.T) {
	s := &shop{}
	i := mustBuild(t, newRegistry(t, s), "agents: {b: {recentMessages: 5}, c: {store: disk}}", registry.BuildOptions{})
	a, b, c := mustEngine(t, i, "a", "1"), mustEngine(t, i, "b", "1"), mustEngine(t, i, "c", "1")
	say(t, a, "a", "1", "from a")
	say(t, b, "b", "1", "from b")
	say(t, c, "c", "1", "from c")
	shared, apart := []string{"from a", "from b"}, []string{"from c"}
	for name, c := range map[string]struct{ got, want []string }{
		"index of the shared store": {s.indexes[0].seen, shared},
		"index of the other store":  {s.indexes[1].seen, apart},
		"retriever of a":            {s.recalls[0].seen, shared},
		"retriever of b":            {s.recalls[1].seen, shared},
		"retriever of c":            {s.recalls[2].seen, apart},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, ok := s.recalls[0].searcher.(core.Observer); ok {
		t.Error("a retriever can feed the shared index a second time")
	}
}

func TestArmsInOneInstance(t *testing.T) {
	s := &shop{}
	r := newRegistry(t, s)
	i := mustBuild(t, r, "arms: [{name: a}, {name: b, override: {recentMessages: 5}}, {name: c, agents: [x], override: {recentMessages: 20}}]", registry.BuildOptions{})
	engines := map[string]core.ContextEngine{}
	for n := range 200 {
		session := fmt.Sprint(n)
		e, info, err := i.Engine(t.Context(), "x", session)
		if err != nil {
			t.Fatal(err)
		}
		if _, want, _ := r.Resolve(i.Config(), "x", session); want != info {
			t.Fatalf("Engine says %+v, Resolve %+v", info, want)
		}
		if old := engines[info.Name]; old != nil && old != e {
			t.Fatalf("arm %q has two engines", info.Name)
		}
		engines[info.Name] = e
	}
	if len(engines) != 3 || engines["a"] == engines["b"] || engines["a"] != engines["c"] || len(s.stores) != 1 {
		t.Errorf("%d arms, %d stores; a and b differ: %v, a and c are the same: %v",
			len(engines), len(s.stores), engines["a"] != engines["b"], engines["a"] == engines["c"])
	}
}

func TestConcurrentEngines(t *testing.T) {
	s := &shop{}
	i := mustBuild(t, newRegistry(t, s), "agents: {b: {recentMessages: 5}}", registry.BuildOptions{})
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			agent := []string{"a", "b"}[n%2]
			e, _, err := i.Engine(t.Context(), agent, fmt.Sprint(n))
			if err != nil {
				t.Error(err)
				return
			}
			_, err = e.Ingest(t.Context(), core.IngestRequest{
				Session: core.SessionID{Agent: agent, Session: fmt.Sprint(n)}, Message: message.New(message.User, "hello"),
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(s.stores) != 1 || len(i.Engines()) != 2 {
		t.Errorf("%d stores, %d engines, want 1 and 2", len(s.stores), len(i.Engines()))
	}
}

func TestBuildErrors(t *testing.T) {
	s := &shop{}
	r := newRegistry(t, s)
	cfg := registry.DefaultConfig()
	cfg.Store = registry.Choice{Type: "disk", Options: map[string]any{"pth": "x"}}
	_, err := r.Build(t.Context(), cfg, registry.BuildOptions{})
	const want = `registry: build: store.pth: unknown key "pth", did you mean "path"? (known: path, type): invalid`
	if err == nil || err.Error() != want {
		t.Errorf("Build: %v, want %s", err, want)
	}
	for _, c := range []struct {
		text, want string
	}{
		{"compactor: summary", `registry: engine for "a": open engine "composed": open compactor "summary": summary: needs a model`},
		{"searchers: {}", `registry: engine for "a": open engine "composed": open retriever "hybrid": registry: searcher: ` +
			`the store has no search of its own and no searcher is configured: set searchers (known: lexical): invalid`},
		{"embedder: openai", `registry: engine for "a": open engine "composed": embedder: "openai" makes no vectors, choose another (known: openai): invalid`},
	} {
		i := mustBuild(t, r, c.text, registry.BuildOptions{})
		if _, _, err := i.Engine(t.Context(), "a", "s"); err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
	mustEngine(t, mustBuild(t, r, "{compactor: summary, model: openai}", registry.BuildOptions{}), "a", "s")
	mustEngine(t, mustBuild(t, r, "compactor: summary", registry.BuildOptions{Host: modelHost{}}), "a", "s")
}

// modelHost is a host with a model.
type modelHost struct{ core.NoHost }

func (modelHost) Capabilities() []capability.Name { return []capability.Name{capability.Complete} }

// TestFailureIsTriedAgain: an engine that could not be made is made on the next call.
func TestFailureIsTriedAgain(t *testing.T) {
	s := &shop{fail: fmt.Errorf("no disk: %w", core.ErrUnavailable)}
	i := mustBuild(t, newRegistry(t, s), "{}", registry.BuildOptions{})
	if _, _, err := i.Engine(t.Context(), "a", "s"); !errors.Is(err, core.ErrUnavailable) {
		t.Fatalf("Engine: %v, want ErrUnavailable", err)
	}
	s.fail = nil
	mustEngine(t, i, "a", "s")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newRegistry(t, s).Build(ctx, registry.DefaultConfig(), registry.BuildOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Build with a cancelled context: %v", err)
	}
}

func TestClose(t *testing.T) {
	s := &shop{}
	r := newRegistry(t, s)
	i := mustBuild(t, r, "agents: {b: {store: disk}}", registry.BuildOptions{})
	mustEngine(t, i, "a", "s")
	mustEngine(t, i, "b", "s")
	for range 2 {
		if err := i.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for n, st := range s.stores {
		if st.closed != 1 {
			t.Errorf("store %d was closed %d times", n, st.closed)
		}
	}
	if _, _, err := i.Engine(t.Context(), "a", "s"); !errors.Is(err, core.ErrClosed) {
		t.Errorf("Engine after Close: %v", err)
	}
}

func TestCombinations(t *testing.T) {
	s := &shop{}
	r := newRegistry(t, s)
	var names []string
	for _, c := range r.Combinations() {
		names = append(names, c.Name())
		e, err := c.New(t.Context(), core.NoHost{}, counterIDs())
		if err != nil {
			t.Fatalf("%s: %v", c.Name(), err)
		}
		say(t, e, "a", "s", "hello")
		if err := e.Dispose(t.Context()); err != nil {
			t.Errorf("%s: %v", c.Name(), err)
		}
	}
	want := []string{"hybrid+archive+disk/one", "hybrid+archive+disk/two", "hybrid+archive+memory"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("Combinations() (-want +got):\n%s", diff)
	}
	var paths []string
	for _, st := range s.stores {
		paths = append(paths, st.path)
		if st.closed != 1 {
			t.Errorf("store %q was closed %d times, want once", st.path, st.closed)
		}
	}
	if diff := cmp.Diff([]string{"1", "2", ""}, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}
