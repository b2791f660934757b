package openbrain_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/hosts/openbrain"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// standing is an answer whose client takes nothing: a write fails when its time is over.
type standing struct {
	*httptest.ResponseRecorder
	mu       sync.Mutex
	deadline time.Time
	moved    chan struct{}
	wrote    bool
}

func (s *standing) SetWriteDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = at
	close(s.moved)
	s.moved = make(chan struct{})
	return nil
}

func (s *standing) Write([]byte) (int, error) {
	for {
		s.mu.Lock()
		s.wrote = true
		left, moved := time.Hour, s.moved
		if !s.deadline.IsZero() {
			left = time.Until(s.deadline)
		}
		s.mu.Unlock()
		if left <= 0 {
			return 0, os.ErrDeadlineExceeded
		}
		timer := time.NewTimer(left)
		select {
		case <-moved:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// fresh is a store whose entries are copies, as those of a store on a disk.
type fresh struct{ core.Store }

// Unwrap lets the server find what else the store can.
func (f fresh) Unwrap() core.Store { return f.Store }

func copies(entries []core.Entry) []core.Entry {
	for i := range entries {
		entries[i].Message = message.New(entries[i].Role, strings.Clone(entries[i].Text()))
	}
	return entries
}

func (f fresh) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	page, err := f.Store.Scan(ctx, q)
	page.Entries = copies(page.Entries)
	return page, err
}

func (f fresh) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	got, err := f.Store.Get(ctx, scope, ids)
	return copies(got), err
}

// Changes tells all entries as new ones.
func (f fresh) Changes(ctx context.Context, q core.ChangeQuery) (core.ChangePage, error) {
	page, err := f.Scan(ctx, core.ScanQuery{Scope: core.Scope{Agent: q.Agent, Session: openbrain.Session}, Cursor: core.Cursor(q.After), Limit: q.Limit})
	out := core.ChangePage{Mark: core.Mark(page.Next), More: page.Next != ""}
	for i := range page.Entries {
		out.Changes = append(out.Changes, core.EntryChange{ID: page.Entries[i].ID, Entry: &page.Entries[i]})
	}
	return out, err
}

// slow is a server in a bubble, without a network.
type slow struct {
	*testing.T
	http.Handler
	log  *syncBuffer
	wait sync.WaitGroup
}

func slowServer(t *testing.T, change func(*openbrain.Config)) *slow {
	t.Helper()
	store := fresh{memory.New()}
	index, err := lexical.New(lexical.DefaultConfig())
	if err == nil {
		err = index.Attach(store)
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg := openbrain.DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	f := &slow{T: t, log: &syncBuffer{}}
	server, err := openbrain.New(cfg, store, index, openbrain.WithLogger(slog.New(slog.NewTextHandler(f.log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	f.Handler = server.Handler()
	return f
}

func (f *slow) request(secret, method, path, body string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+secret)
	return r
}

func (f *slow) ask(secret, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	f.ServeHTTP(w, f.request(secret, method, path, body))
	return w
}

func (f *slow) store(source string, count, size int) {
	f.Helper()
	for i := range count {
		body := fmt.Sprintf(`{"content":%q,"source":%q}`, fmt.Sprint(i, strings.Repeat(" x", size/2)), source)
		if w := f.ask(adminKey, "POST", "/v1/thoughts", body); w.Code != http.StatusCreated {
			f.Fatalf("stored: %d %s", w.Code, w.Body)
		}
	}
}

// stand asks for an answer that is not taken, and reports whether one had begun before it was given up.
func (f *slow) stand(secret, path string) (end func() bool) {
	w := &standing{ResponseRecorder: httptest.NewRecorder(), moved: make(chan struct{})}
	ctx, cancel := context.WithCancel(f.Context())
	f.wait.Go(func() {
		defer func() { _ = recover() }() // how net/http is told to end the connection
		f.ServeHTTP(w, f.request(secret, "GET", path, "").WithContext(ctx))
	})
	return func() bool {
		cancel()
		_ = w.SetWriteDeadline(time.Now())
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.wrote
	}
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestSlowReadersHoldLittle: what is held for a client that does not take its answer is about one read of the store, or one thought, whatever the answer.
func TestSlowReadersHoldLittle(t *testing.T) {
	const readers, size = 10, 2 << 20
	for name, c := range map[string]struct {
		path    string
		sources int
	}{
		"list":     {"/v1/thoughts?source=s0&limit=1000", 1},
		"recent":   {"/v1/thoughts/recent?source=s0&limit=1000", 1},
		"changes":  {"/v1/changes?source=s0&limit=1000", 1},
		"small":    {"/v1/thoughts?source=small&limit=1000&order=asc", 1},
		"all":      {"/v1/thoughts?limit=1000", 8},
		"metadata": {"/v1/thoughts?metadata_id=none&limit=1000", 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := slowServer(t, nil)
				if name == "small" { // large ones behind them are not foreseen
					f.store("small", 1000, 100)
					f.store("small", 16, size)
				}
				for i := range c.sources {
					f.store(fmt.Sprint("s", i), 16/c.sources, size)
				}
				before := heap()
				var ends []func() bool
				for range readers {
					ends = append(ends, f.stand(adminKey, c.path))
				}
				synctest.Wait()
				if each := (heap() - before) / readers; each > size+size/2 {
					t.Errorf("%d bytes are held for each client, of thoughts of %d", each, size)
				}
				for _, end := range ends {
					if !end() && name != "metadata" {
						t.Error("an answer had not begun")
					}
				}
				f.wait.Wait()
			})
		})
	}
}

// TestStandingReaderLosesItsConnection: a client that takes nothing is cut off after a while, and the log says why.
func TestStandingReaderLosesItsConnection(t *testing.T) {
	for _, path := range []string{"/v1/thoughts?limit=1000", "/v1/changes?source=a", "/v1/stats"} {
		synctest.Test(t, func(t *testing.T) {
			f := slowServer(t, nil)
			f.store("a", 8, 200<<10)
			began := time.Now()
			f.stand(adminKey, path)
			f.wait.Wait()
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("%s: cut off after %v", path, took)
			}
			if !strings.Contains(f.log.String(), "took nothing for 10s") {
				t.Errorf("%s: the log does not say why: %s", path, f.log.String())
			}
		})
	}
}

// TestAnswersMakeRoom: clients that take nothing do not keep others out when all answers hold as much as they may: another key at no time, the same one as soon as
// they stand still. Until then it is told when to come back.
func TestAnswersMakeRoom(t *testing.T) {
	const size = 1 << 20
	for name, secret := range map[string]string{"another key": adminKey, "the same key": mainKey} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := slowServer(t, func(c *openbrain.Config) { twoKeys(c); c.MaxBody = 2 << 20 })
				f.store("openclaw:main", 4, size)
				before := heap()
				for range 100 {
					f.stand(mainKey, "/v1/thoughts?source=openclaw:main")
				}
				synctest.Wait()
				if held := heap() - before; held > 100<<20 {
					t.Errorf("%d bytes are held by all", held)
				}
				w := f.ask(secret, "GET", "/v1/thoughts?source=openclaw:main", "")
				if secret == mainKey {
					if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
						t.Errorf("answered %d, Retry-After %q; want 503 and 1", w.Code, w.Header().Get("Retry-After"))
					}
					time.Sleep(1100 * time.Millisecond)
					w = f.ask(secret, "GET", "/v1/thoughts?source=openclaw:main", "")
				}
				if w.Code != http.StatusOK || w.Body.Len() < 4*size {
					t.Errorf("answered %d with %d bytes", w.Code, w.Body.Len())
				}
				f.wait.Wait()
			})
		})
	}
}

// TestLargeThoughtsAreEncodedWhole: what is encoded in pieces is the same, byte for byte, wherever the pieces end.
func TestLargeThoughtsAreEncodedWhole(t *testing.T) {
	f := slowServer(t, nil)
	for i := range 4 {
		text := strings.Repeat("x", i) + strings.Repeat("€𝄞é\u2028<&>\"\\\n\x01", 6000)
		content := strings.TrimSpace(encode(t, text))
		posted := f.ask(adminKey, "POST", "/v1/thoughts", `{"source":"a","content":`+content+`,"metadata":{"n":`+fmt.Sprint(i)+`}}`)
		id, _, _ := strings.Cut(strings.TrimPrefix(posted.Body.String(), `{"id":"`), `"`)
		for _, w := range []*httptest.ResponseRecorder{
			posted, f.ask(adminKey, "GET", "/v1/thoughts/"+id, ""), f.ask(adminKey, "GET", "/v1/thoughts?source=a&limit=1", ""),
			f.ask(adminKey, "GET", "/v1/changes?source=a&limit=100", ""),
		} {
			want := `{"id":"` + id + `","content":` + content + `,"source":"a","metadata":{"n":` + fmt.Sprint(i) + `},"created_at":"`
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("text %d: an answer of %d bytes, %d, does not hold it as encoding/json writes it", i, w.Body.Len(), w.Code)
			}
		}
	}
}

// TestLargeHitsAreAskedForInSmallerNumber: a search whose hits are too much for the memory that answers have says how many may be asked for.
func TestLargeHitsAreAskedForInSmallerNumber(t *testing.T) {
	f := slowServer(t, func(c *openbrain.Config) { c.MaxBody = 4 << 20 })
	f.store("a", 20, 3<<20)
	if w := f.ask(adminKey, "POST", "/v1/search", `{"query":"x","limit":20}`); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "less than or equal to 10") {
		t.Errorf("answered %d with %d bytes, want 422 and 10", w.Code, w.Body.Len())
	}
	if w := f.ask(adminKey, "POST", "/v1/search", `{"query":"x","limit":10}`); w.Code != http.StatusOK || w.Body.Len() < 30<<20 {
		t.Errorf("answered %d with %d bytes, want ten thoughts", w.Code, w.Body.Len())
	}
}
