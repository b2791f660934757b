package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/rpc"
	"github.com/contextengine/contextengine/internal/drawn"
)

// A client that does not wait for answers is served in order.
func TestPipelinedCallsOfASessionKeepTheirOrder(t *testing.T) {
	t.Parallel()
	const sessions, calls = 8, 30 // together less than may be under way
	var mu sync.Mutex
	seen := make(map[core.SessionID][]string)
	var at atomic.Int32
	f := &fake{ingest: func(_ context.Context, req core.IngestRequest) (core.IngestResult, error) {
		mu.Lock()
		seen[req.Session] = append(seen[req.Session], req.Message.Text())
		mu.Unlock()
		if at.Add(1)%7 == 0 {
			time.Sleep(time.Millisecond)
		}
		return core.IngestResult{}, nil
	}}
	c := attach(t, newServer(t, one{f}, nil))
	r := newReader(c)
	c.hello(r)
	rng := drawn.Rand(t)
	next := make([]int, sessions)
	for range sessions * calls {
		s := rng.IntN(sessions)
		for next[s] == calls {
			s = (s + 1) % sessions
		}
		params := fmt.Sprintf(`"session":{"agent":"a","session":"s%d"},"message":{"role":"user","content":"%d"}`, s, next[s])
		if next[s]%2 == 1 { // wherever the session stands
			params = fmt.Sprintf(`"message":{"role":"user","content":"%d"},"session":{"session":"s%d","agent":"a"}`, next[s], s)
		}
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d.%d","method":"ingest","params":{%s}}`, s, next[s], params))
		next[s]++
	}
	for range sessions * calls {
		if f := r.next(t); f.Error != nil {
			t.Fatalf("answered with %s", f.line)
		}
	}
	for s := range sessions {
		for i, text := range seen[sid(fmt.Sprintf("s%d", s))] {
			if text != fmt.Sprint(i) {
				t.Fatalf("session %d: call %s came as number %d", s, text, i)
			}
		}
	}
}

// A compaction that has begun holds back no other call of its session; a turn does.
func TestCompactionDoesNotHoldTheSessionBack(t *testing.T) {
	t.Parallel()
	begun, free := make(chan struct{}), make(chan struct{})
	f := &fake{compact: func(ctx context.Context, _ core.CompactRequest) (core.CompactResult, error) {
		close(begun)
		select {
		case <-free:
		case <-ctx.Done():
		}
		return core.CompactResult{OK: true}, nil
	}}
	c := open(t, newServer(t, one{f}, nil), rpc.ClientOptions{})
	done := make(chan error, 1)
	go func() {
		_, err := c.Compact(t.Context(), rpc.CompactParams{Session: sid("s")})
		done <- err
	}()
	receive(t, "compact", begun)
	if _, err := c.Assemble(t.Context(), rpc.AssembleParams{Session: sid("s"), Budget: 100}); err != nil {
		t.Errorf("Assemble during Compact = %v", err)
	}
	close(free)
	if err := receive(t, "end of compact", done); err != nil {
		t.Error(err)
	}
}

func TestCancelledMeansStopped(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 10)
	var running atomic.Int32
	f := &fake{assemble: func(ctx context.Context, _ core.AssembleRequest) (core.AssembleResult, error) {
		running.Add(1)
		defer running.Add(-1)
		begun <- struct{}{}
		<-ctx.Done()
		return core.AssembleResult{}, ctx.Err()
	}}
	c := attach(t, newServer(t, one{f}, nil))
	r := newReader(c)
	c.hello(r)
	const params = `"method":"assemble","params":{"session":{"agent":"a","session":"s"},"tokenBudget":9}}`
	c.send(`{"jsonrpc":"2.0","id":"first","deadlineMs":1,` + params[:0] + `"method":"ping"}`) // refused, changes nothing
	if f := r.next(t); f.Error == nil || f.Error.Code != int(rpc.CodeInvalidRequest) {
		t.Fatalf("answered with %s", f.line)
	}
	c.send(`{"jsonrpc":"2.0","id":"first",` + params)
	receive(t, "assemble", begun)
	c.send(`{"jsonrpc":"2.0","id":2,` + params) // waits for the first
	c.send(`{"jsonrpc":"2.0","id":3,` + params)
	c.send(`{"jsonrpc":"2.0","method":"rpc.cancel","params":{"id":2}}`)
	f2 := r.next(t)
	if string(f2.ID) != "2" || f2.Error == nil || f2.Error.Code != int(rpc.CodeCancelled) {
		t.Errorf("the waiting call was answered with %s", f2.line)
	}
	if n := running.Load(); n != 1 {
		t.Errorf("%d calls run", n)
	}
	c.send(`{"jsonrpc":"2.0","method":"rpc.cancel","params":{"id":"first"}}`)
	f1 := r.next(t)
	if string(f1.ID) != `"first"` || f1.Error == nil || f1.Error.Code != int(rpc.CodeCancelled) {
		t.Errorf("the running call was answered with %s", f1.line)
	}
	receive(t, "the third call", begun) // the cancelled ones left the queue
	c.send(`{"jsonrpc":"2.0","method":"rpc.cancel","params":{"id":3}}`)
	if f := r.next(t); string(f.ID) != "3" {
		t.Errorf("the third call was answered with %s", f.line)
	}
	c.send(`{"jsonrpc":"2.0","method":"rpc.cancel","params":{"id":99}}`)
	c.send(`{"jsonrpc":"2.0","id":4,"method":"ping"}`)
	if f := r.next(t); string(f.ID) != "4" {
		t.Errorf("ping was answered with %s", f.line)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	f := &fake{
		assemble: func(ctx context.Context, _ core.AssembleRequest) (core.AssembleResult, error) {
			return core.AssembleResult{}, hang(ctx)
		},
		compact: func(ctx context.Context, _ core.CompactRequest) (core.CompactResult, error) {
			_ = hang(ctx)
			return core.CompactResult{}, errors.New("model: gave up") // does not say why
		},
	}
	cfg := rpc.DefaultConfig()
	cfg.MaxCall = 50 * time.Millisecond
	c := attach(t, newServer(t, one{f}, nil, rpc.WithConfig(cfg)))
	r := newReader(c)
	c.hello(r)
	for i, frame := range []string{
		`"method":"assemble","params":{"session":{"agent":"a","session":"s"},"tokenBudget":9,"deadlineMs":5}}`,
		`"method":"compact","params":{"session":{"agent":"a","session":"s"},"deadlineMs":5}}`,
		`"method":"assemble","params":{"session":{"agent":"a","session":"s"},"tokenBudget":9}}`,
	} {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s`, i, frame))
		if f := r.next(t); f.Error == nil || f.Error.Code != int(rpc.CodeDeadline) {
			t.Errorf("%s was answered with %s", frame, f.line)
		}
	}
}

// The Go client passes deadline and cancellation of a call's context on.
func TestClientContext(t *testing.T) {
	t.Parallel()
	begun, stopped := make(chan bool, 1), make(chan error, 1)
	f := &fake{assemble: func(ctx context.Context, _ core.AssembleRequest) (core.AssembleResult, error) {
		_, has := ctx.Deadline()
		begun <- has
		<-ctx.Done()
		stopped <- ctx.Err()
		return core.AssembleResult{}, ctx.Err()
	}}
	c := open(t, newServer(t, one{f}, nil), rpc.ClientOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Assemble(ctx, rpc.AssembleParams{Session: sid("s"), Budget: 9})
		done <- err
	}()
	receive(t, "assemble", begun)
	cancel()
	if err := receive(t, "answer", done); !errors.Is(err, context.Canceled) {
		t.Errorf("Assemble = %v", err)
	}
	if err := receive(t, "cancellation in the engine", stopped); !errors.Is(err, context.Canceled) {
		t.Errorf("the engine saw %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Assemble(ctx, rpc.AssembleParams{Session: sid("s"), Budget: 9}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Assemble = %v", err)
	}
}

func TestClientGoneMidCall(t *testing.T) {
	t.Parallel()
	begun, stopped := make(chan struct{}, 1), make(chan error, 1)
	f := &fake{assemble: func(ctx context.Context, _ core.AssembleRequest) (core.AssembleResult, error) {
		begun <- struct{}{}
		<-ctx.Done()
		stopped <- ctx.Err()
		return core.AssembleResult{}, ctx.Err()
	}}
	path := socketPath(t)
	s := serveUnix(t, one{f}, nil, path)
	c := dial(t, path)
	done := make(chan error, 1)
	go func() {
		_, err := c.Assemble(context.Background(), rpc.AssembleParams{Session: sid("s"), Budget: 9})
		done <- err
	}()
	receive(t, "assemble", begun)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	receive(t, "cancellation in the engine", stopped)
	if err := receive(t, "answer", done); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Assemble = %v", err)
	}
	_ = s
	if err := dial(t, path).Ping(t.Context()); err != nil {
		t.Errorf("another client's Ping = %v", err)
	}
}

// What is beyond the bounds is refused at once and counted back when it is answered.
func TestOverload(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	f := &fake{assemble: func(ctx context.Context, _ core.AssembleRequest) (core.AssembleResult, error) {
		select {
		case <-free:
		case <-ctx.Done():
		}
		return core.AssembleResult{}, ctx.Err()
	}}
	cfg := rpc.DefaultConfig()
	cfg.MaxInFlight, cfg.MaxRunning = 10, 2
	c := attach(t, newServer(t, one{f}, nil, rpc.WithConfig(cfg)))
	r := newReader(c)
	c.hello(r)
	const calls = 500
	go func() {
		for i := range calls {
			if _, err := io.WriteString(c, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"assemble","params":{"session":{"agent":"a","session":"s%d"},"tokenBudget":9}}`+"\n", i, i)); err != nil {
				return
			}
		}
	}()
	for range calls - 10 {
		if f := r.next(t); f.Error == nil || f.Error.Code != int(rpc.CodeOverloaded) {
			t.Fatalf("answered with %s", f.line)
		}
	}
	close(free)
	for range 10 {
		if f := r.next(t); f.Error != nil {
			t.Fatalf("answered with %s", f.line)
		}
	}
	c.send(`{"jsonrpc":"2.0","id":"p","method":"health"}`)
	if f := r.next(t); !strings.Contains(f.line, `"inFlight":1,`) {
		t.Errorf("health = %s", f.line)
	}
}

// Many sessions of several agents over several connections, each with its own history.
func TestTwoHundredSessionsInParallel(t *testing.T) {
	t.Parallel()
	host := rpc.NewHost()
	path := socketPath(t)
	serveUnix(t, one{composed(t, host)}, host, path)
	const clients, sessions, turns = 4, 50, 2
	var work sync.WaitGroup
	for n := range clients {
		c := dial(t, path)
		for s := range sessions {
			work.Go(func() {
				id := core.SessionID{Agent: fmt.Sprintf("agent%d", n), Session: fmt.Sprintf("s%d", s)}
				v := rpc.NewConversation(c, id, "")
				var list = []([]byte){}
				for i := range turns {
					got, _, err := v.Assemble(t.Context(), raws(list), rpc.AssembleParams{Budget: 10_000, Prompt: "next"})
					if err != nil {
						t.Errorf("%s: Assemble = %v", id, err)
						return
					}
					for _, m := range got {
						if !strings.Contains(string(m), id.String()) && !strings.Contains(string(m), "ecalled") {
							t.Errorf("%s: got %s", id, m)
						}
					}
					turn := []([]byte){user(fmt.Sprintf("question %d of %s", i, id), 2*i), answer(fmt.Sprintf("answer %d to %s", i, id), 2*i+1)}
					if res, err := v.CommitTurn(t.Context(), fmt.Sprintf("turn%d", i), raws(turn)); err != nil || res.Status != core.Committed {
						t.Errorf("%s: CommitTurn = %+v, %v", id, res, err)
						return
					}
					list = append(list, turn...)
				}
				got, res, err := v.Assemble(t.Context(), raws(list), rpc.AssembleParams{Budget: 10_000})
				if err != nil {
					t.Errorf("%s: Assemble = %v", id, err)
					return
				}
				if len(res.Items) != 1 || !slices.EqualFunc(got, list, func(a rawMessage, b []byte) bool { return string(a) == string(b) }) {
					t.Errorf("%s: got %d messages in %d items, want one run of %d", id, len(got), len(res.Items), len(list))
				}
			})
		}
	}
	work.Wait()
}
