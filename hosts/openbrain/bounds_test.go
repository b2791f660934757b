package openbrain_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/hosts/openbrain"
)

// TestSlowSendersTakeNoTurn: bodies that do not come to an end keep nobody else from being answered.
func TestSlowSendersTakeNoTurn(t *testing.T) {
	f := serve(t, nil, func(c *openbrain.Config) { c.MaxConcurrent = 2 })
	addr, _ := listen(t, f)
	for range 4 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_, err = io.WriteString(c, "POST /v1/thoughts HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		// The server asks for the body when it begins to read it.
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
			t.Fatalf("answered %q, %v; want the server to wait for the body", line, err)
		}
		if _, err := io.WriteString(c, `{"content":`); err != nil {
			t.Fatal(err)
		}
	}
	res, err := http.Get("http://" + addr + "/v1/stats")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		t.Errorf("another client is answered %d, want 200", res.StatusCode)
	}
}

// scanned is a store that notes how many entries a scan is asked for, and fails from a scan on.
type scanned struct {
	core.Store
	mu     sync.Mutex
	limits []int
	failAt int
}

func (s *scanned) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	s.mu.Lock()
	s.limits = append(s.limits, q.Limit)
	fail := s.failAt > 0 && len(s.limits) >= s.failAt
	s.mu.Unlock()
	if fail {
		return core.Page{}, errors.New("scanned: disk on fire")
	}
	return s.Store.Scan(ctx, q)
}

// TestPagesAreBounded: a page of large thoughts ends when it is large, says where the rest is, and little of it is in memory at a time. Our own client, which asks
// for 500 at a time, sees all of it.
func TestPagesAreBounded(t *testing.T) {
	store := &scanned{Store: memory.New()}
	f := serve(t, store, func(c *openbrain.Config) { c.MaxPage = 256 << 10 })
	c := connect(t, f.url, "any")
	const many, size = 40, 20 << 10
	id := core.SessionID{Agent: "ada", Session: "s"}
	for i := range many {
		text := fmt.Sprintf("%d ", i) + strings.Repeat("0", size)
		_, err := c.Append(t.Context(), []core.Entry{{
			ID: fmt.Sprint("e", i), Agent: id.Agent, Session: id.Session, Seq: int64(i), Role: message.User, Type: core.TypeMessage, Key: fmt.Sprint("k", i),
			Message: message.New(message.User, text), Tokens: 1, Time: time.Date(2026, 3, 1, 12, 0, i, 0, time.UTC),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	store.mu.Lock()
	store.limits = nil
	store.mu.Unlock()
	var page struct {
		Thoughts []struct{ ID string }
		Count    int
		Next     string
	}
	r := f.ask(t, "", "GET", "/v1/thoughts?limit=500", "")
	if err := json.Unmarshal(r.body, &page); err != nil {
		t.Fatal(err)
	}
	if len(r.body) > 257<<10 || page.Next == "" || page.Count != len(page.Thoughts) || page.Count < 5 {
		t.Errorf("a page of %d bytes, %d thoughts, next %q; want it bounded, with a next", len(r.body), page.Count, page.Next)
	}
	if n, each := store.limits[len(store.limits)-1], len(r.body)/max(page.Count, 1); n*each > 2<<20 {
		t.Errorf("scans asked for %v entries of some %d bytes, want few of large ones", store.limits, each)
	}
	seen := 0
	for e, err := range core.All(t.Context(), c, id.Scope(), false) {
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprint("e", seen); e.ID != want {
			t.Fatalf("entry %d is %q, want %q", seen, e.ID, want)
		}
		seen++
	}
	if seen != many {
		t.Errorf("the client sees %d entries, want %d", seen, many)
	}
}

// TestBrokenListIsCutOff: an answer that has begun and cannot be finished does not look whole.
func TestBrokenListIsCutOff(t *testing.T) {
	store := &scanned{Store: memory.New()}
	f := serve(t, store, nil)
	for i := range 40 {
		f.want(t, 201, "", "POST", "/v1/thoughts", fmt.Sprintf(`{"content":%q,"source":"a"}`, strings.Repeat(fmt.Sprint("x", i), 50_000)), nil)
	}
	store.mu.Lock()
	store.failAt = len(store.limits) + 2
	store.mu.Unlock()
	res, err := http.Get(f.url + "/v1/thoughts?source=a&limit=100")
	if err != nil {
		return // nothing was taken for an answer
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if res.StatusCode == http.StatusOK && err == nil {
		t.Errorf("answered %d bytes as if they were all", len(b))
	}
	if !strings.Contains(f.log.String(), "disk on fire") {
		t.Error("the log does not say why")
	}
}

// gated is a store that counts what its scans return, and waits before each but the first ones until somebody has read something.
type gated struct {
	core.Store
	free  int
	read  chan struct{}
	mu    sync.Mutex
	scans int
	most  int
	stuck bool
}

func (s *gated) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	page, err := s.Store.Scan(ctx, q)
	size := 0
	for i := range page.Entries {
		size += len(page.Entries[i].Text())
	}
	s.mu.Lock()
	s.scans++
	wait := s.free > 0 && s.scans > s.free && !s.stuck
	s.most = max(s.most, size)
	s.mu.Unlock()
	if !wait {
		return page, err
	}
	hung := time.NewTimer(20 * time.Second)
	defer hung.Stop()
	select {
	case <-s.read:
	case <-hung.C:
		s.mu.Lock()
		s.stuck = true
		s.mu.Unlock()
	}
	return page, err
}

// TestPagesAreStreamed: the beginning of a page is with the client before its end is read, and what is read at a time has a bound in bytes, whatever the limit and
// however large a page may be.
func TestPagesAreStreamed(t *testing.T) {
	store := &gated{Store: memory.New(), read: make(chan struct{})}
	f := serve(t, store, func(c *openbrain.Config) { c.MaxPage = 64 << 20 })
	const many, size = 120, 150 << 10
	for i := range many {
		f.want(t, http.StatusCreated, "", http.MethodPost, "/v1/thoughts", fmt.Sprintf(`{"content":%q,"source":"a"}`, fmt.Sprint(i, strings.Repeat(" x", size/2))), nil)
	}
	store.mu.Lock()
	store.scans, store.most, store.free = 0, 0, 4
	store.mu.Unlock()
	res, err := http.Get(f.url + "/v1/thoughts?source=a&limit=500")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body := bufio.NewReader(res.Body)
	if _, err := body.Peek(1 << 10); err != nil {
		t.Fatal(err)
	}
	close(store.read)
	var page list
	if err := json.NewDecoder(body).Decode(&page); err != nil || page.Count != many {
		t.Errorf("the page has %d thoughts, %v; want %d", page.Count, err, many)
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	if store.stuck {
		t.Error("nothing was with the client while the page was read")
	}
	if store.scans < 5 || store.most > 4<<20 {
		t.Errorf("%d scans returned up to %d bytes each, want several of at most 4 MiB", store.scans, store.most)
	}
}
