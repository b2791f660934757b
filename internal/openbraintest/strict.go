package openbraintest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
)

// documented is one of the six calls of the product document.
type documented struct {
	method, path string
	// fields are those of the body, needed the ones that must be there; parameters those of the query.
	fields, needed, parameters, required []string
}

var sixCalls = []documented{
	{method: http.MethodPost, path: "/v1/thoughts", fields: []string{"content", "source", "metadata"}, needed: []string{"content", "source", "metadata"}},
	{method: http.MethodPost, path: "/v1/search", fields: []string{"query", "limit"}, needed: []string{"query", "limit"}},
	{method: http.MethodGet, path: "/v1/thoughts/recent", parameters: []string{"limit", "source"}},
	{method: http.MethodPatch, path: "/v1/thoughts/:id", fields: []string{"content", "metadata"}},
	{method: http.MethodDelete, path: "/v1/thoughts/:id"},
	{method: http.MethodDelete, path: "/v1/thoughts", parameters: []string{"source", "metadata_id"}, required: []string{"source", "metadata_id"}},
}

// allowed answers what is not one of the six calls as they are written, and reports whether there is something left to do.
func allowed(w http.ResponseWriter, r *http.Request) bool {
	path := r.URL.EscapedPath()
	if id, ok := strings.CutPrefix(path, "/v1/thoughts/"); ok && id != "recent" && id != "" && !strings.Contains(id, "/") {
		path = "/v1/thoughts/:id"
	}
	i := slices.IndexFunc(sixCalls, func(c documented) bool { return c.method == r.Method && c.path == path })
	if i < 0 {
		answer(w, http.StatusNotFound, detail("Not Found"))
		return false
	}
	call := sixCalls[i]
	refused := func(where, name, msg string) bool {
		answer(w, http.StatusUnprocessableEntity, map[string]any{"detail": []any{map[string]any{
			"type": map[bool]string{true: "missing", false: "extra_forbidden"}[msg == "Field required"], "loc": []any{where, name}, "msg": msg,
		}}})
		return false
	}
	query := r.URL.Query()
	for name, values := range query {
		if !slices.Contains(call.parameters, name) || len(values) != 1 {
			return refused("query", name, "Extra inputs are not permitted")
		}
	}
	for _, name := range call.required {
		if query.Get(name) == "" {
			return refused("query", name, "Field required")
		}
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var fields map[string]json.RawMessage
	if call.fields == nil {
		if len(body) > 0 {
			return refused("body", "", "Extra inputs are not permitted")
		}
		return true
	}
	if json.Unmarshal(body, &fields) != nil {
		return true // read answers it
	}
	for name := range fields {
		if !slices.Contains(call.fields, name) {
			return refused("body", name, "Extra inputs are not permitted")
		}
	}
	for _, name := range call.needed {
		if fields[name] == nil {
			return refused("body", name, "Field required")
		}
	}
	return true
}
