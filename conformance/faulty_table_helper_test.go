package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/vector"
)

// helped is a store in memory with the companions that the memory store has not. Each is plain and sound; faults are put in its place.
type helped struct {
	*memory.Store
	mu sync.Mutex
	// waiting is how many changes are not delivered, searched says of a query whether something came too late.
	waiting  int
	searched map[string]bool

	erase     func(ctx context.Context, id core.SessionID) error
	recognise func(ctx context.Context, id core.SessionID, m []message.Message) ([]core.Entry, error)
	drain     func(ctx context.Context) (int, error)
	backlog   func(*core.Backlog)
	remote    func(ctx context.Context) error
	late      func(q core.SearchQuery) bool
	// hides says which entries Scan does not show.
	hides func(core.Entry) bool
}

func newHelped() *helped { return &helped{Store: memory.New(), searched: map[string]bool{}} }

// open returns the error of a call that has no work to do: its context's, or that the store is closed.
func (h *helped) open(ctx context.Context) error {
	_, err := h.Store.Scan(ctx, core.ScanQuery{Scope: core.Scope{Agent: "any"}, Limit: 1})
	return err
}

func (h *helped) Append(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
	res, err := h.Store.Append(ctx, e)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.waiting += len(e)
	}
	return res, err
}

func (h *helped) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	p, err := h.Store.Scan(ctx, q)
	if h.hides != nil {
		p.Entries = slices.DeleteFunc(p.Entries, h.hides)
	}
	return p, err
}

func (h *helped) EraseSession(ctx context.Context, id core.SessionID) error {
	if h.erase != nil {
		return h.erase(ctx, id)
	}
	return h.erased(ctx, id)
}

func (h *helped) erased(ctx context.Context, id core.SessionID) error {
	if id.Agent == "" || id.Session == "" {
		return fmt.Errorf("helped: %w", core.ErrInvalid)
	}
	var ids []string
	for e, err := range core.All(ctx, h.Store, id.Scope(), false) {
		if err != nil {
			return err
		}
		ids = append(ids, e.ID)
	}
	_, err := h.Delete(ctx, id.Scope(), ids)
	return err
}

// erasedIf erases those of an agent's entries that which says.
func (h *helped) erasedIf(ctx context.Context, id core.SessionID, which func(core.Entry) bool) error {
	for e, err := range core.All(ctx, h.Store, core.Scope{Agent: id.Agent}, false) {
		if err != nil {
			return err
		}
		if which(e) {
			_, _ = h.Delete(ctx, e.SessionID().Scope(), []string{e.ID})
		}
	}
	return nil
}

func (h *helped) Recognise(ctx context.Context, id core.SessionID, m []message.Message) ([]core.Entry, error) {
	if h.recognise != nil {
		return h.recognise(ctx, id, m)
	}
	return h.recognised(ctx, id, m)
}

func (h *helped) recognised(ctx context.Context, id core.SessionID, m []message.Message) ([]core.Entry, error) {
	var out []core.Entry
	for e, err := range core.All(ctx, h.Store, id.Scope(), false) {
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(m, func(m message.Message) bool { return message.Fingerprint(m) == e.Fingerprint }) {
			out = append(out, e)
		}
	}
	return out, nil
}

func (h *helped) Drain(ctx context.Context) (int, error) {
	if h.drain != nil {
		return h.drain(ctx)
	}
	return h.drained(ctx)
}

func (h *helped) drained(ctx context.Context) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.open(ctx); err != nil {
		return h.waiting, err
	}
	h.waiting = 0
	return 0, nil
}

func (h *helped) Backlog(ctx context.Context) (core.Backlog, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := core.Backlog{Waiting: h.waiting, Bytes: int64(h.waiting) * 100}
	if h.waiting > 0 {
		b.Oldest = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	}
	if h.backlog != nil {
		h.backlog(&b)
	}
	return b, h.open(ctx)
}

func (h *helped) CheckRemote(ctx context.Context) error {
	if h.remote != nil {
		return h.remote(ctx)
	}
	return h.open(ctx)
}

func (h *helped) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, again := h.searched[q.Text]
	h.searched[q.Text] = !again // what came too late is there for the second search
	return nil, h.open(ctx)
}

func (h *helped) Late(q core.SearchQuery) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.late != nil {
		return h.late(q)
	}
	return h.searched[q.Text]
}

func helpedOf(class, name string, claims []string, change func(*helped)) broken {
	return broken{class: "companion: " + class, name: name, find: func(t *testing.T) []conformance.Finding {
		t.Helper()
		return conformance.ExamineStore(t, func(testing.TB) core.Store {
			h := newHelped()
			change(h)
			return h
		}, conformance.WithExactly(3, 20260301), conformance.WithoutShrinking(), conformance.WithFirst(), conformance.WithPatience(time.Second), conformance.WithClaims(claims...))
	}}
}

// tableHelpers are wrong companions of a store in memory.
func tableHelpers() []broken {
	return slices.Concat(tableErasers(), tableRecognisers(), tableDrainers(), tableNearest(), tableFiles(), tableErased(), tableRepaired())
}

func tableErasers() []broken {
	var out []broken
	eraser := func(name string, f func(h *helped, ctx context.Context, id core.SessionID) error) {
		claims := []string{"erase"}
		if strings.HasPrefix(name, "context") {
			claims = []string{"cancel.store"}
		}
		if strings.HasPrefix(name, "closed") {
			claims = []string{"close.closed"}
		}
		out = append(out, helpedOf("session eraser", name, claims, func(h *helped) {
			h.erase = func(ctx context.Context, id core.SessionID) error { return f(h, ctx, id) }
		}))
	}
	eraser("nothing", func(h *helped, ctx context.Context, id core.SessionID) error {
		if id.Agent == "" || id.Session == "" {
			return core.ErrInvalid
		}
		return h.open(ctx)
	})
	eraser("the whole agent", func(h *helped, ctx context.Context, id core.SessionID) error {
		if id.Agent == "" || id.Session == "" {
			return core.ErrInvalid
		}
		var errs []error
		for _, s := range []string{"main", "other"} {
			errs = append(errs, h.erased(ctx, core.SessionID{Agent: id.Agent, Session: s}))
		}
		return errors.Join(errs...)
	})
	eraser("the session of every agent", func(h *helped, ctx context.Context, id core.SessionID) error {
		return errors.Join(h.erased(ctx, id), h.erased(ctx, core.SessionID{Agent: "agent-b", Session: id.Session}))
	})
	eraser("every session that begins so", func(h *helped, ctx context.Context, id core.SessionID) error {
		if id.Session == "mai" {
			id.Session = "main"
		}
		if id.Agent == "nobody" {
			id.Agent = "agent-b"
		}
		return h.erased(ctx, id)
	})
	eraser("all but the newest", func(h *helped, ctx context.Context, id core.SessionID) error {
		if id.Agent == "" || id.Session == "" {
			return core.ErrInvalid
		}
		p, err := h.Store.Scan(ctx, core.ScanQuery{Scope: id.Scope(), Limit: 100})
		for i, e := range p.Entries {
			if err == nil && i < len(p.Entries)-1 {
				_, err = h.Delete(ctx, id.Scope(), []string{e.ID})
			}
		}
		return err
	})
	eraser("every session whose name begins with it", func(h *helped, ctx context.Context, id core.SessionID) error {
		if err := h.erased(ctx, id); err != nil {
			return err
		}
		return h.erasedIf(ctx, id, func(e core.Entry) bool { return strings.HasPrefix(e.Session, id.Session) })
	})
	eraser("every session that the name is a pattern of", func(h *helped, ctx context.Context, id core.SessionID) error {
		return cmp.Or(h.erased(ctx, id), h.erasedIf(ctx, id, func(e core.Entry) bool {
			first, last, ok := strings.Cut(id.Session, "%")
			return ok && strings.HasPrefix(e.Session, first) && strings.HasSuffix(e.Session, last)
		}))
	})
	eraser("in any case", func(h *helped, ctx context.Context, id core.SessionID) error {
		return cmp.Or(h.erased(ctx, id), h.erasedIf(ctx, id, func(e core.Entry) bool { return strings.EqualFold(e.Session, id.Session) }))
	})
	eraser("what was emptied stays", func(h *helped, ctx context.Context, id core.SessionID) error {
		if id.Agent == "" || id.Session == "" {
			return core.ErrInvalid
		}
		return h.erasedIf(ctx, id, func(e core.Entry) bool { return e.Session == id.Session && e.Type != core.TypeErased })
	})
	for _, page := range []int{100, core.MaxPage} {
		eraser(fmt.Sprint("the first ", page, " alone"), func(h *helped, ctx context.Context, id core.SessionID) error {
			if id.Agent == "" || id.Session == "" {
				return core.ErrInvalid
			}
			p, err := h.Store.Scan(ctx, core.ScanQuery{Scope: id.Scope(), Limit: page})
			for _, e := range p.Entries {
				_, err = h.Delete(ctx, id.Scope(), []string{e.ID})
			}
			return err
		})
	}
	eraser("emptied and not erased", func(h *helped, ctx context.Context, id core.SessionID) error {
		if id.Agent == "" || id.Session == "" {
			return core.ErrInvalid
		}
		p, err := h.Store.Scan(ctx, core.ScanQuery{Scope: id.Scope(), Limit: 100})
		for _, e := range p.Entries {
			m := message.New(e.Role, "")
			err = errors.Join(err, h.Update(ctx, id.Scope(), e.ID, core.Change{Message: &m, Type: core.TypeErased, Key: "x" + e.ID}))
		}
		return err
	})
	eraser("a session that is not there is not found", func(h *helped, ctx context.Context, id core.SessionID) error {
		p, err := h.Store.Scan(ctx, core.ScanQuery{Scope: core.Scope{Agent: cmp.Or(id.Agent, "none"), Session: id.Session}, Limit: 1})
		if err == nil && len(p.Entries) == 0 && id.Session != "" && id.Agent != "" {
			return core.ErrNotFound
		}
		return cmp.Or(err, h.erased(ctx, id))
	})
	eraser("no session is all of them", func(h *helped, ctx context.Context, id core.SessionID) error {
		if id.Session == "" && id.Agent != "" {
			return errors.Join(h.erased(ctx, core.SessionID{Agent: id.Agent, Session: "main"}), core.ErrInvalid)
		}
		return h.erased(ctx, id)
	})
	eraser("no session is fine", func(h *helped, ctx context.Context, id core.SessionID) error {
		if id.Session == "" {
			return nil
		}
		return h.erased(ctx, id)
	})
	eraser("context ignored", func(h *helped, ctx context.Context, id core.SessionID) error {
		return h.erased(context.WithoutCancel(ctx), id)
	})
	eraser("closed is fine", func(h *helped, ctx context.Context, id core.SessionID) error {
		if err := h.erased(ctx, id); !errors.Is(err, core.ErrClosed) {
			return err
		}
		return nil
	})
	return out
}

func tableRecognisers() []broken {
	var out []broken
	// Of the sound one Scan shows all but every second entry; recognising is then all that finds the others.
	odd := func(e core.Entry) bool { return len(e.ID) > 0 && e.ID[len(e.ID)-1]%2 == 0 }
	add := func(name string, f func(h *helped, ctx context.Context, id core.SessionID, m []message.Message) ([]core.Entry, error)) {
		claims := []string{"recognise.says"}
		if strings.HasPrefix(name, "context") {
			claims = []string{"cancel.store"}
		}
		if strings.HasPrefix(name, "closed") {
			claims = []string{"close.closed"}
		}
		out = append(out, helpedOf("recogniser", name, claims, func(h *helped) {
			if claims[0] == "recognise.says" {
				h.hides = odd
			}
			h.recognise = func(ctx context.Context, id core.SessionID, m []message.Message) ([]core.Entry, error) {
				return f(h, ctx, id, m)
			}
		}))
	}
	add("nothing", func(h *helped, ctx context.Context, _ core.SessionID, _ []message.Message) ([]core.Entry, error) {
		return nil, h.open(ctx)
	})
	add("the whole session", func(h *helped, ctx context.Context, id core.SessionID, _ []message.Message) ([]core.Entry, error) {
		p, err := h.Store.Scan(ctx, core.ScanQuery{Scope: id.Scope(), Limit: 100})
		return p.Entries, err
	})
	add("of other sessions", func(h *helped, ctx context.Context, id core.SessionID, m []message.Message) ([]core.Entry, error) {
		var out []core.Entry
		for _, s := range []string{"main", "other"} {
			got, err := h.recognised(ctx, core.SessionID{Agent: id.Agent, Session: s}, m)
			if err != nil {
				return nil, err
			}
			out = append(out, got...)
		}
		return out, nil
	})
	add("of another agent", func(h *helped, ctx context.Context, id core.SessionID, m []message.Message) ([]core.Entry, error) {
		got, err := h.recognised(ctx, id, m)
		more, _ := h.recognised(ctx, core.SessionID{Agent: "agent-b", Session: "main"}, m)
		return append(got, more...), err
	})
	add("the first message alone", func(h *helped, ctx context.Context, id core.SessionID, m []message.Message) ([]core.Entry, error) {
		return h.recognised(ctx, id, m[:min(len(m), 1)])
	})
	add("without raw bytes", func(h *helped, ctx context.Context, id core.SessionID, m []message.Message) ([]core.Entry, error) {
		got, err := h.recognised(ctx, id, m)
		return entriesOf(got, func(e *core.Entry) { e.Message = message.New(e.Role, e.Text()); e.Tokens = 0 }), err
	})
	add("made up", func(h *helped, ctx context.Context, id core.SessionID, m []message.Message) ([]core.Entry, error) {
		got, err := h.recognised(ctx, id, m)
		if len(m) > 0 {
			got = append(got, core.Entry{ID: "E-made-up", Agent: id.Agent, Session: id.Session, Message: m[0], Fingerprint: message.Fingerprint(m[0])})
		}
		return got, err
	})
	add("no message recognises all", func(h *helped, ctx context.Context, id core.SessionID, m []message.Message) ([]core.Entry, error) {
		if len(m) == 0 {
			p, err := h.Store.Scan(ctx, core.ScanQuery{Scope: id.Scope(), Limit: 100})
			return p.Entries, err
		}
		return h.recognised(ctx, id, m)
	})
	add("an unknown one is an error", func(h *helped, ctx context.Context, id core.SessionID, m []message.Message) ([]core.Entry, error) {
		got, err := h.recognised(ctx, id, m)
		if len(got) < len(m) {
			return nil, core.ErrNotFound
		}
		return got, err
	})
	add("context ignored", func(h *helped, ctx context.Context, id core.SessionID, m []message.Message) ([]core.Entry, error) {
		return h.recognised(context.WithoutCancel(ctx), id, m)
	})
	add("closed is empty", func(h *helped, ctx context.Context, id core.SessionID, m []message.Message) ([]core.Entry, error) {
		got, err := h.recognised(ctx, id, m)
		if errors.Is(err, core.ErrClosed) {
			err = nil
		}
		return got, err
	})
	return out
}

func tableDrainers() []broken {
	var out []broken
	add := func(name, claim string, change func(*helped)) {
		out = append(out, helpedOf("drainer", name, []string{claim}, change))
	}
	drain := func(name, claim string, f func(h *helped, ctx context.Context) (int, error)) {
		add(name, claim, func(h *helped) { h.drain = func(ctx context.Context) (int, error) { return f(h, ctx) } })
	}
	drain("nothing", "drain.delivers", func(h *helped, ctx context.Context) (int, error) { return 0, h.open(ctx) })
	drain("one left", "drain.delivers", func(h *helped, ctx context.Context) (int, error) { _, err := h.drained(ctx); return 1, err })
	drain("an error and nothing left", "drain.delivers", func(h *helped, ctx context.Context) (int, error) {
		_, err := h.drained(ctx)
		return 0, cmp.Or(err, errors.New("broken: gave up"))
	})
	drain("gives up", "drain.delivers", func(h *helped, ctx context.Context) (int, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.waiting, h.open(ctx)
	})
	drain("what is delivered is gone", "drain.delivers", func(h *helped, ctx context.Context) (int, error) {
		_ = h.erased(ctx, core.SessionID{Agent: "agent-a", Session: "main"})
		return h.drained(ctx)
	})
	drain("never ends", "drain.delivers", func(_ *helped, ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
	drain("goes on when the context has ended", "cancel.store", func(h *helped, ctx context.Context) (int, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.waiting, errors.New("broken: the other store cannot be reached")
	})
	drain("closed", "close.closed", func(h *helped, _ context.Context) (int, error) { return 0, nil })
	for name, f := range map[string]func(*core.Backlog){
		"always one":        func(b *core.Backlog) { b.Waiting++ },
		"negative":          func(b *core.Backlog) { b.Waiting-- },
		"bytes of the past": func(b *core.Backlog) { b.Bytes = 700 },
		"negative bytes":    func(b *core.Backlog) { b.Bytes -= 1 },
		"oldest stays":      func(b *core.Backlog) { b.Oldest = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC) },
		"set aside":         func(b *core.Backlog) { b.SetAside = 2 },
		"full":              func(b *core.Backlog) { b.Full = "no room" },
	} {
		add("backlog: "+name, "drain.delivers", func(h *helped) { h.backlog = f })
	}
	add("remote: never there", "drain.delivers", func(h *helped) { h.remote = func(context.Context) error { return core.ErrUnavailable } })
	add("remote: context ignored", "cancel.store", func(h *helped) { h.remote = func(context.Context) error { return nil } })
	add("remote: closed", "close.closed", func(h *helped) {
		h.remote = func(ctx context.Context) error { return ctx.Err() }
	})
	late := func(name string, f func(h *helped, q core.SearchQuery) bool) {
		out = append(out, helpedOf("late searcher", name, []string{"late.asked"}, func(h *helped) { h.late = func(q core.SearchQuery) bool { return f(h, q) } }))
	}
	late("always", func(*helped, core.SearchQuery) bool { return true })
	late("for ever once searched", func(h *helped, q core.SearchQuery) bool { _, ok := h.searched[q.Text]; return ok })
	late("whatever was searched", func(h *helped, _ core.SearchQuery) bool { return len(h.searched) > 0 })
	late("what was not searched", func(h *helped, q core.SearchQuery) bool { _, ok := h.searched[q.Text]; return !ok })
	late("panics over an empty query", func(h *helped, q core.SearchQuery) bool { return h.searched[q.Text[:1]] })
	return out
}

// nearby is a store in a file that compares vectors itself, plainly and soundly.
type nearby struct {
	*sqlite.Store
	closeness func(a, b []float32) float64
	query     func(*core.SearchQuery)
	// keep decides over each entry; entries without say so are left out.
	keep  func(core.Entry) bool
	after func([]core.Hit) []core.Hit
	// parts is how the closeness of several parts is joined, err what becomes of errors.
	parts func(a, b float64) float64
	err   func(error) error
	ties  func(a, b core.Hit) int
	twice bool
}

func cosine(a, b []float32) float64 {
	var dot, x, y float64
	for i := range min(len(a), len(b)) {
		dot, x, y = dot+float64(a[i]*b[i]), x+float64(a[i]*a[i]), y+float64(b[i]*b[i])
	}
	return dot / math.Sqrt(x*y)
}

func (n *nearby) SearchVectors(ctx context.Context, space string, v []float32, q core.SearchQuery) ([]core.Hit, error) {
	if n.query != nil {
		n.query(&q)
	}
	hits, err := n.hits(ctx, space, v, q)
	if n.err != nil {
		err = n.err(err)
	}
	slices.SortFunc(hits, func(a, b core.Hit) int {
		if c := cmp.Compare(b.Score, a.Score); c != 0 {
			return c
		}
		return n.ties(a, b)
	})
	hits = hits[:min(len(hits), q.Limit)]
	if n.after != nil {
		hits = n.after(hits)
	}
	return hits, err
}

func (n *nearby) hits(ctx context.Context, space string, v []float32, q core.SearchQuery) ([]core.Hit, error) {
	best := map[string]float64{}
	var hits []core.Hit
	for vq := (vector.Query{Space: space, Agent: q.Scope.Agent, Limit: 100}); ; {
		page, err := n.ScanVectors(ctx, vq)
		if err != nil {
			return nil, err
		}
		for _, x := range page.Vectors {
			if len(x.Values) != len(v) {
				return nil, fmt.Errorf("nearby: %w", core.ErrInvalid)
			}
			score := n.closeness(x.Values, v)
			if old, ok := best[x.ID]; ok && !n.twice {
				best[x.ID] = n.parts(old, score)
				continue
			}
			best[x.ID] = score
			if n.twice {
				hits = append(hits, core.Hit{Entry: core.Entry{ID: x.ID}, Score: score})
			}
		}
		if vq.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	if !n.twice {
		for id, score := range best {
			hits = append(hits, core.Hit{Entry: core.Entry{ID: id}, Score: score})
		}
	}
	out := hits[:0]
	for _, h := range hits {
		got, err := n.Get(ctx, core.Scope{Agent: q.Scope.Agent}, []string{h.Entry.ID})
		if err != nil {
			return nil, err
		}
		e := got[0]
		if !n.keep(e) || !q.Scope.Contains(e.SessionID()) || q.Exclude != nil && q.Exclude(e.ID) || !q.From.IsZero() && e.Time.Before(q.From) || !q.To.IsZero() && !e.Time.Before(q.To) {
			continue
		}
		out = append(out, core.Hit{Entry: e, Score: h.Score})
	}
	return out, nil
}

// inFile opens a store in a file of its own.
func inFile(tb testing.TB, path string) *sqlite.Store {
	tb.Helper()
	cfg := sqlite.DefaultConfig()
	cfg.Path = path
	s, err := sqlite.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func nearbyOf(name, claim string, change func(*nearby)) broken {
	return broken{class: "companion: search by vector", name: name, find: func(t *testing.T) []conformance.Finding {
		t.Helper()
		return conformance.ExamineStore(t, func(tb testing.TB) core.Store {
			tb.Helper()
			return newNearby(inFile(tb, filepath.Join(tb.TempDir(), "store.db")), change)
		}, conformance.WithExactly(1, 20260301), conformance.WithoutShrinking(), conformance.WithFirst(), conformance.WithClaims(claim))
	}}
}

func newNearby(s *sqlite.Store, change func(*nearby)) *nearby {
	n := &nearby{
		Store: s, closeness: cosine, parts: func(a, b float64) float64 { return max(a, b) },
		keep: func(e core.Entry) bool { return e.Type != core.TypeHeartbeat && e.Type != core.TypeErased },
		ties: func(a, b core.Hit) int {
			return cmp.Or(b.Entry.Time.Compare(a.Entry.Time), cmp.Compare(a.Entry.ID, b.Entry.ID))
		},
	}
	change(n)
	return n
}

func tableNearest() []broken {
	var out []broken
	add := func(name string, change func(*nearby)) { out = append(out, nearbyOf(name, "vector.nearest", change)) }
	add("by product", func(n *nearby) {
		n.closeness = func(a, b []float32) float64 { return float64(a[0]*b[0] + a[1]*b[1]) }
	})
	add("by distance", func(n *nearby) {
		n.closeness = func(a, b []float32) float64 { return -math.Hypot(float64(a[0]-b[0]), float64(a[1]-b[1])) }
	})
	add("score is a distance", func(n *nearby) {
		n.after = func(h []core.Hit) []core.Hit {
			for i := range h {
				h[i].Score = 1 - h[i].Score
			}
			return h
		}
	})
	add("without regard to the sign", func(n *nearby) {
		n.closeness = func(a, b []float32) float64 { return math.Abs(cosine(a, b)) }
	})
	add("score between 0 and 1", func(n *nearby) { n.closeness = func(a, b []float32) float64 { return (cosine(a, b) + 1) / 2 } })
	add("farthest first", func(n *nearby) { n.after = func(h []core.Hit) []core.Hit { slices.Reverse(h); return h } })
	add("nothing", func(n *nearby) { n.after = func([]core.Hit) []core.Hit { return nil } })
	add("the best left out", func(n *nearby) { n.after = func(h []core.Hit) []core.Hit { return h[min(1, len(h)):] } })
	add("without those that point away", func(n *nearby) {
		n.after = func(h []core.Hit) []core.Hit {
			return slices.DeleteFunc(h, func(h core.Hit) bool { return h.Score < 0 })
		}
	})
	add("each part a hit", func(n *nearby) { n.twice = true })
	add("the last part counts", func(n *nearby) { n.parts = func(_, b float64) float64 { return b } })
	add("the farthest part counts", func(n *nearby) { n.parts = func(a, b float64) float64 { return min(a, b) } })
	add("parts added up", func(n *nearby) { n.parts = func(a, b float64) float64 { return a + b } })
	add("limit ignored", func(n *nearby) { n.query = func(q *core.SearchQuery) { q.Limit += 2 } })
	add("limit counts those left out", func(n *nearby) {
		n.query = func(q *core.SearchQuery) {
			if q.Exclude != nil {
				q.Limit--
			}
		}
	})
	add("exclude ignored", func(n *nearby) { n.query = func(q *core.SearchQuery) { q.Exclude = nil } })
	add("session ignored", func(n *nearby) { n.query = func(q *core.SearchQuery) { q.Scope.Session = "" } })
	add("times ignored", func(n *nearby) { n.query = func(q *core.SearchQuery) { q.From, q.To = time.Time{}, time.Time{} } })
	add("end of time included", func(n *nearby) {
		n.query = func(q *core.SearchQuery) {
			if !q.To.IsZero() {
				q.To = q.To.Add(time.Second)
			}
		}
	})
	add("heartbeats found", func(n *nearby) { n.keep = func(core.Entry) bool { return true } })
	add("ties to the older one", func(n *nearby) { n.ties = func(a, b core.Hit) int { return a.Entry.Time.Compare(b.Entry.Time) } })
	add("hits without entries", func(n *nearby) {
		n.after = func(h []core.Hit) []core.Hit {
			for i := range h {
				h[i].Entry = core.Entry{ID: h[i].Entry.ID, Agent: h[i].Entry.Agent, Session: h[i].Entry.Session}
			}
			return h
		}
	})
	add("a text narrows it", func(n *nearby) {
		var text string
		n.query = func(q *core.SearchQuery) { text = q.Text }
		n.after = func(h []core.Hit) []core.Hit {
			return slices.DeleteFunc(h, func(h core.Hit) bool { return text != "" && !strings.Contains(h.Entry.Text(), text) })
		}
	})
	add("another length is no error", func(n *nearby) {
		n.err = func(err error) error {
			if errors.Is(err, core.ErrInvalid) {
				return nil
			}
			return err
		}
	})
	out = append(out, nearbyOf("closed is empty", "close.closed", func(n *nearby) { n.err = func(error) error { return nil } }))
	out = append(out, nearbyOf("context ignored", "cancel.store", func(n *nearby) { n.err = func(error) error { return nil } }))
	return out
}

// filed is a store in a file whose folder, scrubbing, erasing of sessions and repair can be wrong.
type filed struct {
	*sqlite.Store
	// After erasing a session a feed that is silent does not tell of it, and vectors that stay are found.
	silent, stay bool
	gone         map[string]bool
	vectors      []vector.Vector
	repair       func(ctx context.Context) (string, error)
	path         string
	// journal is what of an entry goes to a file of its own too, which a scrub is to empty.
	journal func(core.Entry) string
	beside  func(use string) (string, error)
	scrub   func(ctx context.Context) error
}

func (f *filed) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if f.journal != nil {
		old, err := os.ReadFile(f.path + ".journal")
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return core.AppendResult{}, err
		}
		for _, e := range entries {
			old = append(old, f.journal(e)...)
		}
		if err := os.WriteFile(f.path+".journal", old, 0o600); err != nil {
			return core.AppendResult{}, err
		}
	}
	return f.Store.Append(ctx, entries)
}

func (f *filed) Beside(use string) (string, error) {
	if f.beside != nil {
		return f.beside(use)
	}
	return f.Store.Beside(use)
}

// EraseSession is a companion that the store in a file has not.
func (f *filed) EraseSession(ctx context.Context, id core.SessionID) error {
	if id.Agent == "" || id.Session == "" {
		return fmt.Errorf("filed: %w", core.ErrInvalid)
	}
	var ids []string
	for e, err := range core.All(ctx, f.Store, id.Scope(), false) {
		if err != nil {
			return err
		}
		ids = append(ids, e.ID)
	}
	if f.gone == nil {
		f.gone = map[string]bool{}
	}
	for _, id := range ids {
		f.gone[id] = true
	}
	if f.stay {
		p, _ := f.Store.ScanVectors(ctx, vector.Query{Space: "one/3", Agent: id.Agent, Limit: core.MaxPage})
		f.vectors = append(f.vectors, slices.DeleteFunc(p.Vectors, func(v vector.Vector) bool { return !f.gone[v.ID] })...)
	}
	_, err := f.Delete(ctx, id.Scope(), ids)
	return err
}

// erasedIf deletes entries of both agents.
func (f *filed) erasedIf(ctx context.Context, which func(core.Entry) bool) error {
	for _, agent := range []string{"agent-a", "agent-b"} {
		for e, err := range core.All(ctx, f.Store, core.Scope{Agent: agent}, false) {
			if err == nil && which(e) {
				_, err = f.Delete(ctx, e.SessionID().Scope(), []string{e.ID})
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *filed) Changes(ctx context.Context, q core.ChangeQuery) (core.ChangePage, error) {
	p, err := f.Store.Changes(ctx, q)
	if f.silent {
		p.Changes = slices.DeleteFunc(p.Changes, func(c core.EntryChange) bool { return c.Entry == nil && f.gone[c.ID] })
	}
	return p, err
}

func (f *filed) ScanVectors(ctx context.Context, q vector.Query) (vector.Page, error) {
	p, err := f.Store.ScanVectors(ctx, q)
	if q.Agent == "agent-a" && q.Limit == core.MaxPage {
		p.Vectors = append(p.Vectors, f.vectors...)
	}
	return p, err
}

func (f *filed) Repair(ctx context.Context) (string, error) {
	if f.repair != nil {
		return f.repair(ctx)
	}
	return f.Store.Repair(ctx)
}

func (f *filed) Scrub(ctx context.Context) error {
	if f.scrub != nil {
		return f.scrub(ctx)
	}
	return f.Store.Scrub(ctx)
}

func filedOf(class, name string, claims []string, change func(*filed)) broken {
	return broken{class: "companion: " + class, name: name, find: func(t *testing.T) []conformance.Finding {
		t.Helper()
		var mu sync.Mutex
		paths := map[core.Store]string{}
		open := func(tb testing.TB, path string) core.Store {
			tb.Helper()
			f := &filed{Store: inFile(tb, path), path: path}
			change(f)
			mu.Lock()
			defer mu.Unlock()
			paths[f] = path
			return f
		}
		return conformance.ExamineStore(t, func(tb testing.TB) core.Store { tb.Helper(); return open(tb, filepath.Join(tb.TempDir(), "store.db")) },
			conformance.WithExactly(1, 20260301), conformance.WithoutShrinking(), conformance.WithFirst(), conformance.WithClaims(claims...),
			conformance.WithMedia(func(_ testing.TB, s core.Store) string { return filepath.Dir(paths[s]) }),
			conformance.WithReopen(func(tb testing.TB, old core.Store) core.Store {
				tb.Helper()
				_ = old.Close()
				return open(tb, paths[old])
			}))
	}}
}

func tableFiles() []broken {
	var out []broken
	beside := func(name string, f func(f *filed, use string) (string, error)) {
		out = append(out, filedOf("folder beside", name, []string{"beside"}, func(s *filed) { s.beside = func(use string) (string, error) { return f(s, use) } }))
	}
	beside("not made", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside(use)
		return filepath.Join(dir, "deeper"), err
	})
	beside("one for all uses", func(f *filed, use string) (string, error) {
		if _, err := f.Store.Beside(use); err != nil {
			return "", err
		}
		return f.Store.Beside("all")
	})
	beside("one in the other", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside(use)
		if err == nil && use != "index" {
			dir = filepath.Join(filepath.Dir(dir), "index", use)
			err = os.MkdirAll(dir, 0o700)
		}
		return dir, err
	})
	beside("another each time", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside(use)
		if err != nil {
			return "", err
		}
		return os.MkdirTemp(dir, "")
	})
	beside("uses in small letters", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside(use)
		if err == nil {
			dir = filepath.Join(filepath.Dir(dir), "use"+strings.ToLower(use))
			err = os.MkdirAll(dir, 0o700)
		}
		return dir, err
	})
	beside("one for all stores", func(f *filed, use string) (string, error) {
		if _, err := f.Store.Beside(use); err != nil {
			return "", err
		}
		dir := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(f.path))), "shared", use)
		return dir, os.MkdirAll(dir, 0o700)
	})
	beside("for all to read", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside(use)
		if err == nil {
			err = os.Chmod(dir, 0o755) //nolint:gosec // that is the fault
		}
		return dir, err
	})
	beside("emptied each time", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside(use)
		if err == nil {
			err = errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700))
		}
		return dir, err
	})
	beside("any use", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside("index")
		if err != nil {
			return "", err
		}
		dir = filepath.Join(filepath.Dir(dir), strings.ReplaceAll(use, "\x00", ""))
		return dir, os.MkdirAll(dir, 0o700)
	})
	beside("a use is made to fit", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside(use)
		if errors.Is(err, core.ErrInvalid) {
			return f.Store.Beside("rest")
		}
		return dir, err
	})
	beside("closed is fine", func(f *filed, use string) (string, error) {
		dir, err := f.Store.Beside(use)
		if errors.Is(err, core.ErrClosed) {
			return filepath.Join(f.path+".d", use), nil
		}
		return dir, err
	})
	out = append(out, filedOf("folder beside", "another after each start", []string{"beside"}, func(s *filed) {
		start := fmt.Sprint("start", time.Now().UnixNano())
		s.beside = func(use string) (string, error) {
			if _, err := s.Store.Beside(use); err != nil {
				return "", err
			}
			return s.Store.Beside(start + use)
		}
	}))
	scrub := func(name, claim string, f func(s *filed, ctx context.Context) error) {
		out = append(out, filedOf("scrubber", name, []string{claim}, func(s *filed) { s.scrub = func(ctx context.Context) error { return f(s, ctx) } }))
	}
	leaves := func(name string, journal func(core.Entry) string, f func(s *filed, ctx context.Context) error) {
		out = append(out, filedOf("scrubber", name, []string{"scrub.gone"}, func(s *filed) {
			s.journal = journal
			s.scrub = func(ctx context.Context) error { return errors.Join(f(s, ctx), s.Store.Scrub(ctx)) }
		}))
	}
	texts := func(e core.Entry) string { return e.Text() }
	nothing := func(*filed, context.Context) error { return nil }
	leaves("texts stay in a journal", texts, nothing)
	leaves("keys stay in a journal", func(e core.Entry) string { return e.Key }, nothing)
	leaves("metadata stays in a journal", func(e core.Entry) string { return e.Meta["note"] }, nothing)
	leaves("a copy of the journal stays", texts, func(s *filed, _ context.Context) error { return os.Rename(s.path+".journal", s.path+".old") })
	leaves("the end of the journal stays", texts, func(s *filed, _ context.Context) error {
		b, err := os.ReadFile(s.path + ".journal")
		return errors.Join(err, os.WriteFile(s.path+".journal", b[len(b)/2:], 0o600))
	})
	leaves("in the background", texts, func(s *filed, _ context.Context) error {
		time.AfterFunc(time.Minute, func() { _ = os.Remove(s.path + ".journal") })
		return nil
	})
	scrub("an error where nothing was erased", "scrub.keeps", func(s *filed, ctx context.Context) error {
		if st, err := s.Stats(ctx); err != nil || st.Entries == 0 {
			return errors.New("broken: nothing to scrub")
		}
		return s.Store.Scrub(ctx)
	})
	scrub("what was emptied goes too", "scrub.keeps", func(s *filed, ctx context.Context) error {
		for _, agent := range []string{"agent-a", "agent-b"} {
			for e, err := range core.All(ctx, s.Store, core.Scope{Agent: agent}, false) {
				if err == nil && e.Type == core.TypeErased {
					_, _ = s.Delete(ctx, e.SessionID().Scope(), []string{e.ID})
				}
			}
		}
		return s.Store.Scrub(ctx)
	})
	scrub("views go too", "scrub.keeps", func(s *filed, ctx context.Context) error {
		return errors.Join(s.DeleteView(ctx, core.SessionID{Agent: "agent-a", Session: "main"}), s.Store.Scrub(ctx))
	})
	scrub("vectors go too", "scrub.keeps", func(s *filed, ctx context.Context) error {
		return errors.Join(s.DropVectors(ctx, "one/3", ""), s.Store.Scrub(ctx))
	})
	scrub("metadata goes too", "scrub.keeps", func(s *filed, ctx context.Context) error {
		for e, err := range core.All(ctx, s.Store, core.Scope{Agent: "agent-a"}, false) {
			if err == nil && len(e.Meta) > 0 {
				_ = s.Update(ctx, e.SessionID().Scope(), e.ID, core.Change{Meta: map[string]string{}})
			}
		}
		return s.Store.Scrub(ctx)
	})
	scrub("what is written meanwhile goes too", "scrub.keeps", func(s *filed, ctx context.Context) error {
		err := s.Store.Scrub(ctx)
		for n := range 2 {
			id := core.SessionID{Agent: "agent-a", Session: fmt.Sprint("meanwhile-", n)}
			for range 200 {
				p, _ := s.Scan(ctx, core.ScanQuery{Scope: id.Scope(), Limit: 1})
				for _, e := range p.Entries {
					_, _ = s.Delete(ctx, id.Scope(), []string{e.ID})
					return err
				}
				time.Sleep(time.Millisecond)
			}
		}
		return err
	})
	scrub("context ignored", "cancel.store", func(s *filed, ctx context.Context) error { return s.Store.Scrub(context.WithoutCancel(ctx)) })
	scrub("closed is clean", "close.closed", func(s *filed, ctx context.Context) error {
		if err := s.Store.Scrub(ctx); !errors.Is(err, core.ErrClosed) {
			return err
		}
		return nil
	})
	return out
}

// tableRepaired are wrong ways to repair a store that is whole.
func tableRepaired() []broken {
	var out []broken
	repair := func(name, claim string, f func(s *filed, ctx context.Context) (string, error)) {
		out = append(out, filedOf("repair", name, []string{claim}, func(s *filed) {
			s.repair = func(ctx context.Context) (string, error) { return f(s, ctx) }
		}))
	}
	repair("everything goes", "repair.keeps", func(s *filed, ctx context.Context) (string, error) {
		return "", cmp.Or(s.erasedIf(ctx, func(core.Entry) bool { return true }), ctx.Err())
	})
	repair("what was emptied goes", "repair.keeps", func(s *filed, ctx context.Context) (string, error) {
		return "", cmp.Or(s.erasedIf(ctx, func(e core.Entry) bool { return e.Type == core.TypeErased }), ctx.Err())
	})
	repair("views go", "repair.keeps", func(s *filed, ctx context.Context) (string, error) {
		return "", s.DeleteView(ctx, core.SessionID{Agent: "agent-a", Session: "main"})
	})
	repair("vectors go", "repair.keeps", func(s *filed, ctx context.Context) (string, error) { return "", s.DropVectors(ctx, "one/3", "") })
	repair("a copy each time", "repair.keeps", func(s *filed, ctx context.Context) (string, error) {
		_, err := s.Store.Repair(ctx)
		return s.path + ".copy", err
	})
	repair("an error where nothing is wrong", "repair.keeps", func(s *filed, ctx context.Context) (string, error) {
		_, err := s.Store.Repair(ctx)
		return "", cmp.Or(err, errors.New("broken: nothing to repair"))
	})
	repair("context ignored", "cancel.store", func(s *filed, ctx context.Context) (string, error) { return s.Store.Repair(context.WithoutCancel(ctx)) })
	repair("closed is whole", "close.closed", func(s *filed, ctx context.Context) (string, error) {
		saved, err := s.Store.Repair(ctx)
		if errors.Is(err, core.ErrClosed) {
			err = nil
		}
		return saved, err
	})
	return out
}

// tableErased are wrong sides of erasing a session that only a store with a feed and vectors has.
func tableErased() []broken {
	erase := func(name string, change func(*filed)) broken {
		return filedOf("session eraser", name, []string{"erase.session"}, change)
	}
	return []broken{
		erase("the feed does not tell", func(f *filed) { f.silent = true }),
		erase("vectors stay", func(f *filed) { f.stay = true }),
	}
}

// TestHelpersAreSound: what the faults are put on breaks no rule, so that what catches them is the fault.
func TestHelpersAreSound(t *testing.T) {
	claims := conformance.WithClaims("vector.nearest", "beside", "scrub", "erase", "repair", "recognise", "drain", "late", "cancel.store", "close.closed")
	for name, open := range map[string]func(tb testing.TB) core.Store{
		"helped": func(testing.TB) core.Store { return newHelped() },
		"hiding": func(testing.TB) core.Store {
			h := newHelped()
			h.hides = func(e core.Entry) bool { return len(e.ID) > 0 && e.ID[len(e.ID)-1]%2 == 0 && e.Session == "hidden" }
			return h
		},
		"nearby": func(tb testing.TB) core.Store {
			tb.Helper()
			return newNearby(inFile(tb, filepath.Join(tb.TempDir(), "store.db")), func(*nearby) {})
		},
		"filed": func(tb testing.TB) core.Store {
			tb.Helper()
			path := filepath.Join(tb.TempDir(), "store.db")
			f := &filed{Store: inFile(tb, path), path: path, journal: func(e core.Entry) string { return e.Text() + e.Key + e.Meta["note"] }}
			f.scrub = func(ctx context.Context) error {
				err := f.Store.Scrub(ctx)
				if err == nil {
					err = os.WriteFile(path+".journal", nil, 0o600)
				}
				return err
			}
			return f
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.TestStore(t, open, conformance.WithCases(2), claims)
		})
	}
}
