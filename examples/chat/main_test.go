package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// The model gets the talk so far, within the budget, and its answer is streamed and remembered.
func TestChat(t *testing.T) {
	var asked [][]string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Model    string
			Stream   bool
			Messages []struct{ Role, Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || !request.Stream || request.Model != "m" || r.URL.Path != "/v1/chat/completions" {
			t.Errorf("%s %+v, %v", r.URL.Path, request, err)
		}
		var said []string
		for _, m := range request.Messages {
			said = append(said, m.Role+": "+m.Content)
		}
		asked = append(asked, said)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, piece := range []string{"Hel", "lo ", fmt.Sprint(len(asked))} {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", piece)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	defer server.Close()
	var out strings.Builder
	env := map[string]string{"OPENAI_BASE_URL": server.URL + "/v1", "OPENAI_MODEL": "m"}
	if err := run(t.Context(), strings.NewReader("Hi there\nAgain\n"), &out, func(name string) string { return env[name] }); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "Hello 1\nHello 2\n" {
		t.Errorf("printed %q", got)
	}
	if len(asked) != 2 || !slices.Equal(asked[1], []string{"user: Hi there", "assistant: Hello 1", "user: Again"}) {
		t.Errorf("asked %q", asked)
	}
	if err := run(t.Context(), strings.NewReader(""), &out, func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "OPENAI_BASE_URL") {
		t.Errorf("without an endpoint: %v", err)
	}
}
