package engine

import (
	"container/list"
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/erased"
	"github.com/contextengine/contextengine/core/injected"
	"github.com/contextengine/contextengine/core/window"
)

// Engine composes a store, a retriever and a compactor into a context engine. Make one with New. It is safe for
// concurrent use: calls for one session are serialised, sessions run in parallel. A compaction does not block the
// session while its compactor works.
type Engine struct {
	cfg   Config
	store core.Store
	views core.ViewStore
	// sharedViews says that the store keeps the views.
	sharedViews bool
	// nonce tells this engine's keys for messages without identity from those of other engines.
	nonce     string
	retriever core.Retriever
	searcher  core.Searcher
	compactor core.Compactor
	gauge     *gauge
	reader    *reader
	erasures  *erasures
	host      core.Host
	observers []core.Observer
	ownStore  bool
	info      core.Info
	log       *slog.Logger
	telemetry core.Telemetry
	newID     func() string
	legacy    *Legacy
	redact    redactor
	injected  *injected.Cutter

	health health
	// pending are counts for views that were not published since.
	pending tallies
	// patience is with the retriever.
	patience core.Breaker
	work     sync.WaitGroup
	// strangers are the providers whose rules are not known, and of which that was said.
	strangers sync.Map
	rooms     workspaces

	mu       sync.Mutex
	sessions map[core.SessionID]*session
	// lately holds the same sessions, the one used last in front.
	lately *list.List
	// held is what their windows take in memory, in bytes.
	held   int
	closed bool
}

var (
	_ core.ContextEngine = (*Engine)(nil)
	_ core.Bootstrapper  = (*Engine)(nil)
	_ core.BatchIngester = (*Engine)(nil)
	_ core.TurnCommitter = (*Engine)(nil)
	_ core.AfterTurner   = (*Engine)(nil)
	_ core.Maintainer    = (*Engine)(nil)
	_ core.SubagentHost  = (*Engine)(nil)
	_ Forgetter          = (*Engine)(nil)
	_ Armed              = (*Engine)(nil)
	_ Recaller           = (*Engine)(nil)
	_ Scorer             = (*Engine)(nil)
	_ Retrier            = (*Engine)(nil)
	_ core.Disposer      = (*Engine)(nil)
)

// The durable-turn contract that every Engine keeps, in the host's words.
const (
	CurrentTurnFence = "before-current-turn-entry-v1"
	TurnIdempotency  = "atomic-idempotent-v1"
)

// maxSessions bounds the sessions whose window is kept in memory; the least recently used one is dropped and read again when needed.
const maxSessions = 4096

// New returns an engine made of parts. It fails with ErrInvalid on a missing part or a value out of range, and with a
// RequirementError when the host lacks what the engine requires; no part has been used then.
func New(parts Parts, cfg Config, opts ...Option) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	redact, err := newRedactor(cfg.Redact)
	if err != nil {
		return nil, err
	}
	cutter, err := cfg.cutter()
	if err != nil {
		return nil, err
	}
	switch {
	case parts.Store == nil:
		return nil, invalid("new", "store", "give the engine a place to keep messages, such as backends/memory")
	case parts.Compactor == nil:
		return nil, invalid("new", "compactor", "choose one, such as strategies/archive")
	case parts.Counter == nil:
		return nil, invalid("new", "counter", "choose a tokenizer, such as models/tiktoken")
	}
	e := &Engine{
		cfg: cfg, store: parts.Store, retriever: parts.Retriever, searcher: parts.Searcher, compactor: parts.Compactor,
		host: parts.Host, ownStore: parts.OwnStore, newID: randomID, log: slog.New(slog.DiscardHandler),
		redact: redact, injected: cutter, gauge: newGauge(parts.Counter), nonce: rand.Text()[:8], sessions: make(map[core.SessionID]*session), lately: list.New(),
		info: core.Info{ID: "composed", Name: "Composed context engine", Version: "1"},
	}
	e.reader = &reader{store: e.store, gauge: e.gauge, cfg: &e.cfg}
	e.erasures = &erasures{store: e.store, reader: e.reader, newID: func() string { return e.newID() }, now: e.now, prints: make(map[string]erased.Prints)}
	if e.host == nil {
		e.host = core.NoHost{}
	}
	for _, o := range opts {
		o(e)
	}
	e.info.OwnsCompaction = e.compactor.OwnsCompaction()
	e.info.TurnMaintenance = "background"
	e.info.CurrentTurnFence, e.info.TurnIdempotency = CurrentTurnFence, TurnIdempotency
	e.info.Parts = parts.Names
	e.info.Requires = e.requirements()
	if err := e.info.Requires.Check(e.host, e.info.ID); err != nil {
		return nil, err
	}
	e.legacy = NewLegacy(e.host)
	e.reader.tailer, _ = core.As[core.Tailer](e.store)
	if v, ok := core.As[core.ViewStore](e.store); ok {
		e.views, e.sharedViews = v, true
	} else if e.views = parts.Views; e.views == nil {
		e.views = newLocalViews()
	}
	if e.searcher == nil {
		e.searcher, _ = core.As[core.Searcher](e.store)
	}
	if err := e.attach(parts); err != nil {
		return nil, err
	}
	return e, nil
}

// attach hands the store to the parts that want it and collects the observers among them, each once.
func (e *Engine) attach(parts Parts) error {
	seen := make(map[any]bool)
	add := func(part any) error {
		if part == nil {
			return nil
		}
		if reflect.ValueOf(part).Comparable() {
			if seen[part] {
				return nil
			}
			seen[part] = true
		}
		if a, ok := part.(core.Attacher); ok {
			if err := a.Attach(e.store); err != nil {
				return fmt.Errorf("core: new: attach %T: %w", part, err)
			}
		}
		if o, ok := part.(core.Observer); ok {
			e.observers = append(e.observers, o)
		}
		return nil
	}
	for _, o := range parts.Observers {
		if err := add(o); err != nil {
			return err
		}
	}
	if err := add(parts.Searcher); err != nil {
		return err
	}
	if err := add(e.retriever); err != nil {
		return err
	}
	return add(e.compactor)
}

// Info describes the engine and what is wrong with it.
func (e *Engine) Info() core.Info {
	info := e.info
	info.Health = e.health.problems()
	return info
}

// join counts a call as work under way, which Dispose waits for; it is ErrClosed afterwards. It is for calls that may do something before they open a session, or
// without one.
func (e *Engine) join(op string) (leave func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, fmt.Errorf("core: %s: engine: %w", op, core.ErrClosed)
	}
	e.work.Add(1)
	return e.work.Done, nil
}

// Dispose waits for work under way, as long as ctx lasts, and closes the store if the engine owns it. Where ctx ends first, the store is closed when the work
// is done. Later calls return ErrClosed.
func (e *Engine) Dispose(ctx context.Context) error {
	e.mu.Lock()
	closed := e.closed
	e.closed = true
	e.mu.Unlock()
	if closed {
		return nil
	}
	done := make(chan error, 1)
	go func() {
		e.work.Wait()
		if e.ownStore {
			done <- e.store.Close()
		}
		close(done)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("core: dispose: work still under way: %w", ctx.Err())
	}
}

// Ping asks every part that can be asked whether it can be used now.
func (e *Engine) Ping(ctx context.Context) error {
	var errs []error
	if p, ok := core.As[core.Pinger](e.store); ok {
		errs = append(errs, p.Ping(ctx))
	}
	for _, part := range []any{e.retriever, e.compactor} {
		if p, ok := part.(core.Pinger); ok {
			errs = append(errs, p.Ping(ctx))
		}
	}
	return errors.Join(errs...)
}

// Store returns where the engine keeps its entries. It is for reading: what is changed behind the engine's back is not seen by
// its windows.
func (e *Engine) Store() core.Store { return e.store }

// Retriever returns what proposes entries worth recalling; nil when nothing is recalled. It is for measuring it apart.
func (e *Engine) Retriever() core.Retriever { return e.retriever }

// Compactor returns the engine's compactor. It is for measuring it apart; Engine.Compact checks and publishes what it proposes.
func (e *Engine) Compactor() core.Compactor { return e.compactor }

// policy returns the window policy in force.
func (c *Config) policy() window.Policy {
	w := c.Window
	return window.Policy{High: w.High, Low: w.Low, LowTokens: w.LowTokens, Reserve: w.Reserve, CachePrice: w.CachePrice, KeepResults: w.KeepResults}
}

// recallShare returns the share of the budget set aside for recall.
func (e *Engine) recallShare(mode core.PromptMode) float64 {
	if e.retriever == nil || mode == core.PromptNone {
		return 0
	}
	share := e.cfg.Recall.Share
	if s, ok := e.retriever.(core.Sharer); ok {
		share = min(max(s.RecallShare(), 0), 0.5)
	}
	if mode == core.PromptMinimal {
		share /= 2
	}
	return share
}

// now returns the host's time in UTC, to the millisecond: what a store can keep.
func (e *Engine) now() time.Time { return e.host.Now().UTC().Truncate(time.Millisecond) }

// randomID begins with the time, so that a store's index of ids grows at its end, and ends in 80 random bits.
func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[6:]) // never fails
	ms := uint64(time.Now().UnixMilli())
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	return "e" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

func ftoa(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// invalid returns an ErrInvalid that names the operation, the field and the remedy.
func invalid(op, field, remedy string) error {
	return fmt.Errorf("core: %s: %s: %s: %w", op, field, remedy, core.ErrInvalid)
}

// What a part is given is its own: it may write to it, also after the call, and changes nothing of what the engine holds. So is what the engine takes from a part.

// own returns entries that share nothing with those given.
func own(entries []core.Entry) []core.Entry {
	out := make([]core.Entry, len(entries))
	for i := range entries {
		out[i] = entries[i].Clone()
	}
	return out
}

// ownStub returns the same stub with texts of its own.
func ownStub(st window.Stub) window.Stub {
	st.Texts = maps.Clone(st.Texts)
	return st
}
