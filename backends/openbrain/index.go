package openbrain

import (
	"context"
	"net/http"
	"sync"

	"github.com/contextengine/contextengine/core"
)

const (
	// maxIndexed is how many entries the agents' indexes hold before those of idle agents are dropped.
	maxIndexed = 200_000
	// maxThoughtIDs is how many server ids are remembered for Get.
	maxThoughtIDs = 100_000
	// maxSizes is for how many agents it is remembered what a listing costs.
	maxSizes = 10_000
)

// agents holds, for each agent written to, which keys its thoughts have.
type agents struct {
	mu     sync.Mutex
	byName map[string]*agent
	// indexed is the sum of entries of all indexes.
	indexed int
}

// agent is what this process knows of an agent. Whoever holds the lock may use the other fields.
type agent struct {
	name string
	// lock is a mutex that can be waited for under a context.
	lock chan struct{}
	// size is what the index counts for in agents.indexed.
	size int
	// count is the server's count of changes and deletions when it was seen last; empty where there is none.
	count string
	index
}

// index is what was learnt from the server of an agent's thoughts.
type index struct {
	// loaded says that the index matched the server at some time; partial that the server did not show everything.
	loaded, partial bool
	// stale says that something was changed or deleted since: perhaps what the index holds is gone.
	stale bool
	// tied says that two entries have one position, as two writers could give it to theirs once.
	tied bool
	// ids holds the visible entries' ids by key, keys the other way round.
	ids  map[sessionKey]string
	keys map[string]sessionKey
	// taken holds the visible entries' ids by position, places the other way round.
	taken  map[position]string
	places map[string]position
	// next holds the position behind the highest one seen, by session.
	next map[string]int64
	// copies is how many further thoughts of visible entries were seen.
	copies int
	// hidden holds the thoughts of batches without an end; ended the ids of those that have one.
	hidden []record
	ended  map[string]bool
	// thoughts holds the server's ids of all thoughts that were listed or written.
	thoughts map[string]bool
}

// acquire returns the agent's state, locked, or ctx's error. It must be released.
func (a *agents) acquire(ctx context.Context, name string) (*agent, error) {
	a.mu.Lock()
	if a.byName == nil {
		a.byName = map[string]*agent{}
	}
	g := a.byName[name]
	if g == nil {
		g = &agent{name: name, lock: make(chan struct{}, 1)}
		a.byName[name] = g
	}
	a.mu.Unlock()
	select {
	case g.lock <- struct{}{}:
		return g, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// release gives the lock back and, where indexes have become too large, empties those that nobody uses.
func (a *agents) release(g *agent) {
	a.mu.Lock()
	a.indexed += len(g.ids) - g.size
	g.size = len(g.ids)
	<-g.lock
	if a.indexed > maxIndexed {
		for _, other := range a.byName {
			if other == g {
				continue // it will be needed next
			}
			select {
			case other.lock <- struct{}{}:
				a.indexed -= other.size
				other.forget()
				other.size = 0
				<-other.lock
			default:
			}
			if a.indexed <= maxIndexed/2 {
				break
			}
		}
	}
	a.mu.Unlock()
}

// saw takes the server's count of changes and deletions from the header of an answer about the agent's newest thoughts.
func (g *agent) saw(h http.Header) {
	if count := h.Get(headerChanges); count != g.count {
		g.count, g.stale = count, true
	}
}

// forget empties the index: the next append lists the agent's thoughts again.
func (g *agent) forget() {
	g.index = index{} // and nothing else: who waits for the lock reads the other fields
}

// set makes the index match a census.
func (g *agent) set(c census, partial bool) {
	g.forget()
	g.loaded, g.partial, g.hidden = true, partial, c.hidden
	g.ids = make(map[sessionKey]string, len(c.visible))
	g.keys = make(map[string]sessionKey, len(c.visible))
	g.taken = make(map[position]string, len(c.visible))
	g.places = make(map[string]position, len(c.visible))
	g.next = map[string]int64{}
	g.thoughts = make(map[string]bool, len(c.visible))
	g.ended = map[string]bool{}
	for _, r := range c.visible {
		g.add(r)
	}
	g.copies = len(c.copies)
	for _, list := range [][]record{c.copies, c.hidden} {
		for _, r := range list {
			g.thoughts[r.thought] = true
			if r.batch.End {
				g.ended[r.batch.ID] = true
			}
		}
	}
}

// add puts a visible entry into the index, and reports whether it is new there: not a copy of one that is.
func (g *agent) add(r record) bool {
	g.thoughts[r.thought] = true
	if r.batch.End {
		g.ended[r.batch.ID] = true
	}
	_, known := g.ids[r.key()]
	_, same := g.keys[r.entry.ID]
	if known || same {
		g.copies++
		return false
	}
	g.ids[r.key()] = r.entry.ID
	g.keys[r.entry.ID] = r.key()
	g.put(r.entry.ID, positionOf(r.entry))
	return true
}

// begun returns the thoughts of unfinished batches, by key and id.
func (g *agent) begun() twins { return census{hidden: g.hidden}.twins() }

// rename gives an entry another key.
func (g *agent) rename(id string, k sessionKey) {
	if _, known := g.keys[id]; known {
		at := g.places[id]
		g.drop(id)
		g.ids[k], g.keys[id] = id, k
		g.put(id, at)
	}
}

// drop takes an entry out of the index.
func (g *agent) drop(id string) {
	if k, ok := g.keys[id]; ok {
		delete(g.keys, id)
		delete(g.ids, k)
		at := g.places[id]
		delete(g.places, id)
		if g.taken[at] == id {
			delete(g.taken, at)
		}
	}
}

// put notes where an entry stands. Two writers who did not see each other may have put theirs at one position: the first counts.
func (g *agent) put(id string, at position) {
	g.places[id] = at
	g.next[at.session] = max(g.next[at.session], at.seq+1)
	if other, taken := g.taken[at]; !taken {
		g.taken[at] = id
	} else if other != id {
		g.tied = true
	}
}

// position is where in its session an entry stands.
type position struct {
	session string
	seq     int64
}

func positionOf(e core.Entry) position { return position{e.Session, e.Seq} }

// sizes remembers how many thoughts an agent had when they were listed last: what it costs to list them again.
type sizes struct {
	mu sync.Mutex
	m  map[string]int
}

func (s *sizes) put(agent string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil || len(s.m) >= maxSizes {
		s.m = map[string]int{}
	}
	s.m[agent] = n
}

func (s *sizes) get(agent string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m[agent]
}

// thoughtIDs remembers under which id the server keeps an entry. It only saves requests: what it says is checked
// when it is used.
type thoughtIDs struct {
	mu sync.Mutex
	m  map[string]string
}

func (t *thoughtIDs) put(id, thought string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = map[string]string{}
	}
	if _, known := t.m[id]; !known && len(t.m) >= maxThoughtIDs {
		for old := range t.m { // any will do
			delete(t.m, old)
			break
		}
	}
	t.m[id] = thought
}

func (t *thoughtIDs) get(id string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	thought, ok := t.m[id]
	return thought, ok
}

func (t *thoughtIDs) remove(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.m, id)
}
