package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment"
)

// maxErrors is how many errors a report quotes.
const maxErrors = 5

// runner is one soak under way.
type runner struct {
	o      Options
	engine core.ContextEngine
	begin  time.Time

	assemble, store, erase                      histogram
	turns, ended, restarts, compactions, errors atomic.Int64
	past, names                                 atomic.Int64
	mu                                          sync.Mutex
	texts                                       []string
}

// Run opens an engine, lives sessions over it for the time asked for, closes it and judges what it measured. It fails when options are out of range,
// when the engine cannot be opened or closed, and when ctx ends; the report is then of the time until there. Errors of the engine while sessions live are
// findings, not failures.
func Run(ctx context.Context, o Options) (rep Report, err error) {
	if err := o.complete(); err != nil {
		return Report{}, err
	}
	rep = Report{Sessions: o.Sessions, Agents: o.Agents, Time: o.Time, Before: sampleOf(measure())}
	subject, err := o.Open(ctx)
	if err != nil {
		return rep, fmt.Errorf("soak: open engine: %w", err)
	}
	r := &runner{o: o, engine: subject.Engine}
	err = r.live(ctx, &rep)
	clean := context.WithoutCancel(ctx)
	if !o.Keep {
		r.eraseAll(clean)
	}
	if cerr := closeSubject(clean, subject); cerr != nil {
		err = errors.Join(err, fmt.Errorf("soak: close engine: %w", cerr))
	}
	subject, r.engine = experiment.Subject{}, nil
	rep.After = sampleOf(measure())
	rep.Errors = r.texts
	rep.judge()
	return rep, err
}

func closeSubject(ctx context.Context, s experiment.Subject) error {
	if s.Close != nil {
		return s.Close(ctx)
	}
	if d, ok := s.Engine.(core.Disposer); ok {
		return d.Dispose(ctx)
	}
	return nil
}

// live gives the sessions a past, lets them live, and takes samples.
func (r *runner) live(ctx context.Context, rep *Report) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seats := make([]*seat, r.o.Sessions)
	for i := range seats {
		seats[i] = r.newSeat(i)
	}
	begin := time.Now()
	if err := r.fill(ctx, seats); err != nil {
		return err
	}
	rep.Filling, rep.Past = time.Since(begin).Seconds(), r.past.Load()

	r.begin = time.Now()
	var living sync.WaitGroup
	defer living.Wait()
	defer cancel() // before the wait
	for _, s := range seats {
		living.Go(func() { r.sit(ctx, s) })
	}
	ticker := time.NewTicker(r.o.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("soak: %w", ctx.Err())
		case <-ticker.C:
			s := r.sample()
			rep.Samples = append(rep.Samples, s)
			if r.o.Progress != nil {
				r.o.Progress(s)
			}
			if time.Since(r.begin) >= r.o.Time {
				return nil
			}
		}
	}
}

// fill gives all sessions their past, a few at a time.
func (r *runner) fill(ctx context.Context, seats []*seat) error {
	const workers = 8
	next := make(chan *seat)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for s := range next {
				r.remember(ctx, s)
			}
		})
	}
	for _, s := range seats {
		if ctx.Err() != nil {
			break
		}
		next <- s
	}
	close(next)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("soak: %w", err)
	}
	return nil
}

func sampleOf(p process) Sample {
	return Sample{Heap: p.heap, Resident: p.resident, Goroutines: p.goroutines, Handles: p.handles}
}

func (r *runner) sample() Sample {
	s := sampleOf(measure())
	s.At = time.Since(r.begin).Seconds()
	s.Turns, s.Left, s.Restarts = r.turns.Swap(0), r.ended.Swap(0), r.restarts.Swap(0)
	s.Compactions, s.Errors = r.compactions.Swap(0), r.errors.Swap(0)
	s.assemble, s.store = r.assemble.take(), r.store.take()
	s.AssembleP50, s.AssembleP99 = s.assemble.quantile(0.5), s.assemble.quantile(0.99)
	s.StoreP50, s.StoreP99 = s.store.quantile(0.5), s.store.quantile(0.99)
	s.EraseP99 = r.erase.take().quantile(0.99)
	return s
}

// failed counts an error of the engine; one of a call that was cut off in the end is none.
func (r *runner) failed(ctx context.Context, op string, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	r.errors.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.texts) < maxErrors {
		r.texts = append(r.texts, op+": "+err.Error())
	}
}

// seat is a place that one session after the other takes.
type seat struct {
	rng  *rand.Rand
	id   core.SessionID
	turn int
}

func (r *runner) newSeat(i int) *seat {
	s := &seat{rng: rand.New(rand.NewPCG(r.o.Seed, uint64(i)))}
	s.id.Agent = fmt.Sprintf("%s-%d", r.o.Agent, i%r.o.Agents)
	s.turn = 1 + s.rng.IntN(r.o.Turns) // as many as sessions have at any time later: what grows from then on is a leak
	r.name(s)
	return s
}

func (r *runner) name(s *seat) { s.id.Session = fmt.Sprintf("session-%d", r.names.Add(1)) }

// remember stores a seat's past.
func (r *runner) remember(ctx context.Context, s *seat) {
	var past []message.Message
	for i := range s.turn {
		past = append(past, message.New(message.User, say(s.rng, 60)))
		past = append(past, answer(s.rng, fmt.Sprintf("past-%d", i))...)
	}
	r.past.Add(int64(len(past)))
	r.failed(ctx, "ingest", r.ingest(ctx, s.id, past))
}

func (r *runner) ingest(ctx context.Context, id core.SessionID, messages []message.Message) error {
	if b, ok := r.engine.(core.BatchIngester); ok {
		_, err := b.IngestBatch(ctx, core.IngestBatchRequest{Session: id, Messages: messages})
		return err
	}
	for _, m := range messages {
		if _, err := r.engine.Ingest(ctx, core.IngestRequest{Session: id, Message: m}); err != nil {
			return err
		}
	}
	return nil
}

// sit lives turns until ctx ends.
func (r *runner) sit(ctx context.Context, s *seat) {
	// Not all at once, but all before the time that the verdict compares with begins: the first turn of a session fills its memory.
	timer := time.NewTimer(time.Duration(s.rng.Int64N(int64(min(r.o.Think, r.o.Time/10)) + 1)))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		r.turnOf(ctx, s)
		timer.Reset(r.o.Think/2 + time.Duration(s.rng.Int64N(int64(r.o.Think)+1)))
	}
}

// turnOf lives one turn of a seat's session.
func (r *runner) turnOf(ctx context.Context, s *seat) {
	if s.turn >= r.o.Turns {
		r.leave(ctx, s)
	}
	if s.rng.IntN(50) == 0 {
		if b, ok := r.engine.(core.Bootstrapper); ok {
			_, err := b.Bootstrap(ctx, core.BootstrapRequest{Session: s.id})
			r.failed(ctx, "bootstrap", err)
			r.restarts.Add(1)
		}
	}
	s.turn++
	r.failed(ctx, "ingest", r.ingest(ctx, s.id, []message.Message{message.New(message.User, say(s.rng, 60))}))
	begin := time.Now()
	res, err := r.engine.Assemble(ctx, core.AssembleRequest{Session: s.id, Budget: r.o.Budget})
	r.assemble.add(time.Since(begin))
	r.failed(ctx, "assemble", err)
	reply := answer(s.rng, fmt.Sprintf("call-%d", s.turn))
	begin = time.Now()
	err = r.ingest(ctx, s.id, reply)
	r.store.add(time.Since(begin))
	r.failed(ctx, "ingest", err)
	if res.CompactionDue {
		_, err := r.engine.Compact(ctx, core.CompactRequest{Session: s.id, Budget: r.o.Budget, Trigger: "budget"})
		r.failed(ctx, "compact", err)
		r.compactions.Add(1)
	}
	r.turns.Add(1)
}

// leave ends the seat's session, and begins the next.
func (r *runner) leave(ctx context.Context, s *seat) {
	begin := time.Now()
	if f, ok := r.engine.(engine.Forgetter); ok && !r.o.Keep {
		_, err := f.Forget(ctx, engine.ForgetRequest{Scope: s.id.Scope(), Purge: true, Reason: "session ended"})
		r.failed(ctx, "forget", err)
		r.erase.add(time.Since(begin))
	}
	r.ended.Add(1)
	s.turn = 0
	r.name(s)
}

// eraseAll removes what the soak stored.
func (r *runner) eraseAll(ctx context.Context) {
	f, ok := r.engine.(engine.Forgetter)
	if !ok {
		return
	}
	for i := range r.o.Agents {
		_, err := f.Forget(ctx, engine.ForgetRequest{Scope: core.Scope{Agent: fmt.Sprintf("%s-%d", r.o.Agent, i)}, Purge: true, Reason: "soak ended"})
		r.failed(ctx, "forget", err)
	}
}
