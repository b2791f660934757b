package openbrain_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shape describes JSON: the names and types of everything in it, the first element of lists.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			out[k] = shape(x)
		}
		return out
	case []any:
		if len(v) == 0 {
			return []any{}
		}
		return []any{shape(v[0])}
	case nil:
		return "null"
	default:
		return fmt.Sprintf("%T", v)
	}
}

// The documented calls and the extras answer with the documented status and shape, to requests as curl and other people's clients make
// them.
func TestDocumentedCalls(t *testing.T) {
	f := serve(t, nil, twoKeys)
	th := map[string]any{
		"id": "string", "content": "string", "source": "string", "metadata": map[string]any{"id": "string"}, "created_at": "string", "updated_at": "string",
	}
	scored := maps.Clone(th)
	scored["similarity"] = "float64"
	listed := func(element any, next bool) map[string]any {
		out := map[string]any{"thoughts": []any{element}, "count": "float64"}
		if next {
			out["next"] = "string"
		}
		return out
	}
	numbers := map[string]any{"total": "float64", "embedded": "float64", "pending": "float64"}
	statistics := maps.Clone(numbers)
	statistics["by_source"], statistics["sources"] = map[string]any{"s": "float64"}, map[string]any{"s": numbers}
	detail := map[string]any{"detail": "string"}
	problems := map[string]any{"detail": []any{map[string]any{"type": "string", "loc": []any{"string"}, "msg": "string"}}}
	deleted := map[string]any{"status": "string", "deleted": "float64"}
	one := maps.Clone(deleted)
	one["id"] = "string"

	first := f.post(t, adminKey, "s", "the kettle", `{"id":"k1"}`)
	f.post(t, adminKey, "s", "the kettle again", `{"id":"k2"}`)
	path := "/v1/thoughts/" + first.ID
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	instant := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)
	if !uuid.MatchString(first.ID) || !instant.MatchString(first.CreatedAt) {
		t.Errorf("id %q and created_at %q have other forms", first.ID, first.CreatedAt)
	}
	for _, tc := range []struct {
		method, path, body string
		status             int
		want               any
	}{
		{"POST", "/v1/thoughts", `{"content":"new","source":"s","metadata":{"id":"k3"}}`, 201, th},
		{"POST", "/v1/thoughts", `{"content":"new","source":"s","metadata":{"id":"k3"}}`, 200, th},
		{"POST", "/v1/thoughts", `{"content":"new","source":"s","metadata":{"id":"k3"},"tags":["unknown fields are ignored"]}`, 200, th},
		{"POST", "/v1/thoughts", `{"content":"other","source":"s","metadata":{"id":"k3"}}`, 409, detail},
		{"POST", "/v1/thoughts", `{"source":"s"}`, 422, problems},
		{"POST", "/v1/search", `{"query":"kettle","limit":5}`, 200, listed(scored, false)},
		{"POST", "/v1/search", `{"query":"kettle"}`, 200, listed(scored, false)},
		{"POST", "/v1/search", `{"query":"nothing like it"}`, 200, map[string]any{"thoughts": []any{}, "count": "float64"}},
		{"GET", "/v1/thoughts/recent?limit=1", "", 200, listed(th, false)},
		{"GET", "/v1/thoughts/recent?limit=1&source=s", "", 200, listed(th, false)},
		{"GET", "/v1/thoughts/recent?limit=x", "", 422, problems},
		{"PATCH", path, `{"content":"the blue kettle"}`, 200, th},
		{"PATCH", path, `{"metadata":{"id":"k1"}}`, 200, th},
		{"PATCH", "/v1/thoughts/unknown", `{"content":"x"}`, 404, detail},
		{"GET", path, "", 200, th},
		{"GET", "/v1/thoughts?source=s&limit=1", "", 200, listed(th, true)},
		{"GET", "/v1/thoughts?source=s&limit=50", "", 200, listed(th, false)},
		{"GET", "/v1/stats", "", 200, statistics},
		{"DELETE", path, "", 200, one},
		{"DELETE", path, "", 404, detail},
		{"DELETE", "/v1/thoughts?source=s&metadata_id=k2", "", 200, deleted},
		{"DELETE", "/v1/thoughts?metadata_id=k2", "", 200, deleted},
		{"DELETE", "/v1/thoughts", "", 400, detail},
		{"DELETE", "/v1/thoughts?source=s", "", 200, deleted},
		{"GET", "/nothing", "", 404, detail},
		{"PUT", "/v1/thoughts", "{}", 405, detail},
	} {
		r := f.ask(t, adminKey, tc.method, tc.path, tc.body)
		var got any
		if err := json.Unmarshal(r.body, &got); err != nil {
			t.Errorf("%s %s: %v in %s", tc.method, tc.path, err, r.body)
			continue
		}
		if diff := cmp.Diff(tc.want, shape(got)); r.status != tc.status || diff != "" {
			t.Errorf("%s %s = %d, want %d; shape (-want +got):\n%s", tc.method, tc.path, r.status, tc.status, diff)
		}
		if kind := r.header.Get("Content-Type"); kind != "application/json" || r.header.Get("X-Content-Type-Options") != "nosniff" || r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: headers %v", tc.method, tc.path, r.header)
		}
	}
	if r := f.ask(t, "", "GET", "/v1/stats", ""); r.status != http.StatusUnauthorized || r.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("without a key = %d, %v", r.status, r.header)
	}
	// Nothing that answers without a key tells anything.
	for _, path := range []string{"/healthz", "/readyz"} {
		r := f.ask(t, "", "GET", path, "")
		if r.status != 200 || string(r.body) != "{\"status\":\"ok\"}\n" || slices.Contains(slices.Collect(maps.Keys(r.header)), "Server") {
			t.Errorf("GET %s = %d %s %v", path, r.status, r.body, r.header)
		}
		if r := f.ask(t, "", "HEAD", path, ""); r.status != 200 || len(r.body) != 0 {
			t.Errorf("HEAD %s = %d %s", path, r.status, r.body)
		}
	}
}
