package openbrain_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/hosts/openbrain"
)

// isolationModel is what a server should hold, and who may see it.
type isolationModel struct {
	f    *fixture
	rng  *rand.Rand
	seed uint64
	// may and own hold, for each key, what its patterns match.
	may     []map[string]bool
	own     [][]string
	sources []string
	// thoughts by id.
	source, word map[string]string
	ids          []string
	keyed        map[string]string // source and metadata id to thought
}

const (
	isolationSources = 1000
	isolationKeys    = 50
)

func keySecret(i int) string { return fmt.Sprintf("isolation-key-%04d-0123456789abcdef", i) }

// newIsolation makes 50 keys: some for one source, some for several by name, some by pattern.
func newIsolation(t *testing.T) *isolationModel {
	t.Helper()
	seed := rand.Uint64()
	m := &isolationModel{rng: rand.New(rand.NewPCG(seed, 0)), seed: seed, source: map[string]string{}, word: map[string]string{}, keyed: map[string]string{}}
	for i := range isolationSources {
		m.sources = append(m.sources, fmt.Sprintf("openclaw:team%02d:agent%d", i%40, i/40))
	}
	var keys []openbrain.Key
	for k := range isolationKeys {
		var patterns []string
		may, own := map[string]bool{}, []string(nil)
		switch k % 3 {
		case 0:
			patterns = []string{m.sources[m.rng.IntN(len(m.sources))]}
		case 1:
			for range 5 {
				patterns = append(patterns, m.sources[m.rng.IntN(len(m.sources))])
			}
		default: // a team; team1* would be ten of them
			patterns = []string{fmt.Sprintf("openclaw:team%02d:*", m.rng.IntN(40))}
		}
		for _, s := range m.sources {
			for _, p := range patterns {
				if head, star := strings.CutSuffix(p, "*"); !may[s] && (p == s || star && strings.HasPrefix(s, head)) {
					may[s], own = true, append(own, s)
				}
			}
		}
		m.may, m.own = append(m.may, may), append(m.own, own)
		keys = append(keys, key(fmt.Sprint("key", k), keySecret(k), patterns...))
	}
	keys = append(keys, key("admin", adminKey, "*"))
	m.f = serve(t, nil, func(c *openbrain.Config) { c.Keys = keys })
	return m
}

func (m *isolationModel) anySource() string { return m.sources[m.rng.IntN(len(m.sources))] }

func (m *isolationModel) anyID() string { return m.ids[m.rng.IntN(len(m.ids))] }

func (m *isolationModel) post(t *testing.T, secret, source string, allowed bool) {
	t.Helper()
	word, id := fmt.Sprintf("word%d", m.rng.IntN(20)), fmt.Sprint("k", m.rng.IntN(30))
	body := encode(t, map[string]any{"content": "shared " + word + " of " + source, "source": source, "metadata": map[string]any{"id": id}})
	r := m.f.ask(t, secret, http.MethodPost, "/v1/thoughts", body)
	old, known := m.keyed[source+"\x00"+id]
	switch {
	case !allowed:
		if r.status != http.StatusForbidden {
			t.Errorf("seed %d: POST to a foreign source = %d", m.seed, r.status)
		}
	case known:
		if r.status != http.StatusConflict && (r.status != http.StatusOK || m.word[old] != word) {
			t.Errorf("seed %d: POST under a known key = %d", m.seed, r.status)
		}
	default:
		var made thought
		if r.status != http.StatusCreated || json.Unmarshal(r.body, &made) != nil {
			t.Fatalf("seed %d: POST = %d", m.seed, r.status)
		}
		m.source[made.ID], m.word[made.ID], m.keyed[source+"\x00"+id] = source, word, made.ID
		m.ids = append(m.ids, made.ID)
	}
}

// forget removes what was deleted.
func (m *isolationModel) forget(gone func(id string) bool) (n int) {
	var left []string
	for _, id := range m.ids {
		if !gone(id) {
			left = append(left, id)
			continue
		}
		n++
		for k, v := range m.keyed {
			if v == id {
				delete(m.keyed, k)
			}
		}
		delete(m.source, id)
		delete(m.word, id)
	}
	m.ids = left
	return n
}

func (m *isolationModel) visible(k int) (n int) {
	for _, id := range m.ids {
		if m.may[k][m.source[id]] {
			n++
		}
	}
	return n
}

// shows checks that a list holds nothing that the key may not see, and all it asks for when want is not negative.
func (m *isolationModel) shows(t *testing.T, k int, what string, l list, want int) {
	t.Helper()
	if want >= 0 && l.Count != want {
		t.Errorf("seed %d: %s shows key %d %d thoughts, want %d", m.seed, what, k, l.Count, want)
	}
	for _, th := range l.Thoughts {
		if !m.may[k][th.Source] || m.source[th.ID] != th.Source || !strings.HasSuffix(th.Content, " "+th.Source) {
			t.Errorf("seed %d: %s shows key %d a thought of %q", m.seed, what, k, th.Source)
		}
	}
}

// step does one thing with a random key, of which it knows what should come.
func (m *isolationModel) step(t *testing.T) {
	t.Helper()
	k := m.rng.IntN(isolationKeys)
	secret, source, id := keySecret(k), m.anySource(), m.anyID()
	if m.rng.IntN(2) == 0 {
		source = m.own[k][m.rng.IntN(len(m.own[k]))]
		for _, x := range m.ids {
			if m.source[x] == source {
				id = x
			}
		}
	}
	allowed, owned := m.may[k][source], m.may[k][m.source[id]]
	one := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[owned]
	switch m.rng.IntN(12) {
	case 0, 1:
		m.post(t, secret, source, allowed)
	case 2:
		m.f.want(t, one, secret, http.MethodGet, "/v1/thoughts/"+id, "", nil)
	case 3:
		m.f.want(t, one, secret, http.MethodPatch, "/v1/thoughts/"+id, `{"metadata":{}}`, nil)
		if owned {
			for key, v := range m.keyed { // metadata_id does not find it any more, but its key is still known
				if v == id {
					m.f.want(t, http.StatusOK, secret, http.MethodPatch, "/v1/thoughts/"+id, fmt.Sprintf(`{"metadata":{"id":%q}}`, key[strings.Index(key, "\x00")+1:]), nil)
				}
			}
		}
	case 4:
		m.f.want(t, one, secret, http.MethodDelete, "/v1/thoughts/"+id, "", nil)
		if owned {
			m.forget(func(x string) bool { return x == id })
		}
	case 5:
		var l list
		m.f.want(t, http.StatusOK, secret, http.MethodGet, "/v1/thoughts/recent?limit=1000", "", &l)
		m.shows(t, k, "recent", l, m.visible(k))
	case 6:
		var l list
		m.f.want(t, http.StatusOK, secret, http.MethodGet, fmt.Sprintf("/v1/thoughts?limit=%d&offset=%d&order=asc", 1+m.rng.IntN(40), m.rng.IntN(5)), "", &l)
		m.shows(t, k, "list", l, -1)
	case 7:
		path := "/v1/thoughts?limit=1000&source=" + url.QueryEscape(source)
		if !allowed {
			m.f.want(t, http.StatusForbidden, secret, http.MethodGet, path, "", nil)
			return
		}
		var l list
		m.f.want(t, http.StatusOK, secret, http.MethodGet, path, "", &l)
		m.shows(t, k, "list of a source", l, m.count(source))
	case 8:
		l := m.f.search(t, secret, map[string]any{"query": "shared " + m.word[id] + " of " + m.source[id], "limit": 1000})
		m.shows(t, k, "search", l, m.visible(k)) // all share a word
	case 9:
		body := encode(t, map[string]any{"query": "shared", "source": source, "limit": 1000})
		if !allowed {
			m.f.want(t, http.StatusForbidden, secret, http.MethodPost, "/v1/search", body, nil)
			return
		}
		var l list
		m.f.want(t, http.StatusOK, secret, http.MethodPost, "/v1/search", body, &l)
		m.shows(t, k, "search of a source", l, m.count(source))
	case 10:
		var s struct {
			Total    int
			BySource map[string]int `json:"by_source"`
		}
		m.f.want(t, http.StatusOK, secret, http.MethodGet, "/v1/stats", "", &s)
		if s.Total != m.visible(k) {
			t.Errorf("seed %d: stats tell key %d of %d thoughts, want %d", m.seed, k, s.Total, m.visible(k))
		}
		for name, n := range s.BySource {
			if !m.may[k][name] || n != m.count(name) {
				t.Errorf("seed %d: stats tell key %d of %d thoughts of %q", m.seed, k, n, name)
			}
		}
	case 11:
		metadataID := fmt.Sprint("k", m.rng.IntN(30))
		var got struct{ Deleted int }
		m.f.want(t, http.StatusOK, secret, http.MethodDelete, "/v1/thoughts?metadata_id="+metadataID, "", &got)
		want := m.forget(func(id string) bool { return m.may[k][m.source[id]] && m.keyed[m.source[id]+"\x00"+metadataID] == id })
		if got.Deleted != want {
			t.Errorf("seed %d: key %d deleted %d by metadata_id, want %d", m.seed, k, got.Deleted, want)
		}
	}
}

func (m *isolationModel) count(source string) (n int) {
	for _, id := range m.ids {
		if m.source[id] == source {
			n++
		}
	}
	return n
}

// Whatever 50 keys do over a thousand sources, none reads, changes, finds, deletes or counts anything that is not its own, and each sees
// all that is.
func TestIsolationOfKeys(t *testing.T) {
	m := newIsolation(t)
	for _, s := range m.sources {
		m.post(t, adminKey, s, true)
	}
	steps := 1500
	if testing.Short() {
		steps = 300
	}
	for range steps {
		m.step(t)
		if t.Failed() {
			return
		}
	}
	var l list
	m.f.want(t, http.StatusOK, adminKey, http.MethodGet, "/v1/stats", "", nil)
	m.f.want(t, http.StatusOK, adminKey, http.MethodGet, "/v1/thoughts?limit=1000", "", &l)
	if want := min(len(m.ids), 1000); l.Count != want {
		t.Errorf("seed %d: at the end there are %d thoughts, want %d", m.seed, l.Count, want)
	}
}
