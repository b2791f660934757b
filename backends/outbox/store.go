package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/internal/files"
)

// Store is a local store whose changes are delivered to a remote one. Make one with Open; it is safe for concurrent use, also by other processes
// with the same local store and journal. One goroutine delivers, and each search of the
// remote has one; Close stops them.
type Store struct {
	cfg   Config
	log   *slog.Logger
	now   func() time.Time
	local core.Store
	// far is the remote store.
	far core.Store
	// inner is what Unwrap returns.
	inner core.Store
	j     *journal

	// turn is the right to change local store and queue, together with the journal's lock: their orders are the same.
	turn chan struct{}
	// copying is held by whoever copies the remote's history.
	copying chan struct{}

	mu sync.Mutex
	q  *queue
	// reloads counts how often the journal was read from its front.
	reloads int
	news    chan struct{} // closed and replaced at every change that somebody may wait for
	// fails counts the failed tries since the last success anywhere, next is when the next try is allowed.
	fails int
	next  time.Time
	last  failure
	leads bool
	// erased are entries that were deleted here and may be found there still.
	erased map[string]bool
	// believed holds what searches found in the remote alone.
	believed map[string]core.Entry
	// wanted are agents whose history is to be copied in the background; asked is when that may be tried again.
	wanted   []string
	asked    time.Time
	askFails int

	// textOnly says that the remote keeps the text of entries and knows them by ids of its own; swept holds up to which change the sessions were
	// erased there as a whole.
	textOnly bool
	swept    map[core.SessionID]uint64
	// asks is nil where the remote has no search.
	asks *asker

	wake    chan struct{}
	stop    context.CancelFunc
	stopped chan struct{}

	// open is held for reading by every call, so that Close waits for those that run.
	open    sync.RWMutex
	closing chan struct{}
	closed  atomic.Bool
	once    sync.Once
	ended   error
}

// failure is the last thing that went wrong in delivery.
type failure struct {
	err  error
	text string
	at   time.Time
}

var (
	_ core.Store        = (*Store)(nil)
	_ core.Pinger       = (*Store)(nil)
	_ upkeep.Drainer    = (*Store)(nil)
	_ upkeep.Backlogger = (*Store)(nil)
	_ core.Unwrapper    = (*Store)(nil)
)

// Option sets what no configuration file can hold.
type Option func(*Store)

// WithLogger sets the logger; without it nothing is logged. Contents are never logged.
func WithLogger(l *slog.Logger) Option { return func(s *Store) { s.log = l } }

// WithClock sets the clock that ages are measured with. Waits are not.
func WithClock(now func() time.Time) Option { return func(s *Store) { s.now = now } }

// Open puts local in front of remote, takes up what an earlier process left in the journal, and begins to deliver. It returns
// core.ErrInvalid for a configuration that cannot work and ErrDamaged for a journal that is not what was written. It does not talk to
// the remote. When it succeeds, the Store closes both; when it fails, neither was used.
//
// ctx bounds Open alone; its values are there for the calls in the background.
func Open(ctx context.Context, cfg Config, local, remote core.Store, opts ...Option) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if local == nil || remote == nil {
		return nil, fmt.Errorf("outbox: open: a local and a remote store are needed: %w", core.ErrInvalid)
	}
	if err := ctx.Err(); err != nil {
		return nil, failed("open", "", err)
	}
	s := &Store{
		cfg: cfg.normalized(), log: slog.New(slog.DiscardHandler), now: time.Now, local: local, far: remote,
		turn: make(chan struct{}, 1), copying: make(chan struct{}, 1), q: newQueue(), news: make(chan struct{}),
		wake: make(chan struct{}, 1), stopped: make(chan struct{}), closing: make(chan struct{}),
	}
	for _, opt := range opts {
		opt(s)
	}
	s.inner = companions(s)
	if t, ok := core.As[interface{ KeepsTextOnly() bool }](remote); ok {
		s.textOnly = t.KeepsTextOnly()
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	if s.asks != nil {
		s.asks.ctx = background
	}
	file, err := s.cfg.file(local)
	if err != nil {
		return nil, err
	}
	if file != "" {
		if s.j, err = newJournal(file, s.cfg, s.log); err != nil {
			return nil, failed("open", "", err)
		}
	}
	if err := s.acquire(ctx); err != nil {
		if s.j != nil {
			err = errors.Join(err, s.j.close())
		}
		return nil, failed("open", "", err)
	}
	s.release()
	s.lead(background)
	go s.deliver(background)
	return s, nil
}

// Unwrap returns the local store, whose companions are those of the Store: it holds everything. Where the remote can
// search, what Unwrap returns can too, see Search. Changes made to the local store directly are not delivered.
func (s *Store) Unwrap() core.Store { return s.inner }

// enter begins a call. It is followed by leave when it returns nil.
func (s *Store) enter(ctx context.Context, op string) error {
	if s.closed.Load() { // without waiting for Close to end
		return failed(op, "", core.ErrClosed)
	}
	s.open.RLock()
	err := ctx.Err()
	if s.closed.Load() {
		err = core.ErrClosed
	}
	if err != nil {
		s.open.RUnlock()
		return failed(op, "", err)
	}
	return nil
}

func (s *Store) leave() { s.open.RUnlock() }

// acquire takes the right to change local store and queue, in this process and among all, and makes the queue what the journal says.
func (s *Store) acquire(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.j == nil {
		return nil
	}
	if err := s.j.lock.wait(ctx); err != nil {
		<-s.turn
		return err
	}
	if err := s.catchUp(); err != nil {
		s.release()
		return err
	}
	return nil
}

func (s *Store) release() {
	if s.j != nil {
		if err := files.Unlock(s.j.lock.f); err != nil {
			s.log.Warn("outbox lock cannot be given back", "file", s.j.lock.path, "err", err)
		}
	}
	<-s.turn
}

func (s *Store) catchUp() error {
	records, whole, err := s.j.catchUp()
	if err != nil {
		return err
	}
	if !whole && len(records) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if whole {
		s.reloads++
		old := s.q
		s.q = newQueue()
		defer func() { s.q.inherit(old) }()
		s.q.watched = old.watched
	}
	for i := range records {
		s.q.apply(&records[i])
	}
	s.tell()
	return nil
}

// note takes records into the queue. They are in the journal already.
func (s *Store) note(records ...record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range records {
		s.q.apply(&records[i])
	}
	s.tell()
}

// tell wakes all who wait for a change of the queue. mu is held.
func (s *Store) tell() {
	close(s.news)
	s.news = make(chan struct{})
}

// nudge makes the delivery look what there is to do.
func (s *Store) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// refresh takes up what other processes wrote.
func (s *Store) refresh(ctx context.Context) error {
	if s.j == nil {
		return nil
	}
	if err := s.acquire(ctx); err != nil {
		return err
	}
	s.release()
	return nil
}

// Close delivers for up to Config.CloseTimeout what waits, unless another process does, and closes both stores. What is left
// then is delivered after the next Open; that is no error. Calls that wait for room return core.ErrClosed.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.closed.Store(true)
		close(s.closing)
		s.open.Lock() // all calls have ended
		defer s.open.Unlock()
		s.mu.Lock()
		leads := s.leads
		s.mu.Unlock()
		if leads {
			ctx, cancel := context.WithTimeout(context.Background(), s.cfg.CloseTimeout)
			if left, err := s.drain(ctx, nil); left > 0 {
				s.log.WarnContext(ctx, "outbox closes before everything was delivered", "left", left, "err", scrub(err, nil))
			}
			cancel()
		}
		s.stop()
		<-s.stopped
		if s.asks != nil {
			s.asks.work.Wait()
		}
		if s.j != nil {
			s.ended = s.j.close()
		}
		if s.ended = errors.Join(s.ended, s.far.Close(), s.local.Close()); s.ended != nil {
			s.ended = failed("close", "", s.ended)
		}
	})
	return s.ended
}
