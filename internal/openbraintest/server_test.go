package openbraintest

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// The server is as strict as the real one where clients could get away with something.
func TestStrictness(t *testing.T) {
	srv := New(t)
	for _, c := range []struct {
		method, path, body, key string
		want                    int
	}{
		{"POST", "/v1/thoughts", `{"content":"x","source":"s","metadata":{}}`, srv.Key(), 201},
		{"POST", "/v1/thoughts", `{"content":"x"}`, "wrong", 401},
		{"POST", "/v1/thoughts", `{"content":" "}`, srv.Key(), 422},
		{"POST", "/v1/thoughts", `{"content":"a\u0000"}`, srv.Key(), 500},
		{"POST", "/v1/thoughts", `{"content":"a","metadata":{"k":"\u0000"}}`, srv.Key(), 500},
		{"POST", "/v1/thoughts", `{"content":"a","metadata":{"k":"\\u0000"}}`, srv.Key(), 201},
		{"POST", "/v1/thoughts", "{\"content\":\"\xff\"}", srv.Key(), 422},
		{"POST", "/v1/thoughts", `{`, srv.Key(), 422},
		{"GET", "/v1/thoughts/", ``, srv.Key(), 307},
		{"GET", "/v1/thoughts?limit=0", ``, srv.Key(), 422},
		{"GET", "/v1/thoughts/none", ``, srv.Key(), 404},
		{"PUT", "/v1/thoughts", ``, srv.Key(), 405},
		{"DELETE", "/v1/thoughts", ``, srv.Key(), 400},
		{"DELETE", "/v1/thoughts?source=s&metadata_id=none", ``, srv.Key(), 200},
		{"GET", "/v1/other", ``, srv.Key(), 404},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, srv.URL()+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+c.key)
		req.Header.Set("Content-Type", "application/json")
		client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode != c.want {
			t.Errorf("%s %s %s = %d, want %d", c.method, c.path, c.body, res.StatusCode, c.want)
		}
	}
	if n := len(srv.Thoughts()); n != 2 {
		t.Errorf("%d thoughts stored, want 2", n)
	}
}
