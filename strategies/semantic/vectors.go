package semantic

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
)

// state says how far an agent's entries were read from the store.
type state uint8

const (
	unread state = iota
	reading
	ready
)

// vectors is the index of one agent.
type vectors struct {
	agent string
	src   *source

	turn chan struct{} // held by whoever reads the store or embeds

	mu      sync.RWMutex // guards what follows
	state   state
	cursor  core.Cursor
	scanned bool            // all entries were read
	gone    map[string]bool // what was deleted while the store is read
	items   map[string]*item
	pending []*item
	done    int             // items with a vector
	rows    map[int]*matrix // vectors by their length
	// paid holds vectors that the store did not take, so that they need not be made again: one batch at most.
	paid map[string]paid
}

// item is an entry that is, or will be, embedded. Its identity tells whether an embedding that took a while is still wanted.
type item struct {
	id, session string
	seq         int64
	time        time.Time
	hash        uint64 // of the text that is embedded
	embedded    bool
	rows        *matrix // where its vector is, of length 1; nil while pending, and where the store compares
	slot        int
}

func newVectors(agent string, src *source) *vectors {
	return &vectors{agent: agent, src: src, turn: make(chan struct{}, 1), items: map[string]*item{}, rows: map[int]*matrix{}}
}

// enter waits until no other call reads the store or embeds.
func (v *vectors) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case v.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (v *vectors) leave() { <-v.turn }

// load notes the store's entries as pending, and those that have a vector in the store as embedded, once. When ctx ends, the next call goes
// on from there.
func (x *VectorIndex) load(ctx context.Context, v *vectors) error {
	v.mu.RLock()
	done := v.state == ready
	v.mu.RUnlock()
	if done {
		return ctx.Err()
	}
	if err := v.enter(ctx); err != nil {
		return err
	}
	defer v.leave()
	v.mu.Lock()
	if v.state == unread {
		v.state, v.gone = reading, map[string]bool{}
	}
	done = v.state == ready
	cursor := v.cursor
	scanned := v.scanned
	v.mu.Unlock()
	if done {
		return nil
	}
	for !scanned {
		page, err := v.src.store.Scan(ctx, core.ScanQuery{Scope: core.Scope{Agent: v.agent}, Cursor: cursor, Limit: core.MaxPage})
		v.mu.Lock()
		if err != nil {
			if ctx.Err() == nil { // the cursor may be what is wrong
				v.cursor = ""
			}
			v.mu.Unlock()
			return err
		}
		for _, e := range page.Entries {
			if !v.gone[e.ID] {
				v.add(e, x.cfg.MaxChars)
			}
		}
		v.cursor, cursor = page.Next, page.Next
		if page.Next == "" {
			v.scanned, scanned = true, true
		}
		v.mu.Unlock()
	}
	if err := x.restore(ctx, v); err != nil {
		return err
	}
	v.mu.Lock()
	v.state, v.gone = ready, nil
	v.mu.Unlock()
	return nil
}

// add makes an entry pending unless it is known or has nothing to embed. The caller holds mu.
func (v *vectors) add(e core.Entry, maxChars int) {
	if e.Type == core.TypeHeartbeat || e.Type == core.TypeErased || v.items[e.ID] != nil {
		return
	}
	text := embedded(e, maxChars)
	if text == "" {
		return
	}
	it := &item{id: strings.Clone(e.ID), session: strings.Clone(e.Session), seq: e.Seq, time: e.Time, hash: hashOf(text)}
	v.items[it.id] = it
	v.pending = append(v.pending, it)
}

// remove forgets an entry, its vector included. The caller holds mu.
func (v *vectors) remove(id string) {
	if v.state == reading {
		v.gone[id] = true
	}
	it := v.items[id]
	if it == nil {
		return
	}
	delete(v.items, id)
	delete(v.paid, id)
	if it.embedded {
		v.done--
		if it.rows != nil {
			it.rows.remove(it)
		}
		return
	}
	if i := slices.Index(v.pending, it); i >= 0 {
		v.pending = slices.Delete(v.pending, i, i+1)
	}
}

func (v *vectors) embedded() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.done
}

// count returns how many items are embedded, of how many.
func (v *vectors) count() (done, total int) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.done, len(v.items)
}

// first returns the oldest n pending items.
func (v *vectors) first(n int) []*item {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.Clone(v.pending[:min(n, len(v.pending))])
}

// settle notes the vectors of a batch; items without one are no longer in the store. What was changed or deleted meanwhile is
// not pending any more, and stays out.
func (v *vectors) settle(batch []*item, found map[string][]float32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	in := make(map[*item]bool, len(batch))
	for _, it := range batch {
		in[it] = true
	}
	v.pending = slices.DeleteFunc(v.pending, func(it *item) bool {
		if !in[it] {
			return false
		}
		if vec := found[it.id]; vec != nil {
			v.have(it, vec)
		} else {
			delete(v.items, it.id)
		}
		return true
	})
}

// have notes that an item is embedded. The caller holds mu.
func (v *vectors) have(it *item, vector []float32) {
	it.embedded = true
	v.done++
	if v.src.searcher == nil {
		m := v.rows[len(vector)]
		if m == nil {
			m = newMatrix(len(vector))
			v.rows[len(vector)] = m
		}
		m.add(it, vector)
	}
}

// fetch reads the entries of items from the store and leaves out those that are no longer there.
func fetch(ctx context.Context, store core.Store, scope core.Scope, found []near) ([]core.Hit, error) {
	ids := make([]string, len(found))
	for i, n := range found {
		ids[i] = n.id
	}
	entries, err := getSome(ctx, store, scope, ids)
	if err != nil {
		return nil, err
	}
	hits := make([]core.Hit, 0, len(found))
	for i, e := range entries {
		if e.ID != "" && e.Type != core.TypeErased {
			hits = append(hits, core.Hit{Entry: e, Score: found[i].score})
		}
	}
	return hits, nil
}

// getSome is Store.Get with zero entries in the places of ids that are not there.
func getSome(ctx context.Context, store core.Store, scope core.Scope, ids []string) ([]core.Entry, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	entries, err := store.Get(ctx, scope, ids)
	if !errors.Is(err, core.ErrNotFound) {
		return entries, err
	}
	entries = make([]core.Entry, len(ids))
	for i, id := range ids {
		one, err := store.Get(ctx, scope, []string{id})
		if err != nil && !errors.Is(err, core.ErrNotFound) {
			return nil, err
		}
		if len(one) == 1 {
			entries[i] = one[0]
		}
	}
	return entries, nil
}
