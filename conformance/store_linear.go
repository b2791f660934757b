package conformance

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/contextengine/contextengine/core"
)

// The bounds of a history: looking for an order takes exponential time at worst.
const (
	linearClients = 4
	linearOps     = 500
	linearWait    = 20 * time.Second
)

// logState is what a session is to the clients of a history: how many entries it has, a hash of their ids in order, and the version of its view.
type logState struct {
	count   int64
	hash    uint64
	version uint64
}

// with returns the state after an entry was appended.
func (s logState) with(id string) logState {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, s.hash, " ", id)
	s.count, s.hash = s.count+1, h.Sum64()
	return s
}

type linearOp struct {
	// kind is "append", "swap", "read" or "view".
	kind string
	id   string
	// at is the position of an append, or the version of a swap.
	at int64
}

type linearResult struct {
	conflict bool
	state    logState
	// pages says that it was read in several pages: that is no single moment.
	pages bool
}

// linearModel says what each operation does to a session. Clients append at positions at which they saw the session end: that is never beyond its end.
func linearModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return logState{} },
		Step: func(state, input, output any) (bool, any) {
			s, _ := state.(logState)
			op, _ := input.(linearOp)
			out, _ := output.(linearResult)
			switch op.kind {
			case "append":
				if out.conflict {
					return op.at < s.count, s
				}
				return op.at == s.count, s.with(op.id)
			case "swap":
				fits := uint64(op.at) == s.version+1
				if fits && !out.conflict {
					s.version++
				}
				return fits != out.conflict, s
			case "view":
				return out.state.version == s.version, s
			}
			if out.pages {
				return true, s
			}
			return out.state.count == s.count && out.state.hash == s.hash, s
		},
	}
}

// sharedLinear has four clients append, swap and read one session, and looks for an order in which one after the other would have got these answers.
func sharedLinear(r *storeRun) string {
	r.watch.patient(linearWait)
	users := r.users(linearClients)
	id := core.SessionID{Agent: "agent-a", Session: "linear"}
	each := 0
	for _, b := range r.steps {
		each += 2 * len(b.Entries)
	}
	each = min(each, linearOps/linearClients)
	begin := time.Now()
	histories := make([][]porcupine.Operation, linearClients)
	failed := make([]error, linearClients)
	var wg sync.WaitGroup
	for c, s := range users {
		wg.Go(func() {
			cl := &linearClient{r: r, store: s, id: id, name: fmt.Sprint(c), rnd: rand.New(rand.NewSource(int64(each*linearClients + c)))}
			for n := range each {
				op, call := cl.next(n), time.Since(begin)
				out, err := cl.do(op)
				if err != nil {
					failed[c] = err
					return
				}
				histories[c] = append(histories[c], porcupine.Operation{
					ClientId: c, Input: op, Call: int64(call), Output: out, Return: int64(time.Since(begin)),
				})
			}
		})
	}
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		return err.Error()
	}
	var history []porcupine.Operation
	for _, h := range histories {
		history = append(history, h...)
	}
	if porcupine.CheckOperationsTimeout(linearModel(), history, linearWait) == porcupine.Illegal {
		return fmt.Sprintf("there is no order in which %d appends, swaps and reads of %d clients would have these answers", len(history), linearClients)
	}
	return ""
}

// linearClient is one of the clients. It appends behind what it saw last, and swaps over the version it saw last.
type linearClient struct {
	r     *storeRun
	store core.Store
	id    core.SessionID
	name  string
	rnd   *rand.Rand
	seen  logState
}

func (c *linearClient) next(n int) linearOp {
	switch k := c.rnd.Intn(10); {
	case k < 4:
		return linearOp{kind: "append", id: fmt.Sprintf("E-%s-%d", c.name, n), at: c.seen.count}
	case k < 6:
		return linearOp{kind: "swap", at: int64(c.seen.version) + 1}
	case k < 7:
		return linearOp{kind: "view"}
	}
	return linearOp{kind: "read"}
}

func (c *linearClient) do(op linearOp) (out linearResult, err error) {
	switch op.kind {
	case "append":
		e := entrySpec{}.entry(0, op.at)
		e.Agent, e.Session, e.ID, e.Key = c.id.Agent, c.id.Session, op.id, op.id
		if _, err = c.store.Append(c.r.ctx(), []core.Entry{e}); err == nil {
			c.seen.count++
		}
	case "swap":
		views, _ := core.As[core.ViewStore](c.store)
		if err = views.SwapView(c.r.ctx(), core.View{Session: c.id, Version: uint64(op.at)}); err == nil {
			c.seen.version = uint64(op.at)
		}
	case "view":
		views, _ := core.As[core.ViewStore](c.store)
		var v core.View
		if v, err = views.LoadView(c.r.ctx(), c.id); errors.Is(err, core.ErrNotFound) {
			err = nil
		}
		c.seen.version = v.Version
	default:
		c.seen = logState{version: c.seen.version}
		for q := (core.ScanQuery{Scope: c.id.Scope(), Limit: core.MaxPage}); ; out.pages = true {
			var page core.Page
			if page, err = c.store.Scan(c.r.ctx(), q); err != nil {
				break
			}
			for _, e := range page.Entries {
				c.seen = c.seen.with(e.ID)
			}
			if q.Cursor = page.Next; page.Next == "" {
				break
			}
		}
	}
	if errors.Is(err, core.ErrConflict) {
		return linearResult{conflict: true}, nil
	}
	if err != nil {
		err = fmt.Errorf("%s: error %w, want none", op.kind, err)
	}
	out.state = c.seen
	return out, err
}
