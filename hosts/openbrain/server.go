package openbrain

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/homepath"
	"github.com/contextengine/contextengine/strategies/semantic"
)

// Server answers the OpenBrain interface from a store. Make one with New; it is safe for concurrent use.
type Server struct {
	cfg      Config
	store    core.Store
	searcher core.Searcher
	// observers are told of every change: the indexes behind the searchers.
	observers []core.Observer
	log       *slog.Logger
	now       func() time.Time
	keys      *keyring
	catalogue *catalogue
	changes   *changes
	feed      core.ChangeFeed // nil where the store has none
	embedding *embedding      // nil without vectors
	handler   http.Handler

	// slots are taken by requests that are worked on.
	slots chan struct{}
	// bodies are those that requests hold.
	bodies *intake
	// answers are those on their way; reads are taken while something is read for one.
	answers  *intake
	reads    chan struct{}
	seq      atomic.Int64
	draining atomic.Bool
	// patching keeps two changes of one thought from mixing.
	patching [64]sync.Mutex
}

// Vectors is an index that finds thoughts by the meaning of their text, as semantic.VectorIndex does. Appended must not
// wait for an embedder, Load reads what the store holds of a source and embeds all that is not, and Pending says how many that are.
type Vectors interface {
	core.Searcher
	core.Observer
	Load(ctx context.Context, agent string) error
	Pending(agent string) int
}

// Option sets what no configuration file can hold.
type Option func(*options)

type options struct {
	log      *slog.Logger
	now      func() time.Time
	vectors  Vectors
	embedder core.Embedder
}

// WithLogger sets where the access log and failures go; without it nothing is logged. Contents, queries, metadata, sources and keys
// are never logged.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// WithClock sets the clock that dates thoughts.
func WithClock(now func() time.Time) Option { return func(o *options) { o.now = now } }

// WithEmbedder makes searches find thoughts by meaning too. Thoughts are stored at once and embedded in the background; while the
// embedder is down they wait, and searches go by words and say so in HeaderSearch. Which thoughts have no vector yet is known from
// the store: after a start the background worker goes on with them. Where a store keeps no vectors (see vector.Store), those are
// all thoughts.
func WithEmbedder(e core.Embedder) Option { return func(o *options) { o.embedder = e } }

// WithVectors is WithEmbedder for an index of the caller's, attached to the same store. It should not embed thoughts while it searches.
func WithVectors(v Vectors) Option { return func(o *options) { o.vectors = v } }

// New returns a server over a store and a searcher over that store. When searcher is nil, the store has to be one. A searcher that is a
// core.Observer, as lexical.Index is, is told of every change; the caller has attached it to the store. The error wraps
// core.ErrInvalid when cfg is not usable or a part is missing. Call Close before the store is closed.
func New(cfg Config, store core.Store, searcher core.Searcher, opts ...Option) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if store == nil {
		return nil, fmt.Errorf("openbrain: new: no store given: %w", core.ErrInvalid)
	}
	for field, path := range map[string]*string{"keysFile": &cfg.KeysFile, "tlsCert": &cfg.TLSCert, "tlsKey": &cfg.TLSKey} {
		var err error
		if *path, err = homepath.Expand(*path); err != nil {
			return nil, fmt.Errorf("openbrain: config: %s: %w", field, err)
		}
	}
	o := options{log: discard(), now: time.Now}
	for _, opt := range opts {
		opt(&o)
	}
	s := &Server{
		cfg: cfg, store: store, searcher: searcher, log: o.log, now: o.now, catalogue: newCatalogue(store, o.now), changes: newChanges(store, o.now()),
		slots: make(chan struct{}, cfg.MaxConcurrent), bodies: newIntake(bodiesHeld * cfg.MaxBody),
		answers: newIntake(max(answersHeld*cfg.MaxBody, answersLeast)), reads: make(chan struct{}, readers),
	}
	s.feed, _ = core.As[core.ChangeFeed](store)
	if obs, ok := searcher.(core.Observer); ok {
		s.observers = append(s.observers, obs)
	}
	if searcher == nil {
		own, ok := core.As[core.Searcher](store)
		if !ok {
			return nil, fmt.Errorf("openbrain: new: the store does not search, give a searcher: %w", core.ErrInvalid)
		}
		s.searcher = own
	}
	var err error
	if s.keys, err = newKeyring(cfg, s.log); err != nil {
		return nil, err
	}
	if o.embedder != nil && o.vectors == nil {
		vc := semantic.DefaultVectorConfig()
		vc.PerSearch, vc.MaxChars = 0, cfg.EmbedMaxBytes // the worker embeds
		index, err := semantic.NewVector(vc, newMemo(patient{o.embedder}), semantic.WithLogger(o.log))
		if err == nil {
			err = index.Attach(store)
		}
		if err != nil {
			return nil, fmt.Errorf("openbrain: new: %w", err)
		}
		o.vectors = index
	}
	if o.vectors != nil {
		s.observers = append(s.observers, o.vectors)
		s.embedding = startEmbedding(o.vectors, cfg, s.log, s.catalogue)
	}
	s.handler = s.routes()
	return s, nil
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// Handler returns the server as an http.Handler. Whoever serves it has to set timeouts and check the address; Serve does both.
func (s *Server) Handler() http.Handler { return s.handler }

// Close stops the background worker and waits for it. It does not close the store. A second call returns nil.
func (s *Server) Close() error {
	s.draining.Store(true)
	if s.embedding != nil {
		s.embedding.close()
	}
	return nil
}

// nextSeq returns the time in microseconds, later than any before.
func (s *Server) nextSeq() int64 {
	for {
		last := s.seq.Load()
		next := max(s.now().UnixMicro(), last+1)
		if s.seq.CompareAndSwap(last, next) {
			return next
		}
	}
}

// tell hands a change to the observers. The store holds the change already, so it cannot fail any more.
func (s *Server) tell(ctx context.Context, source string, change func(context.Context, core.Observer) error) {
	ctx = context.WithoutCancel(ctx)
	for _, o := range s.observers {
		if err := change(ctx, o); err != nil {
			s.log.ErrorContext(ctx, "openbrain: an index did not take a change", slog.Any("error", hide(err, source)))
		}
	}
}

// appended tells of new thoughts of one source.
func (s *Server) appended(ctx context.Context, entries []core.Entry) {
	if len(entries) == 0 {
		return
	}
	source := entries[0].Agent
	s.tell(ctx, source, func(ctx context.Context, o core.Observer) error { return o.Appended(ctx, entries) })
	if s.embedding != nil {
		s.embedding.enqueue(source)
	}
}
