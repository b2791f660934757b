package openbrain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"github.com/contextengine/contextengine/core"
)

const (
	// headerFeed is in what servers of this project answer about the thoughts of one source, when they say on pathChanges what changed in it since a mark.
	headerFeed  = "OpenBrain-Feed"
	pathChanges = "/v1/changes"
	// maxMirrored bounds what all mirrors take in memory, in bytes: a mirror that is larger is not kept.
	maxMirrored = 64 << 20
	// perRecord is about what a record takes beside its content, in bytes.
	perRecord = 1200
)

// mirrors hold what servers listed of agents, where these say what changed since: who reads all of an agent again is sent what is new.
type mirrors struct {
	mu      sync.Mutex
	byAgent map[string]*mirror
	bytes   int
	uses    uint64
	// large are agents whose mirror takes too much.
	large map[string]bool
}

// mirror is what there was of an agent at a mark. Whoever holds the lock may use the fields but the last two, which are guarded by mirrors.mu.
type mirror struct {
	lock chan struct{}
	mark string
	// records are in the order of record.earlier; at holds those that are among them by thought, without their content.
	records []record
	at      map[string]record
	// census is what the records amount to, when sorted says so. Those who were given it read its lists: they are never written to.
	census census
	sorted bool
	sizes  map[string]int // of all thoughts, by id
	bytes  int

	counted int
	used    uint64
}

func newMirror() *mirror { return &mirror{lock: make(chan struct{}, 1)} }

// acquire returns the mirror of an agent, locked; nil where there is to be none. It must be released.
func (m *mirrors) acquire(ctx context.Context, agent string) (*mirror, error) {
	m.mu.Lock()
	if m.large[agent] {
		m.mu.Unlock()
		return nil, nil
	}
	if m.byAgent == nil {
		m.byAgent = map[string]*mirror{}
	}
	x := m.byAgent[agent]
	if x == nil {
		x = newMirror()
		m.byAgent[agent] = x
	}
	m.uses++
	x.used = m.uses
	m.mu.Unlock()
	select {
	case x.lock <- struct{}{}:
		return x, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// release gives the lock back, and drops those mirrors that were used longest ago where all together take too much.
func (m *mirrors) release(agent string, x *mirror) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byAgent[agent] == x {
		m.bytes += x.bytes - x.counted
		x.counted = x.bytes
	}
	if x.bytes > maxMirrored {
		if m.large == nil || len(m.large) >= maxSizes {
			m.large = map[string]bool{}
		}
		m.large[agent] = true
		m.drop(agent)
	}
	<-x.lock
	for m.bytes > maxMirrored {
		oldest := ""
		for name, o := range m.byAgent {
			if oldest == "" || o.used < m.byAgent[oldest].used {
				oldest = name
			}
		}
		m.drop(oldest)
	}
}

// drop forgets a mirror; who works with it goes on with what it has.
func (m *mirrors) drop(agent string) {
	if x := m.byAgent[agent]; x != nil {
		m.bytes -= x.counted
		x.counted = 0
		delete(m.byAgent, agent)
	}
}

// clear forgets all of them.
func (m *mirrors) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byAgent, m.bytes = nil, 0
}

// followed returns what there is of an agent, and how many thoughts are no entries, where the server says what changed. ok is false when it takes a listing.
func (s *Store) followed(ctx context.Context, op, agent string) (c census, foreign int, ok bool, err error) {
	if !s.client.can.follow() {
		return census{}, 0, false, nil
	}
	m, err := s.mirrors.acquire(ctx, agent)
	if m == nil || err != nil {
		return census{}, 0, false, err
	}
	defer s.mirrors.release(agent, m)
	err = s.follow(ctx, op, agent, m)
	if lacks(err) {
		s.client.can.noFeed.Store(true)
		m.reset()
		return census{}, 0, false, nil
	}
	if errors.Is(err, errTooLarge) {
		return census{}, 0, false, nil
	}
	if err != nil {
		return census{}, 0, false, err
	}
	if !m.sorted {
		m.census, m.sorted = sortOut(slices.Clone(m.records)), true
	}
	c = census{visible: m.census.visible, copies: m.census.copies, hidden: slices.Clone(m.census.hidden), noted: m.census.noted}
	m.census.noted = true // the caller does so
	return c, len(m.sizes) - len(m.records), true, nil
}

// errTooLarge says that an agent has more than a mirror may take.
var errTooLarge = errors.New("more than is kept in memory")

func (m *mirror) reset() {
	m.mark, m.records, m.at, m.sizes, m.bytes = "", nil, map[string]record{}, map[string]int{}, 0
	m.census, m.sorted = census{}, false
}

// follow brings a mirror up to date. What it has so far stays good when that fails.
func (s *Store) follow(ctx context.Context, op, agent string, m *mirror) error {
	if m.sizes == nil {
		m.reset()
	}
	limit := s.cfg.PageSize
	for {
		page, err := s.client.changes(ctx, op, s.cfg.source(agent), m.mark, limit)
		switch {
		case isStatus(err, http.StatusGone) && m.mark != "":
			m.reset()
			continue
		case tooMuch(err) && limit > 1:
			limit = asFailure(err).smaller(limit)
			continue
		case err != nil:
			return err
		}
		for _, id := range page.gone {
			m.remove(id)
		}
		for _, t := range page.thoughts {
			if r, ok := m.put(s.cfg, t, agent); ok {
				s.ids.put(r.entry.ID, r.thought)
			}
		}
		if m.mark = page.mark; !page.more {
			return nil
		}
		if m.bytes > maxMirrored {
			return errTooLarge
		}
	}
}

func (m *mirror) remove(id string) {
	m.bytes -= m.sizes[id]
	delete(m.sizes, id)
	if r, there := m.at[id]; there {
		delete(m.at, id)
		i, found := slices.BinarySearchFunc(m.records, r, record.earlier)
		m.sorted = m.sorted && found && m.census.remove(&m.records[i])
		if found {
			m.records = slices.Delete(m.records, i, i+1)
		}
	}
}

// put takes in a thought as it is now. It returns the record where that is an entry that everybody sees.
func (m *mirror) put(cfg Config, t thought, agent string) (r record, visible bool) {
	r, ok := cfg.record(t, agent)
	if old, there := m.at[t.ID]; ok && there && old.created.Equal(r.created) {
		i, found := slices.BinarySearchFunc(m.records, old, record.earlier)
		if found && m.sorted && m.census.replace(&m.records[i], r) {
			m.weigh(t)
			m.records[i] = r
			return r, true
		}
	}
	m.remove(t.ID)
	m.weigh(t)
	if !ok {
		return r, false
	}
	m.at[t.ID] = record{thought: r.thought, created: r.created}
	i, _ := slices.BinarySearchFunc(m.records, r, record.earlier)
	m.sorted = m.sorted && i == len(m.records) && m.census.extend(r)
	m.records = slices.Insert(m.records, i, r) // what is new comes last
	return r, m.sorted
}

// weigh notes what a thought takes in memory.
func (m *mirror) weigh(t thought) {
	m.bytes -= m.sizes[t.ID]
	size := perRecord + len(t.Content)
	for _, v := range t.Meta {
		size += 2 * len(v)
	}
	m.sizes[t.ID] = size
	m.bytes += size
}

// extend adds a record that is younger than all others, where that is simple: it was stored alone, and is no copy. Who was given the list of the visible ones
// does not see it: it stands behind what they have, or in a new list.
func (c *census) extend(r record) bool {
	if r.batch.ID != "" || c.keys[r.key()] || c.ids[r.entry.ID] {
		return false
	}
	c.keys[r.key()], c.ids[r.entry.ID] = true, true
	i, _ := slices.BinarySearchFunc(c.visible, r, record.compare)
	if i == len(c.visible) {
		c.visible = append(c.visible, r)
	} else {
		c.visible = slices.Insert(slices.Clip(c.visible), i, r)
	}
	return true
}

// at returns where a record that was stored alone stands among the visible ones, where no other could take its place.
func (c *census) at(r *record) (int, bool) {
	if r.batch.ID != "" || len(c.copies) > 0 {
		return 0, false
	}
	i, found := slices.BinarySearchFunc(c.visible, *r, record.compare)
	return i, found && c.visible[i].thought == r.thought
}

// replace puts a record in the place of what it was, where that is simple. The list of the visible ones is a new one.
func (c *census) replace(old *record, r record) bool {
	i, ok := c.at(old)
	if !ok || old.entry.ID != r.entry.ID || old.batch != r.batch || old.compare(r) != 0 || old.key() != r.key() && c.keys[r.key()] {
		return false
	}
	delete(c.keys, old.key())
	c.keys[r.key()] = true
	c.visible = slices.Clone(c.visible)
	c.visible[i] = r
	return true
}

// remove takes a record out, where that is simple. The list of the visible ones is a new one.
func (c *census) remove(r *record) bool {
	i, ok := c.at(r)
	if !ok {
		return false
	}
	delete(c.keys, r.key())
	delete(c.ids, r.entry.ID)
	c.visible = slices.Concat(c.visible[:i], c.visible[i+1:])
	return true
}

// changed is what happened to the thoughts of a source since a mark.
type changed struct {
	thoughts []thought
	gone     []string
	mark     string
	more     bool
}

// changes asks for what happened since a mark; an empty one is before everything.
func (c *client) changes(ctx context.Context, op, source, since string, limit int) (changed, error) {
	q := url.Values{"source": {source}, "limit": {strconv.Itoa(limit)}}
	if since != "" {
		q.Set("since", since)
	}
	body, err := c.do(ctx, op, call{method: http.MethodGet, path: pathChanges, query: q, wantJSON: true, page: limit > 1})
	if err != nil {
		return changed{}, err
	}
	var rest struct {
		Gone []string `json:"gone"`
		Mark *string  `json:"mark"`
		More bool     `json:"more"`
	}
	page, err := decodeList(body)
	if err == nil {
		err = json.Unmarshal(body, &rest)
	}
	if err == nil && (rest.Mark == nil || rest.More && *rest.Mark == since) {
		err = errShape
	}
	if err != nil {
		return changed{}, &failure{what: fmt.Sprintf("answer to GET %s is %v", pathChanges, errShape), kind: core.ErrUnavailable}
	}
	return changed{page.thoughts, rest.Gone, *rest.Mark, rest.More}, nil
}
