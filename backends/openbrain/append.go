package openbrain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Append implements core.Store. The entries are sent one by one, in order; see the package comment for what makes
// that a batch. An Append of one agent waits for the one before.
func (s *Store) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if err := s.ready(ctx, "append"); err != nil {
		return core.AppendResult{}, err
	}
	for i := range entries {
		if err := entries[i].Check("openbrain: append"); err != nil {
			return core.AppendResult{}, err
		}
	}
	if s.cfg.Keep == KeepText {
		return s.appendText(ctx, entries)
	}
	// Every agent's lock, in one order for all calls.
	var names []string
	for _, e := range entries {
		names = append(names, e.Agent)
	}
	slices.Sort(names)
	locked := map[string]*agent{}
	for _, name := range slices.Compact(names) {
		g, err := s.agents.acquire(ctx, name)
		if err != nil {
			return core.AppendResult{}, failed("append", "", err)
		}
		defer s.agents.release(g)
		locked[name] = g
	}
	for {
		p := &plan{store: s, agents: locked, res: core.AppendResult{IDs: make([]string, len(entries))}, bodies: map[string]json.RawMessage{}}
		if err := p.make(ctx, entries); err != nil {
			return core.AppendResult{}, err
		}
		again, err := p.run(ctx)
		if again && ctx.Err() == nil {
			continue // never twice for one size
		}
		if err != nil {
			for _, g := range locked {
				g.forget() // what arrived is in doubt: look again next time
			}
			return core.AppendResult{}, err
		}
		return p.res, nil
	}
}

// plan is what one Append has to send.
type plan struct {
	store  *Store
	agents map[string]*agent
	res    core.AppendResult
	// send holds the new entries in order, stale the thoughts of given-up batches that stand in their way.
	send  []record
	stale []record
	sent  []record
	// bodies holds, by agent, the request that stores all new entries of it at once, where the server takes that.
	bodies map[string]json.RawMessage
}

// make finds out which entries are new.
func (p *plan) make(ctx context.Context, entries []core.Entry) error {
	for _, g := range p.agents {
		whole, err := p.store.catchUp(ctx, "append", g)
		if err != nil {
			return failed("append", "", err)
		}
		hidden := g.begun()
		known := slices.ContainsFunc(entries, func(e core.Entry) bool {
			k := sessionKey{e.Session, e.Key}
			inTheWay := g.taken[positionOf(e)] != "" && (g.stale || g.count == "")
			return e.Agent == g.name && (g.ids[k] != "" || inTheWay || hidden.of(record{entry: e}) != nil)
		})
		if known && !whole && !p.store.cfg.Exclusive {
			// Somebody may have erased it meanwhile. Known keys, taken positions and batches that were begun are rare enough to make sure.
			if _, err := p.store.load(ctx, "append", g); err != nil {
				return failed("append", "", err)
			}
		}
	}
	type agentKey struct {
		agent string
		key   sessionKey
	}
	first := map[agentKey]string{}
	byID := map[string]bool{}
	type agentPosition struct {
		agent string
		at    position
	}
	byPlace := map[agentPosition]bool{}
	for i, e := range entries {
		g, k := p.agents[e.Agent], sessionKey{e.Session, e.Key}
		if id := g.ids[k]; id != "" {
			p.res.IDs[i], p.res.Duplicates = id, p.res.Duplicates+1
			continue
		}
		if id, again := first[agentKey{e.Agent, k}]; again {
			p.res.IDs[i], p.res.Duplicates = id, p.res.Duplicates+1
			continue
		}
		taken, err := p.taken(ctx, e.ID)
		if err != nil {
			return failed("append", e.ID, err)
		}
		if taken || byID[e.ID] {
			return failed("append", e.ID, fmt.Errorf("another entry has this id: %w", core.ErrConflict))
		}
		at := agentPosition{e.Agent, positionOf(e)}
		if g.taken[at.at] != "" || byPlace[at] || p.begun(g, e) {
			return failed("append", e.ID, fmt.Errorf("another entry of the session has position %d: %w", e.Seq, core.ErrConflict))
		}
		first[agentKey{e.Agent, k}], byID[e.ID], byPlace[at] = e.ID, true, true
		p.res.IDs[i] = e.ID
		p.send = append(p.send, record{entry: e})
	}
	if err := p.stamp(); err != nil {
		return err
	}
	return p.reuse()
}

// stalled is how old a part of a batch is of which nobody will send the rest any more.
const stalled = time.Minute

// begun reports whether another writer is about to store something at the position of an entry. What one that was stopped left there goes.
func (p *plan) begun(g *agent, e core.Entry) bool {
	for _, h := range g.hidden {
		if positionOf(h.entry) != positionOf(e) || h.entry.ID == e.ID || h.entry.Key == e.Key {
			continue
		}
		if p.atWork(h) {
			return true
		}
		p.stale = append(p.stale, h)
	}
	return false
}

// atWork reports whether the writer of a thought may still send the end of its batch.
func (p *plan) atWork(hidden record) bool {
	return hidden.created.IsZero() || p.store.client.now().Sub(hidden.created) < stalled
}

// taken reports whether a stored entry has this id: one of the call's agents, or one that this store has seen.
func (p *plan) taken(ctx context.Context, id string) (bool, error) {
	for _, g := range p.agents {
		if _, ok := g.keys[id]; ok {
			return true, nil
		}
	}
	thought, seen := p.store.ids.get(id)
	if !seen {
		return false, nil
	}
	t, ok, err := p.store.fetch(ctx, "append", thought)
	return ok && (firstText(t.Meta, keyEntry) == pack(id) || firstText(t.Meta, keyID) == pack(id)), err
}

// stamp makes the new entries of each agent a batch, unless one request can store them. Its id follows from what is in it, so that a repeated call makes
// the same.
func (p *plan) stamp() error {
	for name := range p.agents {
		h, n, last := sha256.New(), 0, -1
		for i, r := range p.send {
			if r.entry.Agent == name {
				h.Write(fmt.Appendf(nil, "%q %q %q\n", r.entry.Session, r.entry.Key, r.entry.ID))
				n, last = n+1, i
			}
		}
		if n < 2 {
			continue
		}
		body, err := p.store.whole(name, p.of(name))
		if err != nil {
			return failed("append", "", err)
		}
		if body != nil {
			p.bodies[name] = body
			continue
		}
		id, index := hex.EncodeToString(h.Sum(nil)[:12]), 0
		for i := range p.send {
			if p.send[i].entry.Agent == name {
				p.send[i].batch = batch{ID: id, Index: index, End: i == last}
				index++
			}
		}
	}
	// The ends go last, so that no agent's batch is complete while another's is not nearly so.
	slices.SortStableFunc(p.send, func(a, b record) int {
		switch {
		case a.batch.last() == b.batch.last():
			return 0
		case a.batch.last():
			return 1
		}
		return -1
	})
	return nil
}

// of returns the new entries of an agent.
func (p *plan) of(agent string) (out []record) {
	for _, r := range p.send {
		if r.entry.Agent == agent {
			out = append(out, r)
		}
	}
	return out
}

// reuse takes entries that a call before this one sent without getting to the end off the list, and puts what is left of
// other such calls on the list of stale thoughts. What another process is about to store is a conflict.
func (p *plan) reuse() error {
	there, stale := map[string]bool{}, map[string]bool{}
	for _, g := range p.agents {
		hidden := g.begun()
		for _, r := range p.send {
			if r.entry.Agent != g.name {
				continue
			}
			for _, old := range hidden.of(r) {
				same, err := p.store.cfg.same(r, old)
				switch {
				case err != nil:
					return failed("append", r.entry.ID, err)
				case same && !there[r.entry.ID]:
					there[r.entry.ID] = true
					p.sent = append(p.sent, old)
				case old.entry.ID != r.entry.ID && p.atWork(old):
					return failed("append", r.entry.ID, fmt.Errorf("another process is storing an entry with this key: %w", core.ErrConflict))
				case !stale[old.thought]:
					stale[old.thought] = true
					p.stale = append(p.stale, old)
				}
			}
		}
	}
	p.send = slices.DeleteFunc(p.send, func(r record) bool { return there[r.entry.ID] })
	return nil
}

// alike reports whether two entries are written alike.
func (c Config) alike(a, b core.Entry) (bool, error) {
	return c.same(record{entry: a}, record{entry: b})
}

// same reports whether two records are written alike.
func (c Config) same(a, b record) (bool, error) {
	want, err := c.metadata(record{entry: a.entry, batch: a.batch}, true)
	if err != nil {
		return false, err
	}
	have, err := c.metadata(record{entry: b.entry, batch: b.batch}, true)
	if err != nil {
		return false, nil
	}
	x, err := json.Marshal(want)
	y, err2 := json.Marshal(have)
	return err == nil && err2 == nil && bytes.Equal(x, y), nil
}

// run sends what is to be sent. again says that nothing was stored, and that another plan may succeed, see createAll.
func (p *plan) run(ctx context.Context) (again bool, err error) {
	for _, r := range p.stale {
		if _, _, err := p.store.erase(ctx, "append", p.agents[r.entry.Agent], r); err != nil {
			return false, failed("append", r.entry.ID, err)
		}
	}
	var created []record
	for _, name := range slices.Sorted(maps.Keys(p.bodies)) {
		records := p.of(name)
		again, err := p.store.createAll(ctx, records, p.bodies[name])
		if err != nil && !again {
			p.undo(ctx, slices.Concat(p.sent, created), err)
		}
		if err != nil {
			return again, failed("append", records[0].entry.ID, err)
		}
		created = append(created, records...)
	}
	for _, r := range p.send {
		if p.bodies[r.entry.Agent] != nil {
			continue
		}
		r.thought, r.created, err = p.store.create(ctx, p.agents[r.entry.Agent], r)
		if err != nil {
			p.undo(ctx, slices.Concat(p.sent, created), err)
			return false, failed("append", r.entry.ID, err)
		}
		created = append(created, r)
	}
	over := map[string]bool{}
	for _, r := range slices.Concat(p.sent, created, p.stale) {
		over[r.thought] = true
	}
	for _, g := range p.agents {
		g.hidden = slices.DeleteFunc(g.hidden, func(h record) bool { return over[h.thought] })
	}
	for _, r := range slices.Concat(p.sent, created) {
		p.agents[r.entry.Agent].add(r)
		p.store.ids.put(r.entry.ID, r.thought)
		if p.agents[r.entry.Agent].partial || p.store.client.can.noList.Load() {
			p.store.seen.put(r.entry.Agent, r)
		}
	}
	return false, nil
}

// undo erases what a batch left behind when the server refused one of its entries for good: repeating the call will
// not complete it. In all other cases the repeated call goes on where this one stopped; until then nobody sees it.
func (p *plan) undo(ctx context.Context, created []record, cause error) {
	final := errors.Is(cause, core.ErrInvalid) || errors.Is(cause, core.ErrConflict) || errors.Is(cause, errors.ErrUnsupported)
	if ctx.Err() != nil || !final {
		return
	}
	for _, r := range slices.Backward(created) {
		if _, _, err := p.store.erase(ctx, "append", p.agents[r.entry.Agent], r); err != nil {
			p.store.client.log.WarnContext(ctx, "openbrain could not erase a part of a refused batch; it stays hidden", "err", err)
			return
		}
	}
}
