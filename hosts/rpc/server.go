package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/internal/identity"
)

// Engines gives each session its engine. An agent and a session that are empty ask for the engine of the base configuration.
//
// Implementers: safe for concurrent use; equal configurations have one engine. When they also have Close(context.Context) error,
// Server.Close calls it.
type Engines interface {
	Engine(ctx context.Context, agent, session string) (core.ContextEngine, Arm, error)
}

// Told are Engines that go by what a host knows about its agents.
//
// Implementers: Factory returns what of the channels cannot be used and is left out; it holds from then on for all engines of the agent, or, with an empty name, of
// agents that nothing else is said of. Safe for concurrent use.
type Told interface {
	Factory(agent string, f Facts) (ignored []string, err error)
	// Provider is told who serves the model of a session, before its engine is asked for.
	Provider(session core.SessionID, provider string)
}

// Server lets clients drive engines. Make one with New; it is safe for concurrent use. Several Serve methods may run at once.
type Server struct {
	engines Engines
	host    *Host
	cfg     Config
	log     *slog.Logger
	program Program
	methods map[string]method
	started time.Time

	known  *transcripts
	queues queues
	spawns spawns
	// slots are taken by calls that are worked on.
	slots   chan struct{}
	running atomic.Int64
	queued  atomic.Int64

	mu      sync.Mutex
	conns   map[*conn]struct{}
	engine  []core.ContextEngine // those in use, for their health
	stopped bool
	// listeners are those of Serve, with what ends it.
	listeners map[net.Listener]context.CancelFunc
	serving   sync.WaitGroup
}

// New returns a server over engines that were made with host. A nil host is one that no engine knows: compactions and completions then never reach
// a client. It fails with core.ErrInvalid when the configuration is not usable.
func New(engines Engines, host *Host, opts ...Option) (*Server, error) {
	s := &Server{
		engines: engines, host: host, cfg: DefaultConfig(), log: slog.New(slog.DiscardHandler), program: Program{Name: "contextengine"},
		started: time.Now(), conns: make(map[*conn]struct{}),
		listeners: make(map[net.Listener]context.CancelFunc),
	}
	for _, o := range opts {
		o(s)
	}
	if engines == nil {
		return nil, fmt.Errorf("rpc: new: engines: give the server something that makes engines: %w", core.ErrInvalid)
	}
	if s.host == nil {
		s.host = NewHost()
	}
	if err := s.cfg.Validate(); err != nil {
		return nil, err
	}
	s.methods = methods()
	s.known = newTranscripts(s.cfg.MaxRemembered)
	s.slots = make(chan struct{}, s.cfg.MaxRunning)
	return s, nil
}

// Close refuses new connections and calls, waits for those under way as long as ctx lasts and Config.ShutdownTimeout, cancels what is left,
// and closes the engines if they can be closed. Its error is theirs, or that of ctx. A second call returns nil.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return nil
	}
	s.stopped = true
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	for _, cancel := range s.listeners {
		cancel()
	}
	s.mu.Unlock()
	var ends sync.WaitGroup
	for _, c := range conns {
		ends.Go(func() { c.end(ctx) })
	}
	ends.Wait()
	done := make(chan struct{})
	go func() { s.serving.Wait(); close(done) }()
	var errs []error
	select {
	case <-done:
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("rpc: close: calls are still under way: %w", ctx.Err()))
	}
	if c, ok := s.engines.(interface {
		Close(ctx context.Context) error
	}); ok {
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(errs...)
}

// serve runs one connection until it ends. It returns nil when the client ended it or asked for the end.
func (s *Server) serve(ctx context.Context, w *wire, linger bool) error {
	c, err := s.connect(ctx, w, linger)
	if err != nil {
		_ = w.Close()
		return err
	}
	stop := context.AfterFunc(ctx, func() { c.end(context.WithoutCancel(ctx)) })
	defer stop()
	return c.wait()
}

// connect registers a connection and starts it.
func (s *Server) connect(ctx context.Context, w *wire, linger bool) (*conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, fmt.Errorf("rpc: connect: server: %w", core.ErrClosed)
	}
	if len(s.conns) >= s.cfg.MaxConnections {
		return nil, fmt.Errorf("rpc: connect: %d clients are connected already: %w", len(s.conns), core.ErrUnavailable)
	}
	c := newConn(ctx, s, w, linger)
	s.conns[c] = struct{}{}
	s.serving.Add(1)
	c.start()
	return c, nil
}

// leave removes a connection that ended.
func (s *Server) leave(c *conn) {
	s.host.leave(c)
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.serving.Done()
}

// engineFor returns the engine of a session. What its parts report becomes an error of the configuration.
func (s *Server) engineFor(ctx context.Context, id core.SessionID) (core.ContextEngine, Arm, error) {
	e, arm, err := s.engines.Engine(ctx, id.Agent, id.Session)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, core.ErrClosed) || errors.Is(err, core.ErrUnavailable) || errors.Is(err, capability.ErrRequirement) {
			return nil, arm, fmt.Errorf("engine: %w", err)
		}
		if named, ok := misconfigured(err); ok {
			return nil, arm, named
		}
		return nil, arm, fail(CodeConfiguration, "engine: "+err.Error())
	}
	s.mu.Lock()
	if !slices.ContainsFunc(s.engine, func(known core.ContextEngine) bool { return identity.Same(known, e) }) {
		s.engine = append(s.engine, e)
	}
	s.mu.Unlock()
	return e, arm, nil
}

// health describes the server.
func (s *Server) health() HealthResult {
	s.mu.Lock()
	engines := slices.Clone(s.engine)
	h := HealthResult{
		Status: "ok", Version: s.program.Version, UptimeMs: time.Since(s.started).Milliseconds(), Connections: len(s.conns),
		InFlight: int(s.running.Load()), Problems: []core.Problem{},
	}
	stopped := s.stopped
	s.mu.Unlock()
	h.Sessions = s.known.count()
	for _, e := range engines {
		h.Problems = append(h.Problems, e.Info().Health...)
	}
	switch {
	case stopped:
		h.Status = "stopping"
	case len(h.Problems) > 0:
		h.Status = "problems"
	}
	return h
}

// limits are what clients are told.
func (s *Server) limits() Limits {
	return Limits{
		MaxFrameBytes: s.cfg.MaxFrame, MaxInFlight: s.cfg.MaxInFlight, MaxCallMs: s.cfg.MaxCall.Milliseconds(),
		MaxTranscriptMessages: s.cfg.MaxTranscript,
	}
}

// ServeStdio serves one client until its input ends, it asks for the end, or ctx ends; calls under way then have Config.ShutdownTimeout to come to their end. It
// returns nil in these cases. in and out are closed if they can be. A Read of in that cannot be interrupted, such as of a terminal, ends with the
// process.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	closeAll := func() error {
		var errs []error
		for _, f := range []any{in, out} {
			if c, ok := f.(io.Closer); ok {
				errs = append(errs, c.Close())
			}
		}
		return errors.Join(errs...)
	}
	return s.serve(ctx, newWire(in, out, closeAll, s.cfg.MaxFrame, s.cfg.WriteTimeout), true)
}
