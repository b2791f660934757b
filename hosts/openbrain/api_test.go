package openbrain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/openbrain"
)

func TestThoughtsComeBackAsTheyWere(t *testing.T) {
	f := serve(t, nil, nil)
	for name, tc := range map[string]struct{ content, metadata string }{
		"plain":    {"the kettle is on", `{"sessionId":"s","turn":3,"role":"assistant","type":"message"}`},
		"nul":      {"a\x00b", `{"k\u0000":"v\u0000"}`},
		"html":     {"<b>&\u2028</b> \u00e9 😀", `{"a":"<&>\u2028"}`},
		"numbers":  {"n", `{"big":12345678901234567890123,"exp":1e3,"neg":-0.0,"z":1.10}`},
		"order":    {"o", `{"b":1,"a":{"d":[],"c":null},"b2":true}`},
		"escapes":  {"\\u0000 \"q\" \n\t", `{"half":"\ud800","slash":"\/"}`},
		"no meta":  {"x", `{}`},
		"odd keys": {" ", `{"":"","content":"no"}`},
	} {
		t.Run(name, func(t *testing.T) {
			created := f.post(t, "", "openclaw:main", tc.content, tc.metadata)
			var got thought
			f.want(t, http.StatusOK, "", http.MethodGet, "/v1/thoughts/"+created.ID, "", &got)
			if diff := cmp.Diff(created, got); diff != "" {
				t.Errorf("GET differs from what POST answered (-post +get):\n%s", diff)
			}
			if got.Content != tc.content || string(got.Metadata) != tc.metadata || got.Source != "openclaw:main" {
				t.Errorf("got %q %s %q, want %q %s", got.Content, got.Metadata, got.Source, tc.content, tc.metadata)
			}
			if got.CreatedAt == "" || got.CreatedAt != got.UpdatedAt {
				t.Errorf("created_at %q, updated_at %q; want the same time", got.CreatedAt, got.UpdatedAt)
			}
		})
	}
}

func TestCreateIsIdempotentByKey(t *testing.T) {
	f := serve(t, nil, nil)
	body := `{"content":"one","source":"s","metadata":{"id":"k1","n":1}}`
	var first, again thought
	f.want(t, http.StatusCreated, "", http.MethodPost, "/v1/thoughts", body, &first)
	f.want(t, http.StatusOK, "", http.MethodPost, "/v1/thoughts", `{"metadata":{"n":1, "id":"k1"},"source":"s","content":"one"}`, &again)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("second POST (-first +second):\n%s", diff)
	}
	f.want(t, http.StatusCreated, "", http.MethodPost, "/v1/thoughts", strings.Replace(body, `"s"`, `"other"`, 1), nil)
	r := f.want(t, http.StatusConflict, "", http.MethodPost, "/v1/thoughts", strings.Replace(body, "one", "secret two", 1), nil)
	if strings.Contains(string(r.body), "secret") || strings.Contains(string(r.body), "k1") {
		t.Errorf("409 repeats the request: %s", r.body)
	}
	// A late repetition still finds what it made, however it was changed since.
	f.want(t, http.StatusOK, "", http.MethodPatch, "/v1/thoughts/"+first.ID, `{"content":"changed"}`, nil)
	f.want(t, http.StatusOK, "", http.MethodPost, "/v1/thoughts", body, &again)
	if again.Content != "changed" {
		t.Errorf("late repetition = %q, want the changed thought", again.Content)
	}
	f.want(t, http.StatusOK, "", http.MethodDelete, "/v1/thoughts/"+first.ID, "", nil)
	f.want(t, http.StatusCreated, "", http.MethodPost, "/v1/thoughts", body, nil)

	for i, want := range []int{http.StatusCreated, http.StatusOK} {
		r := f.ask(t, "", http.MethodPost, "/v1/thoughts", `{"content":"h","source":"s"}`, "Idempotency-Key", "head")
		if r.status != want {
			t.Errorf("POST %d with Idempotency-Key = %d, want %d", i, r.status, want)
		}
	}
	for range 2 { // without a key nothing is the same
		f.want(t, http.StatusCreated, "", http.MethodPost, "/v1/thoughts", `{"content":"h","source":"s","metadata":{"id":7}}`, nil)
	}
}

func TestPatch(t *testing.T) {
	f := serve(t, nil, nil)
	made := f.post(t, "", "s", "walrus one", `{"a":1,"sessionId":"x"}`)
	var got thought
	f.want(t, http.StatusOK, "", http.MethodPatch, "/v1/thoughts/"+made.ID, `{"metadata":{"b":2,"sessionId":"y"}}`, &got)
	if got.Content != "walrus one" || string(got.Metadata) != `{"b":2,"sessionId":"y"}` || got.CreatedAt != made.CreatedAt || got.UpdatedAt == made.UpdatedAt {
		t.Errorf("PATCH metadata = %+v", got)
	}
	f.want(t, http.StatusOK, "", http.MethodPatch, "/v1/thoughts/"+made.ID, `{"content":"penguin","metadata":null}`, &got)
	if got.Content != "penguin" || string(got.Metadata) != `{"b":2,"sessionId":"y"}` {
		t.Errorf("PATCH content = %+v", got)
	}
	if l := f.search(t, "", map[string]any{"query": "penguin"}); len(l.Thoughts) != 1 {
		t.Errorf("new word: %d hits, want 1", len(l.Thoughts))
	}
	if l := f.search(t, "", map[string]any{"query": "walrus"}); len(l.Thoughts) != 0 {
		t.Errorf("old word: %d hits, want 0", len(l.Thoughts))
	}
	f.want(t, http.StatusNotFound, "", http.MethodPatch, "/v1/thoughts/none", `{"content":"x"}`, nil)
	f.want(t, http.StatusUnprocessableEntity, "", http.MethodPatch, "/v1/thoughts/"+made.ID, `{}`, nil)
}

func TestListAndRecent(t *testing.T) {
	f := serve(t, nil, nil)
	var all []string // newest first
	for i := range 25 {
		content := fmt.Sprintf("n%02d", i)
		f.post(t, "", fmt.Sprintf("s%d", i%3), content, fmt.Sprintf(`{"id":%d}`, i%5))
		all = append([]string{content}, all...)
	}
	of := func(source int) []string {
		var out []string
		for i := 24; i >= 0; i-- {
			if i%3 == source {
				out = append(out, fmt.Sprintf("n%02d", i))
			}
		}
		return out
	}
	oldest := slices.Clone(all)
	slices.Reverse(oldest)
	for _, tc := range []struct {
		path string
		want []string
	}{
		{"/v1/thoughts/recent", all[:20]},
		{"/v1/thoughts/recent?limit=3", all[:3]},
		{"/v1/thoughts/recent?limit=3&source=s1", of(1)[:3]},
		{"/v1/thoughts/recent?source=nobody", []string{}},
		{"/v1/thoughts?limit=100", all},
		{"/v1/thoughts?limit=100&order=asc", oldest},
		{"/v1/thoughts?limit=4&offset=5", all[5:9]},
		{"/v1/thoughts?limit=4&offset=24", all[24:]},
		{"/v1/thoughts?limit=4&offset=25", []string{}},
		{"/v1/thoughts?source=s2&limit=100", of(2)},
		{"/v1/thoughts?source=s2&limit=3&offset=2", of(2)[2:5]},
		{"/v1/thoughts?metadata_id=4", []string{"n24", "n19", "n14", "n09", "n04"}},
		{"/v1/thoughts?metadata_id=4&offset=1&limit=2", []string{"n19", "n14"}},
	} {
		var l list
		f.want(t, http.StatusOK, "", http.MethodGet, tc.path, "", &l)
		if diff := cmp.Diff(tc.want, l.contents()); diff != "" || l.Count != len(tc.want) {
			t.Errorf("GET %s, count %d (-want +got):\n%s", tc.path, l.Count, diff)
		}
	}
	for _, base := range []string{"?limit=4", "?limit=4&order=asc", "?limit=2&source=s1", "?limit=1&metadata_id=4"} {
		var whole list
		f.want(t, http.StatusOK, "", http.MethodGet, "/v1/thoughts"+strings.NewReplacer("limit=4", "limit=100", "limit=2", "limit=100", "limit=1", "limit=100").Replace(base), "", &whole)
		got, cursor := []string{}, ""
		for range 30 {
			var l list
			f.want(t, http.StatusOK, "", http.MethodGet, "/v1/thoughts"+base+"&cursor="+cursor, "", &l)
			got = append(got, l.contents()...)
			if cursor = l.Next; cursor == "" {
				break
			}
		}
		if diff := cmp.Diff(whole.contents(), got); diff != "" {
			t.Errorf("cursors over %s (-want +got):\n%s", base, diff)
		}
	}
}

// Pages by offset stay right while marks are in use and something comes or goes.
func TestOffsetsAfterChanges(t *testing.T) {
	store := memory.New()
	a, b := serve(t, store, nil), serve(t, store, nil)
	var made []thought
	for i := range 12 {
		made = append(made, a.post(t, "", "s", fmt.Sprint(i), `{}`))
	}
	page := func(offset int, order string) []string {
		var l list
		a.want(t, http.StatusOK, "", http.MethodGet, fmt.Sprintf("/v1/thoughts?source=s&limit=3&offset=%d&order=%s", offset, order), "", &l)
		return l.contents()
	}
	check := func(when, order string, offset int, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, page(offset, order)); diff != "" {
			t.Errorf("%s: %s from %d (-want +got):\n%s", when, order, offset, diff)
		}
	}
	page(0, "desc")
	page(0, "asc")
	check("as it was", "desc", 2, "9", "8", "7")
	check("as it was", "desc", 3, "8", "7", "6")
	b.post(t, "", "s", "12", `{}`)
	check("another server added", "desc", 3, "9", "8", "7")
	a.post(t, "", "s", "13", `{}`)
	check("this server added", "desc", 3, "10", "9", "8")
	check("both added", "asc", 3, "3", "4", "5")
	a.want(t, http.StatusOK, "", http.MethodDelete, "/v1/thoughts/"+made[0].ID, "", nil)
	check("the oldest went", "asc", 3, "4", "5", "6")
}

func TestSearch(t *testing.T) {
	f := serve(t, nil, nil)
	f.post(t, "", "a", "the ferry leaves at nine", `{"sessionId":"x","tags":["t"]}`)
	f.post(t, "", "b", "ferry ferry ferry timetable", `{"sessionId":"y"}`)
	f.post(t, "", "c", "nothing of interest", `{"sessionId":"x"}`)
	l := f.search(t, "", map[string]any{"query": "ferry"})
	if len(l.Thoughts) != 2 {
		t.Fatalf("search = %q, want both ferries", l.contents())
	}
	for i, h := range l.Thoughts {
		if h.Similarity == nil || *h.Similarity <= 0 || *h.Similarity > 1 || (i > 0 && *h.Similarity > *l.Thoughts[i-1].Similarity) {
			t.Errorf("similarity of hit %d is %v; want falling numbers in (0,1]", i, h.Similarity)
		}
	}
	for _, tc := range []struct {
		body map[string]any
		want []string
	}{
		{map[string]any{"query": "ferry", "limit": 1, "source": "a"}, []string{"the ferry leaves at nine"}},
		{map[string]any{"query": "ferry", "metadata": map[string]any{"sessionId": "y"}}, []string{"ferry ferry ferry timetable"}},
		{map[string]any{"query": "ferry", "metadata": map[string]any{"tags": []string{"t"}}}, []string{"the ferry leaves at nine"}},
		{map[string]any{"query": "ferry", "metadata": map[string]any{"tags": "t"}}, []string{}},
		{map[string]any{"query": "ferry", "source": "nobody"}, []string{}},
		{map[string]any{"query": " "}, []string{}},
		{map[string]any{"query": "\" OR (NEAR \x00*"}, []string{}},
	} {
		if diff := cmp.Diff(tc.want, f.search(t, "", tc.body).contents()); diff != "" {
			t.Errorf("search %v (-want +got):\n%s", tc.body, diff)
		}
	}
}

func TestDelete(t *testing.T) {
	f := serve(t, nil, nil)
	one := f.post(t, "", "s", "zebra one", `{"id":"i1"}`)
	f.post(t, "", "s", "zebra two", `{"id":"i2"}`)
	f.post(t, "", "u", "zebra three", `{"id":"i2"}`)
	f.want(t, http.StatusOK, "", http.MethodDelete, "/v1/thoughts/"+one.ID, "", nil)
	f.want(t, http.StatusNotFound, "", http.MethodDelete, "/v1/thoughts/"+one.ID, "", nil)
	f.want(t, http.StatusNotFound, "", http.MethodGet, "/v1/thoughts/"+one.ID, "", nil)
	if l := f.search(t, "", map[string]any{"query": "zebra"}); len(l.Thoughts) != 2 {
		t.Errorf("after delete: %q, want two", l.contents())
	}
	for _, tc := range []struct {
		path   string
		status int
		n      int
	}{
		{"/v1/thoughts", http.StatusBadRequest, 0},
		{"/v1/thoughts?source=", http.StatusBadRequest, 0},
		{"/v1/thoughts?source=&metadata_id=i2", http.StatusBadRequest, 0},
		{"/v1/thoughts?source=s&source=u", http.StatusBadRequest, 0},
		{"/v1/thoughts?source=s&metadata_id=%zz", http.StatusBadRequest, 0},
		{"/v1/thoughts?source=s&metadata_id=none", http.StatusOK, 0},
		{"/v1/thoughts?source=s&metadata_id=i2", http.StatusOK, 1},
		{"/v1/thoughts?metadata_id=i2", http.StatusOK, 1},
		{"/v1/thoughts?source=s", http.StatusOK, 0},
	} {
		var got struct{ Deleted int }
		f.want(t, tc.status, "", http.MethodDelete, tc.path, "", &got)
		if got.Deleted != tc.n {
			t.Errorf("DELETE %s deleted %d, want %d", tc.path, got.Deleted, tc.n)
		}
	}
	for i := range 2500 {
		f.post(t, "", "many", fmt.Sprint(i), `{}`)
	}
	var got struct{ Deleted int }
	f.want(t, http.StatusOK, "", http.MethodDelete, "/v1/thoughts?source=many", "", &got)
	if got.Deleted != 2500 {
		t.Errorf("deleted %d, want 2500", got.Deleted)
	}
}

func TestStatsFollowChanges(t *testing.T) {
	f := serve(t, nil, nil)
	type stats struct {
		Total, Embedded, Pending int
		BySource                 map[string]int `json:"by_source"`
	}
	check := func(want stats) {
		t.Helper()
		var got stats
		f.want(t, http.StatusOK, "", http.MethodGet, "/v1/stats", "", &got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	}
	check(stats{BySource: map[string]int{}})
	one := f.post(t, "", "a", "x", `{"id":"1"}`)
	f.post(t, "", "b", "y", `{}`)
	check(stats{Total: 2, BySource: map[string]int{"a": 1, "b": 1}})
	f.want(t, http.StatusOK, "", http.MethodPost, "/v1/thoughts", `{"content":"x","source":"a","metadata":{"id":"1"}}`, nil)
	f.post(t, "", "b", "z", `{}`)
	check(stats{Total: 3, BySource: map[string]int{"a": 1, "b": 2}})
	f.want(t, http.StatusOK, "", http.MethodDelete, "/v1/thoughts/"+one.ID, "", nil)
	check(stats{Total: 2, BySource: map[string]int{"b": 2}})
}

func TestRefusals(t *testing.T) {
	f := serve(t, nil, func(c *openbrain.Config) { c.MaxBody, c.MaxLimit = 2048, 50 })
	const secret = "SENTINEL"
	for _, tc := range []struct {
		method, path, body string
		status             int
		kind               string
	}{
		{"POST", "/v1/thoughts", `{"source":"SENTINEL"}`, 422, "missing"},
		{"POST", "/v1/thoughts", `{"content":null}`, 422, "missing"},
		{"POST", "/v1/thoughts", `{"Content":"SENTINEL"}`, 422, "missing"},
		{"POST", "/v1/thoughts", `{"content":["SENTINEL"]}`, 422, "string_type"},
		{"POST", "/v1/thoughts", `{"content":""}`, 422, "string_too_short"},
		{"POST", "/v1/thoughts", `{"content":"SENTINEL \ud800"}`, 422, "string_unicode"},
		{"POST", "/v1/thoughts", `{"content":"SENTINEL \udc00\ud800"}`, 422, "string_unicode"},
		{"POST", "/v1/thoughts", "{\"content\":\"SENTINEL \xff\"}", 422, "json_invalid"},
		{"POST", "/v1/thoughts", `{"content":"SENTINEL"`, 422, "json_invalid"},
		{"POST", "/v1/thoughts", `["SENTINEL"]`, 422, "model_attributes_type"},
		{"POST", "/v1/thoughts", `null`, 422, "model_attributes_type"},
		{"POST", "/v1/thoughts", `{"content":"x","metadata":"SENTINEL"}`, 422, "dict_type"},
		{"POST", "/v1/thoughts", `{"content":"x","source":5}`, 422, "string_type"},
		{"POST", "/v1/thoughts", `{"content":"x","source":""}`, 422, "value_error"},
		{"POST", "/v1/thoughts", `{"content":"x","source":"a\u0000"}`, 422, "value_error"},
		{"POST", "/v1/thoughts", `{"content":"x","source":"` + openbrain.CatalogueAgent + `"}`, 422, "value_error"},
		{"POST", "/v1/thoughts", `{"content":"` + strings.Repeat("x", 4096) + `"}`, 413, ""},
		{"POST", "/v1/search", `{"limit":5}`, 422, "missing"},
		{"POST", "/v1/search", `{"query":"SENTINEL","limit":0}`, 422, "greater_than_equal"},
		{"POST", "/v1/search", `{"query":"SENTINEL","limit":51}`, 422, "less_than_equal"},
		{"POST", "/v1/search", `{"query":"SENTINEL","limit":"many"}`, 422, "int_parsing"},
		{"POST", "/v1/search", `{"query":"SENTINEL","metadata":[]}`, 422, "dict_type"},
		{"GET", "/v1/thoughts/recent?limit=0", "", 422, "greater_than_equal"},
		{"GET", "/v1/thoughts/recent?limit=51", "", 422, "less_than_equal"},
		{"GET", "/v1/thoughts/recent?limit=SENTINEL", "", 422, "int_parsing"},
		{"GET", "/v1/thoughts?offset=-1", "", 422, "greater_than_equal"},
		{"GET", "/v1/thoughts?order=SENTINEL", "", 422, "enum"},
		{"GET", "/v1/thoughts?cursor=SENTINEL", "", 422, "value_error"},
		{"GET", "/v1/thoughts?source=%zz", "", 400, ""},
		{"GET", "/v1/thoughts/SENTINEL", "", 404, ""},
		{"GET", "/v1/thoughts/00000000-0000-0000-0000-000000000000", "", 404, ""},
		{"GET", "/v1/thoughts/%2e%2e%2fSENTINEL", "", 404, ""},
		{"GET", "/v1/SENTINEL", "", 404, ""},
		{"PUT", "/v1/thoughts", `{}`, 405, ""},
		{"POST", "/v1/stats", `{}`, 405, ""},
		{"DELETE", "/v1/thoughts/recent", "", 405, ""},
	} {
		name := tc.method + " " + tc.path + " " + tc.body[:min(len(tc.body), 60)]
		r := f.ask(t, "", tc.method, tc.path, tc.body)
		if r.status != tc.status {
			t.Errorf("%s = %d, want %d: %s", name, r.status, tc.status, r.body)
			continue
		}
		if strings.Contains(string(r.body), secret) {
			t.Errorf("%s: the answer repeats what was sent: %s", name, r.body)
		}
		var text struct{ Detail string }
		var problems struct {
			Detail []struct {
				Type, Msg string
				Loc       []any
			}
		}
		if tc.status == 422 {
			if json.Unmarshal(r.body, &problems) != nil || len(problems.Detail) != 1 || problems.Detail[0].Type != tc.kind || len(problems.Detail[0].Loc) == 0 {
				t.Errorf("%s: %s, want one problem of type %q", name, r.body, tc.kind)
			}
		} else if json.Unmarshal(r.body, &text) != nil || text.Detail == "" {
			t.Errorf("%s: %s, want a detail", name, r.body)
		}
		if tc.status == 405 && r.header.Get("Allow") == "" {
			t.Errorf("%s: no Allow header", name)
		}
	}
	if strings.Contains(f.log.String(), secret) {
		t.Error("the log repeats what was sent")
	}
	if r := f.ask(t, "", "POST", "/v1/thoughts", `{"content":"x"}`, "Content-Type", "text/plain"); r.status != http.StatusUnsupportedMediaType {
		t.Errorf("text/plain = %d, want 415", r.status)
	}
	if r := f.ask(t, "", "GET", "/v1/stats", "", "Idempotency-Key", "x"); r.status != 200 {
		t.Errorf("stats = %d", r.status)
	}
}

// countingStore counts the entries that scans return.
type countingStore struct {
	core.Store
	entries atomic.Int64
}

func (s *countingStore) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	page, err := s.Store.Scan(ctx, q)
	s.entries.Add(int64(len(page.Entries)))
	return page, err
}

// Listing a source page by page reads each thought a few times, not once for every page behind it.
func TestPagesByOffsetDoNotStartOver(t *testing.T) {
	const n, limit = 1000, 10
	store := &countingStore{Store: memory.New()}
	f := serve(t, store, nil)
	for i := range n {
		f.post(t, "", "s", fmt.Sprint(i), `{}`)
	}
	for _, order := range []string{"desc", "asc"} {
		store.entries.Store(0)
		seen := map[string]bool{}
		for offset := 0; offset < n; {
			var l list
			f.want(t, http.StatusOK, "", http.MethodGet, fmt.Sprintf("/v1/thoughts?source=s&limit=%d&offset=%d&order=%s", limit, offset, order), "", &l)
			for _, c := range l.contents() {
				seen[c] = true
			}
			offset += l.Count
			if offset < n {
				offset-- // as a client that checks for shifts does
			}
		}
		if got := store.entries.Load(); len(seen) != n || got > 3*n {
			t.Errorf("%s: saw %d of %d thoughts, the store returned %d", order, len(seen), n, got)
		}
	}
}
