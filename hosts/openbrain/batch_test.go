package openbrain_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// TestBatch: several thoughts are stored at once, all or none, and the same request again is answered with them.
func TestBatch(t *testing.T) {
	f := serve(t, nil, twoKeys)
	if h := f.want(t, 200, mainKey, "GET", "/v1/thoughts/recent?source=openclaw:main", "", nil).header; h.Get("OpenBrain-Batch") == "" {
		t.Error("a list does not say that there are batches")
	}
	batch := func(texts ...string) string {
		parts := make([]string, len(texts))
		for i, text := range texts {
			content, place, _ := strings.Cut(text, "@")
			parts[i] = fmt.Sprintf(`{"content":%q,"position":%q,"metadata":{"n":%d}}`, content, place, i)
		}
		return `{"source":"openclaw:main","thoughts":[` + strings.Join(parts, ",") + `]}`
	}
	post := func(status int, body string) (ids []string) {
		t.Helper()
		var answer struct {
			Thoughts []struct {
				ID        string    `json:"id"`
				CreatedAt time.Time `json:"created_at"`
			} `json:"thoughts"`
		}
		f.want(t, status, mainKey, "POST", "/v1/thoughts/batch", body, &answer)
		for _, one := range answer.Thoughts {
			if one.CreatedAt.IsZero() {
				t.Error("no created_at")
			}
			ids = append(ids, one.ID)
		}
		return ids
	}
	stored := func() string {
		t.Helper()
		var l list
		f.want(t, 200, mainKey, "GET", "/v1/thoughts?source=openclaw:main&order=asc", "", &l)
		return strings.Join(l.contents(), " ")
	}
	first := post(201, batch("a@1", "b@2"))
	again := post(200, batch("a@1", "b@2"))
	if len(first) != 2 || fmt.Sprint(first) != fmt.Sprint(again) {
		t.Errorf("ids %v, and %v the second time", first, again)
	}
	post(409, batch("c@3", "other@2", "d@4"))
	post(409, batch("e@5", "f@5"))
	if got := stored(); got != "a b" {
		t.Errorf("stored %q, want a b: a batch is stored whole or not at all", got)
	}
	if r := f.ask(t, mainKey, "POST", "/v1/thoughts", `{"source":"openclaw:main","content":"x"}`, "OpenBrain-Position", "2"); r.status != 409 {
		t.Errorf("another thought alone at a position of a batch: %d, want 409", r.status)
	}
	for name, body := range map[string]string{
		"none": `{"source":"openclaw:main","thoughts":[]}`, "no list": `{"source":"openclaw:main","thoughts":{}}`, "missing": `{"source":"openclaw:main"}`, "no content": `{"thoughts":[{"metadata":{}}]}`,
		"no key": `{"source":"openclaw:main","thoughts":[{"content":"x"}]}`, "no object": `{"thoughts":[1]}`, "position": `{"thoughts":[{"content":"x","position":7}]}`, "long": batch("x@" + strings.Repeat("y", 2000)),
	} {
		if r := f.ask(t, mainKey, "POST", "/v1/thoughts/batch", body); r.status != 422 {
			t.Errorf("%s: %d, want 422", name, r.status)
		}
	}
	f.want(t, 403, mainKey, "POST", "/v1/thoughts/batch", strings.Replace(batch("x@9"), "main", "other", 1), nil)
	if got := stored(); got != "a b" {
		t.Errorf("stored %q, want a b", got)
	}
}

// between is a client of a server through a proxy that shows each request to do first. What do returns true for is not passed on.
func between(t *testing.T, f *fixture, do func(w http.ResponseWriter, r *http.Request) (answered bool)) *client.Store {
	t.Helper()
	target, err := url.Parse(f.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !do(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(ts.Close)
	cfg := client.DefaultConfig()
	cfg.BaseURL, cfg.APIKey = ts.URL, mainKey
	s, err := client.Open(t.Context(), cfg, client.WithSleep(func(context.Context, time.Duration) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func entries(from, n int, who string) (out []core.Entry) {
	for i := from; i < from+n; i++ {
		m := message.New(message.User, fmt.Sprintf("%s %d", who, i))
		out = append(out, core.Entry{
			ID: fmt.Sprintf("%s-%d", who, i), Key: fmt.Sprintf("key-%d", i), Agent: "main", Session: "s", Seq: int64(i), Role: m.Role, Type: core.TypeMessage,
			Time: time.Unix(int64(i), 0).UTC(), Tokens: 5, Fingerprint: message.Fingerprint(m), Message: m,
		})
	}
	return out
}

func texts(t *testing.T, s core.Store) string {
	t.Helper()
	var out []string
	for e, err := range core.All(t.Context(), s, core.Scope{Agent: "main", Session: "s"}, false) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Text())
	}
	return strings.Join(out, ", ")
}

// TestAppendOfSeveralIsOneRequest: nobody can come between the entries of an append, and a process that dies leaves nothing of one behind. Where something on the way
// refuses the call, they are sent one by one.
func TestAppendOfSeveralIsOneRequest(t *testing.T) {
	for status, want := range map[int]string{0: "POST /v1/thoughts/batch", 404: "POST /v1/thoughts", 405: "POST /v1/thoughts", 413: "POST /v1/thoughts"} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			f := serve(t, nil, twoKeys)
			posts := map[string]int{}
			s := between(t, f, func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPost {
					return false
				}
				if status != 0 && strings.HasSuffix(r.URL.Path, "/batch") {
					w.WriteHeader(status)
					return true
				}
				posts[r.Method+" "+r.URL.Path]++
				return false
			})
			for from := 0; from < 9; from += 3 {
				if _, err := s.Append(t.Context(), entries(from, 3, "a")); err != nil {
					t.Fatal(err)
				}
			}
			n := 3
			if status != 0 {
				n = 9
			}
			if posts[want] != n || len(posts) != 1 {
				t.Errorf("requests %v, want %d of %s", posts, n, want)
			}
			if got := texts(t, connect(t, f.url, mainKey)); got != "a 0, a 1, a 2, a 3, a 4, a 5, a 6, a 7, a 8" {
				t.Errorf("stored %s", got)
			}
		})
	}
}

// TestTwoClientsSayOneTurn: two processes append the same two messages at once. Each has its own ids for them; one of the two has stored both.
func TestTwoClientsSayOneTurn(t *testing.T) {
	f := serve(t, nil, twoKeys)
	stores := make([]*client.Store, 4)
	for i := range stores {
		stores[i] = between(t, f, func(http.ResponseWriter, *http.Request) bool { return false })
	}
	for turn := range 20 {
		var wg sync.WaitGroup
		for i, s := range stores {
			wg.Go(func() {
				for {
					res, err := s.Append(t.Context(), entries(2*turn, 2, fmt.Sprint("process ", i)))
					if errors.Is(err, core.ErrConflict) {
						continue // what another one stored is seen now
					}
					if err != nil || len(res.IDs) != 2 || res.IDs[0][:9] != res.IDs[1][:9] {
						t.Errorf("Append = %v, %v; want the ids of one process", res, err)
					}
					return
				}
			})
		}
		wg.Wait()
	}
	n := 0
	for _, err := range core.All(t.Context(), connect(t, f.url, mainKey), core.Scope{Agent: "main"}, false) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 40 {
		t.Errorf("%d entries are stored, want 40", n)
	}
}

// TestLateDeletionSparesTheNext: the answer to a deletion is lost, and before it is sent again another client stores an entry at the position that became free: it stays.
func TestLateDeletionSparesTheNext(t *testing.T) {
	f := serve(t, nil, twoKeys)
	other := connect(t, f.url, mainKey)
	deletions := 0
	s := between(t, f, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete {
			return false
		}
		if deletions++; deletions > 1 {
			return false
		}
		f.want(t, 200, mainKey, "DELETE", r.URL.Path, "", nil)
		next := entries(1, 1, "next")
		next[0].Key = "another"
		if _, err := other.Append(t.Context(), next); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	if _, err := s.Append(t.Context(), entries(0, 2, "a")); err != nil {
		t.Fatal(err)
	}
	if got := texts(t, other); got != "a 0, a 1" {
		t.Fatalf("stored %s", got)
	}
	if n, err := s.Delete(t.Context(), core.Scope{Agent: "main", Session: "s"}, []string{"a-1"}); err != nil || n != 1 {
		t.Errorf("Delete = %d, %v; want 1", n, err)
	}
	if deletions != 2 {
		t.Fatalf("%d deletions were sent, want 2", deletions)
	}
	for _, reader := range []core.Store{s, other} {
		if got := texts(t, reader); got != "a 0, next 1" {
			t.Errorf("stored %s, want a 0, next 1", got)
		}
	}
	// A change, too, is of the entry that was there.
	err := s.Update(t.Context(), core.Scope{Agent: "main", Session: "s"}, "a-1", core.Change{Meta: map[string]string{"x": "y"}})
	if !errors.Is(err, core.ErrNotFound) {
		t.Errorf("Update of what is gone = %v, want ErrNotFound", err)
	}
}
