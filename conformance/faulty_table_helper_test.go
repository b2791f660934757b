package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/internal/needs"
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
	backlog   func(*upkeep.Backlog)
	remote    func(ctx context.Context) error
	late      func(q core.SearchQuery) bool
	// asked is told of each search.
	asked func(ctx context.Context, q core.SearchQuery)
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

func (h *helped) Backlog(ctx context.Context) (upkeep.Backlog, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := upkeep.Backlog{Waiting: h.waiting, Bytes: int64(h.waiting) * 100}
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
	if h.asked != nil {
		h.asked(ctx, q)
	}
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
	return broken{class: "companion: " + class, name: name, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
		t.Helper()
		return early(3, only, func(opts ...conformance.Option) []conformance.Finding {
			return conformance.ExamineStore(t, func(testing.TB) core.Store {
				h := newHelped()
				change(h)
				return h
			}, opts...)
		}, conformance.WithClaims(claims...))
	}}
}

// tableHelpers are wrong companions of a store in memory.
func tableHelpers() []broken {
	return slices.Concat(tableErasers(), tableRecognisers(), tableDrainers(), tableNearest(), tableFiles(), tableErased(), tableRepaired(), tableVectorsReopened(), outsideCompanions(), brokenOff(), lookedAfter(), lengthsForgotten(), oldHits())
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
	for pattern, fits := range map[string]func(pattern, name string) bool{
		"SQL pattern": func(pattern, name string) bool {
			ok, _ := regexp.MatchString("^"+strings.NewReplacer("%", ".*", "_", ".").Replace(regexp.QuoteMeta(pattern))+"$", name)
			return ok
		},
		"pattern of a path":  func(pattern, name string) bool { ok, _ := filepath.Match(pattern, name); return ok },
		"regular expression": func(pattern, name string) bool { ok, _ := regexp.MatchString(pattern, name); return ok },
	} {
		eraser("every session that the name is a "+pattern+" of", func(h *helped, ctx context.Context, id core.SessionID) error {
			return cmp.Or(h.erased(ctx, id), h.erasedIf(ctx, id, func(e core.Entry) bool { return fits(id.Session, e.Session) }))
		})
		eraser("that of every agent that the name is a "+pattern+" of", func(h *helped, ctx context.Context, id core.SessionID) error {
			if fits(id.Agent, "agent-a") {
				return cmp.Or(h.erased(ctx, id), h.erased(ctx, core.SessionID{Agent: "agent-a", Session: id.Session}))
			}
			return h.erased(ctx, id)
		})
	}
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
	add("whoever said it", func(h *helped, ctx context.Context, id core.SessionID, m []message.Message) ([]core.Entry, error) {
		p, err := h.Store.Scan(ctx, core.ScanQuery{Scope: id.Scope(), Limit: 100})
		return slices.DeleteFunc(p.Entries, func(e core.Entry) bool {
			return !slices.ContainsFunc(m, func(m message.Message) bool { return m.Text() == e.Text() })
		}), err
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
	drain("nothing is left where there was no time", "drain.delivers", func(h *helped, ctx context.Context) (int, error) {
		if err := h.open(ctx); err != nil {
			return 0, err
		}
		return h.drained(ctx)
	})
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
	for name, f := range map[string]func(*upkeep.Backlog){
		"always one":        func(b *upkeep.Backlog) { b.Waiting++ },
		"negative":          func(b *upkeep.Backlog) { b.Waiting-- },
		"bytes of the past": func(b *upkeep.Backlog) { b.Bytes = 700 },
		"negative bytes":    func(b *upkeep.Backlog) { b.Bytes -= 1 },
		"oldest stays":      func(b *upkeep.Backlog) { b.Oldest = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC) },
		"set aside":         func(b *upkeep.Backlog) { b.SetAside = 2 },
		"full":              func(b *upkeep.Backlog) { b.Full = "no room" },
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

// TestHelpersAreSound: what the faults are put on breaks no rule, so that what catches them is the fault.
func TestHelpersAreSound(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
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
