package openbraintest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Thought is a stored thought.
type Thought struct {
	ID, Content, Source string
	Metadata            map[string]any
	Created, Updated    time.Time
	// Patches is how often the thought was changed.
	Patches int
}

// Request is what the server was asked.
type Request struct {
	Method string
	// Path is as sent, escapes included.
	Path, Query string
	// Authorized says that the key was right.
	Authorized bool
	Body       string
}

// Server is a running server. All methods are safe for concurrent use.
type Server struct {
	tb  testing.TB
	key string

	mu       sync.Mutex
	behavior Behavior
	faults   []*Fault
	thoughts []*Thought // oldest first
	requests []Request
	serial   int
	clock    time.Time

	addr string
	http *http.Server
	done chan struct{}
	stop context.CancelFunc
	held *held // nil while it listens
}

// New starts a server and stops it when the test ends. Each option changes the behavior it starts with.
func New(tb testing.TB, options ...func(*Behavior)) *Server {
	tb.Helper()
	s := &Server{tb: tb, key: "test-key-" + hash(tb.Name()), behavior: DefaultBehavior(), clock: time.Now().UTC()}
	for _, o := range options {
		o(&s.behavior)
	}
	s.Start()
	tb.Cleanup(func() {
		s.close()
		if s.held != nil {
			s.held.release()
		}
	})
	return s
}

// URL returns the address to use as base URL. It stays the same over restarts.
func (s *Server) URL() string { return "http://" + s.addr }

// Key returns the key the server accepts. It is long and random enough to search for in texts.
func (s *Server) Key() string { return s.key }

// Start lets a stopped server listen again, at the same address, with the thoughts it had.
func (s *Server) Start() {
	s.tb.Helper()
	ln, err := s.listen()
	if err != nil {
		s.tb.Fatalf("openbraintest: listen on %q: %v", s.addr, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ctx = context.WithValue(ctx, running{}, ctx.Done())
	srv := &http.Server{
		Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	done := make(chan struct{})
	s.addr, s.http, s.done, s.stop = ln.Addr().String(), srv, done, cancel
	go func() {
		defer close(done)
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			s.tb.Errorf("openbraintest: serve: %v", err)
		}
	}()
}

// listen listens at the server's address, which nobody else got meanwhile, or at a free one.
func (s *Server) listen() (net.Listener, error) {
	if s.held != nil {
		defer func() { s.held = nil }()
		return s.held.listen()
	}
	var lc net.ListenConfig
	return lc.Listen(context.Background(), "tcp", cmp.Or(s.addr, "127.0.0.1:0"))
}

// running is the key of the channel that is closed when the server that a request came to was stopped.
type running struct{}

// stopped reports whether the server that a request came to was stopped since.
func stopped(r *http.Request) bool {
	done, _ := r.Context().Value(running{}).(<-chan struct{})
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Stop closes the listener and all connections: who calls is refused, and the address stays this server's until the test is over. What was asked and not
// done by then is not done any more. A second call does nothing.
func (s *Server) Stop() {
	s.tb.Helper()
	if !s.close() {
		return
	}
	var err error
	if s.held, err = hold(s.addr); err != nil {
		s.tb.Errorf("openbraintest: hold %s: %v", s.addr, err)
	}
}

// close leaves the address to others, and reports whether there was something to close.
func (s *Server) close() bool {
	if s.http == nil {
		return false
	}
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	_ = s.http.Close()
	<-s.done
	s.http = nil
	return true
}

// Set changes the behavior from the next request on.
func (s *Server) Set(change func(*Behavior)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.behavior)
}

// Thoughts returns what is stored, oldest first.
func (s *Server) Thoughts() []Thought {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Thought, len(s.thoughts))
	for i, t := range s.thoughts {
		out[i] = *t
	}
	return out
}

// Insert stores a thought as another program would, and returns its id. Metadata is what json.Marshal makes of it.
func (s *Server) Insert(content, source string, metadata any) string {
	s.tb.Helper()
	b, err := json.Marshal(metadata)
	if err != nil {
		s.tb.Fatalf("openbraintest: insert: %v", err)
	}
	var m map[string]any
	_ = json.Unmarshal(b, &m) // null and other kinds: no metadata
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store(content, source, m).ID
}

// Remove deletes a thought behind every client's back, and reports whether it was there.
func (s *Server) Remove(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(func(t *Thought) bool { return t.ID == id }) > 0
}

// Requests returns what was asked since the last call of Forget.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Forget empties the list of requests.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// store keeps a new thought. Times rise strictly; ids are in no order unless they are numbers.
func (s *Server) store(content, source string, metadata map[string]any) *Thought {
	i := -1
	if s.behavior.Merge != MergeNone {
		i = slices.IndexFunc(s.thoughts, func(t *Thought) bool { return s.behavior.Merge.same(t.Content, content) })
	}
	if i >= 0 {
		t := *s.thoughts[i] // Thoughts hands out copies: the maps in them must not change
		if s.behavior.Merge == MergeOver {
			t.Metadata = metadata
		}
		s.thoughts[i] = &t
		return &t
	}
	s.serial++
	id := strconv.Itoa(s.serial)
	if !s.behavior.NumericIDs {
		id = hash(id)
	}
	if s.behavior.OddIDs {
		id = "a/b?c=#%2F&\u00e9 \"\\{}" + id
	}
	t := &Thought{ID: id, Content: content, Source: source, Metadata: metadata, Created: s.tick()}
	s.thoughts = append(s.thoughts, t)
	return t
}

// tick returns a time that no thought has yet, in whole microseconds as PostgreSQL keeps them.
func (s *Server) tick() time.Time {
	now := time.Now().UTC().Truncate(time.Microsecond)
	if !now.After(s.clock) {
		now = s.clock.Truncate(time.Microsecond).Add(time.Microsecond)
	}
	s.clock = now
	return now
}

func (s *Server) remove(match func(*Thought) bool) int {
	n := len(s.thoughts)
	s.thoughts = slices.DeleteFunc(s.thoughts, match)
	return n - len(s.thoughts)
}

func hash(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:16])
}
