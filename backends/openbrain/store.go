package openbrain

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/endpoint"
)

// Store keeps entries as thoughts of an OpenBrain server. It is safe for concurrent use, by several processes too. It
// starts no goroutines of its own.
type Store struct {
	cfg    Config
	client *client
	// invalid is what every call returns while the configuration is not usable.
	invalid error
	closed  atomic.Bool
	// own says that the transport is the store's.
	own     bool
	skipped atomic.Int64
	// newsLimit is the limit that the server accepts for news; 0 until it refused one.
	newsLimit atomic.Int64

	agents agents
	ids    thoughtIDs
	sizes  sizes
	scans  snapshots
	seen   remembered

	mirrors mirrors
}

var (
	_ core.Store    = (*Store)(nil)
	_ core.Searcher = (*Store)(nil)
	_ core.Pinger   = (*Store)(nil)
	_ core.Tailer   = (*Store)(nil)

	_ core.SessionEraser = (*Store)(nil)
	_ core.Recogniser    = (*Store)(nil)
)

// Option sets what no configuration file can hold.
type Option func(*options)

type options struct {
	client *http.Client
	log    *slog.Logger
	sleep  func(context.Context, time.Duration) error
	now    func() time.Time
}

// WithHTTPClient sets the HTTP client whose transport, cookies and timeout are used; redirects are refused all the same.
func WithHTTPClient(c *http.Client) Option { return func(o *options) { o.client = c } }

// WithLogger sets the logger; without it nothing is logged. Neither content nor key is ever logged.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// WithSleep sets how to wait between tries. It returns ctx's error when ctx ends first.
func WithSleep(sleep func(ctx context.Context, d time.Duration) error) Option {
	return func(o *options) { o.sleep = sleep }
}

// WithClock sets the clock that Retry-After dates are compared with.
func WithClock(now func() time.Time) Option { return func(o *options) { o.now = now } }

// New returns a store for a server. It talks to nobody and never fails: when cfg is not valid, every call of the store
// returns what Config.Validate says, so that an engine reports it at bootstrap.
func New(cfg Config, opts ...Option) *Store {
	o := options{log: slog.New(slog.DiscardHandler), sleep: endpoint.Sleep, now: time.Now}
	for _, opt := range opts {
		opt(&o)
	}
	s := &Store{cfg: cfg.normalized(), invalid: cfg.Validate()}
	if o.client == nil {
		// A transport of one's own, so that Close closes no other's connections.
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			o.client, s.own = &http.Client{Transport: t.Clone()}, true
		}
	}
	s.client = newClient(s.cfg, o.client)
	s.client.log, s.client.sleep, s.client.now = o.log, o.sleep, o.now
	return s
}

// Open is New for those who want to know at once: it returns *ConfigError when BaseURL or APIKey is missing, and
// core.ErrInvalid when another field is out of range. It does not talk to the server either; see Ping.
func Open(ctx context.Context, cfg Config, opts ...Option) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, failed("open", "", err)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return New(cfg, opts...), nil
}

// Check returns what is wrong with the configuration, or nil. It does not talk to the server.
func (s *Store) Check() error { return s.invalid }

// Ping returns nil when the server can be reached and accepts the key.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.ready(ctx, "ping"); err != nil {
		return err
	}
	err := error(nil)
	asks := !s.client.can.noStats.Load()
	if asks {
		_, err = s.client.do(ctx, "ping", call{method: http.MethodGet, path: pathStats})
	}
	if !asks || lacks(err) || tooMuch(err) {
		s.client.can.noStats.Store(true)
		_, err = s.client.do(ctx, "ping", call{
			method: http.MethodGet, path: pathRecent, query: url.Values{"limit": {"1"}}, wantJSON: true,
		})
	}
	if err != nil {
		return failed("ping", "", err)
	}
	return nil
}

// KeepsPositions reports whether the server has said that it stores one entry at a position, whoever sends it, as the server of this project does. It
// says so in its answer to an append.
func (s *Store) KeepsPositions() bool { return s.client.places.Load() }

// Skipped returns how often a thought was passed over because it is not an entry: it was written by others.
func (s *Store) Skipped() int64 { return s.skipped.Load() }

// Close makes all further calls return core.ErrClosed. A second call returns nil.
func (s *Store) Close() error {
	if s.closed.CompareAndSwap(false, true) {
		if s.own {
			s.client.http.GetClient().CloseIdleConnections()
		}
		s.scans.drop()
		s.mirrors.clear()
	}
	return nil
}

// String describes the store without its key.
func (s *Store) String() string { return "openbrain.Store{" + s.cfg.String() + "}" }

// GoString is String.
func (s *Store) GoString() string { return s.String() }

// ready returns why an operation cannot begin.
func (s *Store) ready(ctx context.Context, op string) error {
	if s.closed.Load() {
		return failed(op, "", core.ErrClosed)
	}
	if s.invalid != nil {
		return s.invalid
	}
	if err := ctx.Err(); err != nil {
		return failed(op, "", err)
	}
	return nil
}

// readyFor is ready for operations on a scope.
func (s *Store) readyFor(ctx context.Context, op string, scope core.Scope) error {
	if err := s.ready(ctx, op); err != nil {
		return err
	}
	return scope.Check("openbrain: " + op)
}

// take lists the agent's thoughts and sorts them out. When the error is *partial, what could be seen comes with it.
func (s *Store) take(ctx context.Context, op, agent string) (census, error) {
	c, foreign, ok, err := s.followed(ctx, op, agent)
	if err != nil {
		return census{}, err
	}
	if !ok {
		thoughts, cut := s.client.list(ctx, op, s.cfg.source(agent))
		if err = cut; thoughts == nil && err != nil {
			return census{}, err
		}
		var records []record
		records, foreign = s.cfg.records(thoughts, agent)
		if err != nil {
			records = s.seen.with(agent, records)
			s.sayLimits(ctx, len(thoughts))
		}
		c = sortOut(records)
	}
	s.skipped.Add(int64(foreign))
	s.sizes.put(agent, len(c.visible)+len(c.copies)+len(c.hidden)+foreign)
	for i := range c.visible {
		if r := &c.visible[i]; !c.noted {
			s.ids.put(r.entry.ID, r.thought)
		}
	}
	return c, err
}

// sayLimits says once that the server shows only its newest thoughts.
func (s *Store) sayLimits(ctx context.Context, shown int) {
	if s.cfg.Keep == KeepAll && s.client.can.told.CompareAndSwap(false, true) {
		s.client.log.WarnContext(ctx, "openbrain server shows its newest thoughts only: older ones are found by search, and after a restart a session's window begins with the newest; "+
			"a local store in front keeps all of it", "shown", shown)
	}
}
