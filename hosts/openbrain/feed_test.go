package openbrain_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/hosts/openbrain"
	"github.com/contextengine/contextengine/internal/sharedtest"
)

// overFile starts a server over a file, whose store says what changed.
func overFile(t *testing.T, change func(*openbrain.Config)) *fixture {
	t.Helper()
	cfg := sqlite.DefaultConfig()
	cfg.Path = filepath.Join(t.TempDir(), "store.db")
	store, err := sqlite.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return serve(t, store, change)
}

// TestChanges: what happened to a source since a mark is told once, page by page: what is there as it is now, and what is gone.
func TestChanges(t *testing.T) {
	t.Parallel()
	f := overFile(t, func(cfg *openbrain.Config) {
		cfg.Keys = []openbrain.Key{key("all", adminKey, "*"), key("other", "other-secret-0123456789abcdef", "other")}
		cfg.MaxPage = 64 << 10
	})
	type page struct {
		Thoughts []struct{ ID, Content string }
		Gone     []string
		Mark     string
		More     bool
	}
	ask := func(query string) (p page) {
		t.Helper()
		r := f.ask(t, adminKey, http.MethodGet, "/v1/changes?"+query, "")
		if r.status != http.StatusOK {
			t.Fatalf("%s: %d %s", query, r.status, r.body)
		}
		if err := json.Unmarshal(r.body, &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := ask("source=notes"); p.Mark != "" || p.More || len(p.Thoughts)+len(p.Gone) > 0 {
		t.Errorf("a source that is not there: %+v", p)
	}
	ids := make([]string, 60)
	for i := range ids {
		r := f.ask(t, adminKey, http.MethodPost, "/v1/thoughts", fmt.Sprintf(`{"content":"%d %s","source":"notes"}`, i, strings.Repeat("x", 5000)))
		var made struct{ ID string }
		if err := json.Unmarshal(r.body, &made); err != nil || r.status != http.StatusCreated {
			t.Fatalf("%d %s", r.status, r.body)
		}
		ids[i] = made.ID
	}
	// follow reads to the end from a mark.
	follow := func(mark string) (there map[string]string, gone map[string]bool, end string, pages int) {
		t.Helper()
		there, gone = map[string]string{}, map[string]bool{}
		for more := true; more; pages++ {
			p := ask("source=notes&limit=40&since=" + mark)
			size := 0
			for _, th := range p.Thoughts {
				there[th.ID], size = th.Content, size+len(th.Content)
			}
			if size > 64<<10 {
				t.Errorf("a page has %d bytes", size)
			}
			for _, id := range p.Gone {
				gone[id] = true
			}
			mark, more = p.Mark, p.More
		}
		return there, gone, mark, pages
	}
	there, _, mark, pages := follow("")
	if len(there) != 60 || pages < 5 {
		t.Errorf("%d thoughts in %d pages, want 60 in more", len(there), pages)
	}
	if there, gone, again, _ := follow(mark); len(there)+len(gone) > 0 || again != mark {
		t.Errorf("nothing happened: %d, %d, mark %q after %q", len(there), len(gone), again, mark)
	}
	f.ask(t, adminKey, http.MethodPatch, "/v1/thoughts/"+ids[3], `{"content":"changed"}`)
	f.ask(t, adminKey, http.MethodDelete, "/v1/thoughts/"+ids[4], "")
	there, gone, _, _ := follow(mark)
	if len(there) != 1 || there[ids[3]] != "changed" || len(gone) != 1 || !gone[ids[4]] {
		t.Errorf("changed: %v, gone: %v", there, gone)
	}
	for query, want := range map[string]int{"": 422, "source=notes&limit=0": 422, "source=notes&since=nonsense": 410, "source=nobody&since=" + mark: 410} {
		if r := f.ask(t, adminKey, http.MethodGet, "/v1/changes?"+query, ""); r.status != want {
			t.Errorf("%q: %d, want %d", query, r.status, want)
		}
	}
	if r := f.ask(t, "other-secret-0123456789abcdef", http.MethodGet, "/v1/changes?source=notes", ""); r.status != http.StatusForbidden {
		t.Errorf("with another's key: %d", r.status)
	}
	if r := serve(t, nil, nil).ask(t, "", http.MethodGet, "/v1/changes?source=notes", ""); r.status != http.StatusNotFound {
		t.Errorf("over a store that tells no changes: %d", r.status)
	}
}

// TestNobodyListsTwice: a client of a server that says what changed reads all of a session again for what is new in it, also after others erased and compacted, and
// when its mark is not good any more it begins anew.
func TestNobodyListsTwice(t *testing.T) {
	t.Parallel()
	f := overFile(t, nil)
	id := core.SessionID{Agent: "ann", Session: "shared"}
	var lost atomic.Bool
	var sent atomic.Int64 // thoughts in answers
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("since") != "" && lost.CompareAndSwap(true, false) {
			w.WriteHeader(http.StatusGone)
			return
		}
		rec := httptest.NewRecorder()
		f.server.Handler().ServeHTTP(rec, r)
		maps.Copy(w.Header(), rec.Header())
		w.WriteHeader(rec.Code)
		sent.Add(int64(strings.Count(rec.Body.String(), `"created_at"`)))
		_, _ = w.Write(rec.Body.Bytes())
	}))
	t.Cleanup(proxy.Close)
	eng := func() *engine.Engine {
		e, err := sharedtest.Engine(connect(t, proxy.URL, "any"))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	here, there := eng(), eng()
	req := core.IngestBatchRequest{Session: id}
	for i := range 400 {
		req.Messages = append(req.Messages, message.New(message.User, sharedtest.Text("n", i)))
	}
	res, err := here.IngestBatch(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	forget := func(e *engine.Engine, entry string) {
		t.Helper()
		if _, err := e.Forget(t.Context(), engine.ForgetRequest{Scope: id.Scope(), Entries: []string{entry}}); err != nil {
			t.Fatal(err)
		}
	}
	shown := func(e *engine.Engine) string {
		t.Helper()
		res, err := e.Assemble(t.Context(), core.AssembleRequest{Session: id, Budget: sharedtest.Budget, PromptMode: core.PromptNone})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for i := range res.Messages {
			all = append(all, res.Messages[i].Text())
		}
		return strings.Join(all, "\n")
	}
	both := func() {
		for _, e := range []*engine.Engine{here, there} {
			shown(e)
		}
	}
	forget(here, res.IDs[399])
	forget(there, res.IDs[398])
	both()
	before := sent.Load()
	for i, e := range []*engine.Engine{here, there, here, there} {
		gone := 397 - i
		forget(e, res.IDs[gone])
		for _, e := range []*engine.Engine{here, there} {
			if text := shown(e); strings.Contains(text, fmt.Sprintf("n-%d.", gone)) || !strings.Contains(text, fmt.Sprintf("n-%d.", gone-1)) {
				t.Errorf("erasure %d: message %d is shown, or %d is not", i, gone, gone-1)
			}
		}
	}
	// A look at the newest 20 is what is read in any case; nothing is read that is as long as the session.
	if n := sent.Load() - before; n > 4*400 {
		t.Errorf("%d thoughts were sent for 4 erasures that two clients saw, of 400", n)
	}
	lost.Store(true)
	forget(here, res.IDs[100])
	both()
	if lost.Load() {
		t.Fatal("no mark was sent")
	}
	for entry, err := range core.All(t.Context(), connect(t, f.url, "any"), id.Scope(), false) {
		if err != nil {
			t.Fatal(err)
		}
		if erased := entry.Type == core.TypeErased; erased != (entry.ID == res.IDs[100] || entry.Seq >= 394) {
			t.Errorf("entry at %d: erased is %v", entry.Seq, erased)
		}
	}
	if text := shown(here); !strings.Contains(text, "n-393.") {
		t.Errorf("after the mark was lost: %q", text)
	}
}
