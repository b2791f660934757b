package openbrain

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// abilities is what a server was found to lack, or to have beside the documented calls. It is remembered as long as the process lives.
type abilities struct {
	// noList, noGet and noStats say that it refused the calls that list all thoughts, read one, and count.
	noList, noGet, noStats atomic.Bool
	// noChanges says that it does not count changes and deletions, see Store.Tail.
	noChanges atomic.Bool
	// feed says that it announced that it tells what changed in a source since a mark, noFeed that it does not; see mirrors.
	feed, noFeed atomic.Bool
	// batch is how many bytes a request may have that stores several thoughts at once, 0 where there is no such call; refused is a size that something on the way to
	// the server did not let through, 0 where there is none.
	batch, refused atomic.Int64
	// searchesSource says that its searches take a source.
	searchesSource atomic.Bool
	// told says that its limits were said in the log.
	told atomic.Bool
}

// follow reports whether the server tells what changed.
func (a *abilities) follow() bool { return a.feed.Load() && !a.noFeed.Load() }

// heard takes from the header of a list of one source whether the server tells what changed in it, and whether it stores several thoughts at once.
func (a *abilities) heard(h http.Header) {
	a.feed.Store(h.Get(headerFeed) != "")
	most, _ := strconv.ParseInt(h.Get(headerBatch), 10, 64)
	a.batch.Store(max(most, 0))
}

// together reports whether the server stores several thoughts at once whose request has this size in bytes.
func (a *abilities) together(size int) bool {
	refused := a.refused.Load()
	return int64(size) <= min(a.batch.Load(), maxRequest) && (refused == 0 || int64(size) < refused)
}

// maxRemembered is how many thoughts are remembered in all, where the server shows only its newest ones.
const maxRemembered = 50_000

// remembered holds the thoughts that this process wrote or was shown on a server that does not show everything: recent is all there is to see
// otherwise.
type remembered struct {
	mu     sync.Mutex
	agents map[string]map[string]record // by agent, then by thought
	n      int
}

// put keeps records of an agent.
func (m *remembered) put(agent string, records ...record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.agents == nil {
		m.agents = map[string]map[string]record{}
	}
	known := m.agents[agent]
	if known == nil {
		known = map[string]record{}
		m.agents[agent] = known
	}
	for _, r := range records {
		if _, there := known[r.thought]; !there {
			m.n++
		}
		known[r.thought] = r
	}
	for name, other := range m.agents {
		if m.n <= maxRemembered {
			break
		}
		if name != agent {
			m.n -= len(other)
			delete(m.agents, name)
		}
	}
	if m.n > maxRemembered { // one agent alone: the older half goes
		all := sorted(known)
		for _, r := range all[:len(all)/2] {
			delete(known, r.thought)
			m.n--
		}
	}
}

// drop forgets a thought.
func (m *remembered) drop(agent, thought string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.agents[agent]; known != nil {
		if _, there := known[thought]; there {
			delete(known, thought)
			m.n--
		}
	}
}

// with returns what is known of an agent: the newest thoughts, as they were just shown, and older ones as they were. What is younger than the
// oldest shown and was not shown is gone.
func (m *remembered) with(agent string, shown []record) []record {
	m.mu.Lock()
	known := m.agents[agent]
	if len(shown) > 0 {
		there := make(map[string]bool, len(shown))
		oldest := shown[0]
		for _, r := range shown {
			there[r.thought] = true
			if r.earlier(oldest) < 0 {
				oldest = r
			}
		}
		for id, r := range known {
			if !there[id] && !r.created.IsZero() && r.created.After(oldest.created) {
				delete(known, id)
				m.n--
			}
		}
	}
	m.mu.Unlock()
	m.put(agent, shown...)
	m.mu.Lock()
	defer m.mu.Unlock()
	return sorted(m.agents[agent])
}

func sorted(records map[string]record) []record {
	out := make([]record, 0, len(records))
	for _, r := range records {
		out = append(out, r)
	}
	slices.SortFunc(out, record.earlier)
	return out
}
