package openbraintest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
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

// TestStrict: the six calls of the product document as it has them, and nothing else.
func TestStrict(t *testing.T) {
	for _, c := range []struct {
		max    int
		clamp  bool
		beyond int
	}{{100, false, 422}, {20, false, 422}, {100, true, 200}, {20, true, 200}} {
		t.Run(fmt.Sprintf("%d clamp %t", c.max, c.clamp), func(t *testing.T) {
			srv := New(t, Strict(c.max, c.clamp))
			for i := range 130 {
				srv.Insert(fmt.Sprintf("thought %d about kites", i), []string{"mine", "other"}[i%2], map[string]any{"id": fmt.Sprint(i % 5)})
			}
			id := srv.Thoughts()[0].ID
			for _, call := range []struct {
				method, path, body string
				want, found        int
			}{
				{"POST", "/v1/thoughts", `{"content":"x","source":"s","metadata":{}}`, 201, -1},
				{"POST", "/v1/thoughts", `{"content":"x","source":"s","metadata":{},"tags":[]}`, 422, -1},
				{"POST", "/v1/thoughts", `{"content":"x","metadata":{}}`, 422, -1},
				{"POST", "/v1/search", `{"query":"kites","limit":12}`, 200, 12},
				{"POST", "/v1/search", `{"query":"kites","limit":120}`, 200, 120},
				{"POST", "/v1/search", `{"query":"kites","limit":12,"source":"mine"}`, 422, -1},
				{"POST", "/v1/search", `{"query":"kites"}`, 422, -1},
				{"GET", fmt.Sprintf("/v1/thoughts/recent?source=mine&limit=%d", min(c.max, 60)), "", 200, min(c.max, 60)},
				{"GET", "/v1/thoughts/recent?source=mine&limit=101", "", c.beyond, min(c.max, 65)},
				{"GET", "/v1/thoughts/recent", "", 200, 20},
				{"GET", "/v1/thoughts/recent?offset=20", "", 422, -1},
				{"GET", "/v1/thoughts?source=mine", "", 404, -1},
				{"GET", "/v1/thoughts/" + id, "", 404, -1},
				{"GET", "/v1/stats", "", 404, -1},
				{"GET", "/healthz", "", 404, -1},
				{"PUT", "/v1/thoughts/" + id, `{}`, 404, -1},
				{"PATCH", "/v1/thoughts/" + id, `{"metadata":{"id":"0"}}`, 200, -1},
				{"PATCH", "/v1/thoughts/" + id, `{"source":"other"}`, 422, -1},
				{"DELETE", "/v1/thoughts?source=mine", "", 422, -1},
				{"DELETE", "/v1/thoughts?metadata_id=0", "", 422, -1},
				{"DELETE", "/v1/thoughts?source=mine&metadata_id=0&all=1", "", 422, -1},
				{"DELETE", "/v1/thoughts/" + id, "", 200, -1},
				{"DELETE", "/v1/thoughts?source=mine&metadata_id=0", "", 200, -1},
			} {
				status, body := ask(t, srv, call.method, call.path, call.body)
				if status != call.want {
					t.Errorf("%s %s %s = %d, want %d", call.method, call.path, call.body, status, call.want)
				}
				if n := strings.Count(body, `"content"`); status == 200 && call.found >= 0 && n != call.found {
					t.Errorf("%s %s %s: %d thoughts, want %d", call.method, call.path, call.body, n, call.found)
				}
			}
			if n := len(srv.Thoughts()); n != 131-13 { // one was inserted, 13 of mine had the id 0
				t.Errorf("%d thoughts left, want %d", n, 131-13)
			}
		})
	}
}

func ask(t *testing.T, srv *Server, method, path, body string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+srv.Key())
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// A server that was stopped refuses who calls, and listens at the same address when it starts again.
func TestStoppedKeepsItsAddress(t *testing.T) {
	t.Parallel()
	s := New(t)
	addr := strings.TrimPrefix(s.URL(), "http://")
	for range 3 {
		s.Stop()
		s.Stop()
		if conn, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
			if err == nil {
				_ = conn.Close()
			}
			t.Errorf("a call: error %v, want that it is refused", err)
		}
		s.Start()
		res, err := http.Get(s.URL() + "/health")
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
}
