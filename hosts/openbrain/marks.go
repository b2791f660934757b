package openbrain

import (
	"encoding/base64"
	"encoding/json"
	"sync"
)

// place is behind which thought a listing goes on. It stays right whatever comes and goes.
type place struct {
	Seq    int64  `json:"q"`
	Source string `json:"s"`
	ID     string `json:"i"`
}

func placeOf(t thought) place { return place{Seq: t.Seq, Source: t.Source, ID: t.ID} }

func (p place) cursor() string {
	b, _ := json.Marshal(p) // strings and a number: cannot fail
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseCursor(text string) (place, bool) {
	var p place
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(b, &p) != nil || p.Seq < 1 || checkSource(p.Source) != "" {
		return place{}, false
	}
	return p, true
}

// maxMarks is how many marks a source has at most.
const maxMarks = 4096

// marks remember at which thought a page began, so that a client that lists a source page by page through offsets does not make the store count
// from the start for every page.
type marks struct {
	mu sync.Mutex
	m  map[markKey]mark
}

type markKey struct {
	reverse bool
	offset  int
}

// mark holds while the numbers before it do: nothing was deleted, and in a reverse listing, nothing new came.
type mark struct {
	behind           place
	created, deleted int64
	// newest is the id of the source's newest thought.
	newest string
}

func (m *marks) get(k markKey) (mark, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x, ok := m.m[k]
	return x, ok
}

func (m *marks) put(k markKey, x mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil {
		m.m = map[markKey]mark{}
	}
	if _, there := m.m[k]; !there && len(m.m) >= maxMarks {
		for old := range m.m { // any will do
			delete(m.m, old)
			break
		}
	}
	m.m[k] = x
}
