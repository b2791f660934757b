package chain_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// marker names a message of the backlog in what a model is shown.
var marker = regexp.MustCompile(`\bmark-[0-9]{5}\b`)

// endpoint is a model behind HTTP. It keeps account of what it was asked while one child after the other uses it.
type endpoint struct {
	*httptest.Server
	mu sync.Mutex
	r  *rand.Rand
	account
	// open counts the calls that are neither answered nor given up.
	open int
	// shown counts for each marker the answered calls about raw messages that showed it.
	shown map[string]int
	// stop is closed when answered reaches at.
	stop chan struct{}
	at   int
}

// account counts calls: most is the largest number that were open at once, repaid those about a message that an earlier answer was about.
type account struct{ begun, answered, most, repaid int }

// reset begins a new account.
func (e *endpoint) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.account = account{}
	clear(e.shown)
}

// calls returns the account.
func (e *endpoint) calls() account {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.account
}

func serve(t *testing.T, seed int64) *endpoint {
	t.Helper()
	e := &endpoint{r: rand.New(rand.NewSource(seed)), shown: make(map[string]int)}
	e.Server = httptest.NewServer(http.HandlerFunc(e.answer))
	t.Cleanup(e.Close)
	return e
}

// after returns a channel that is closed when n more calls are answered.
func (e *endpoint) after(n int) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at, e.stop = e.answered+n, make(chan struct{})
	return e.stop
}

// idle waits until every call is answered or given up.
func (e *endpoint) idle(t *testing.T) {
	t.Helper()
	for range 6000 {
		e.mu.Lock()
		open := e.open
		e.mu.Unlock()
		if open == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("calls of a dead process stay open")
}

func (e *endpoint) answer(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Messages []struct{ Role, Content string }
	}
	data, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(data, &req) != nil || len(req.Messages) == 0 {
		http.Error(w, "what?", http.StatusBadRequest)
		return
	}
	prompt := req.Messages[len(req.Messages)-1].Content
	e.mu.Lock()
	e.begun++
	e.open++
	e.most = max(e.most, e.open)
	wait := time.Duration(e.r.Intn(8000)) * time.Microsecond
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.open--
	}()
	select {
	case <-time.After(wait):
	case <-r.Context().Done():
		return
	}
	marks := marker.FindAllString(prompt, -1)
	text := fmt.Sprintf("They went from %s to %s, step by step. ", marks[0], marks[len(marks)-1]) + strings.Repeat("Each step did what its report said it would. ", 8)
	out, err := json.Marshal(map[string]any{
		"model": "scripted", "choices": []any{map[string]any{"finish_reason": "stop", "message": map[string]string{"role": "assistant", "content": text}}},
		"usage": map[string]int{"prompt_tokens": quick(prompt), "completion_tokens": quick(text)},
	})
	if err != nil {
		http.Error(w, "oh", http.StatusInternalServerError)
		return
	}
	if _, err := w.Write(out); err != nil {
		return
	}
	e.note(prompt, marks)
}

// note counts an answered call.
func (e *endpoint) note(prompt string, marks []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answered++
	if !strings.Contains(prompt, "[text 1 of ") {
		again := false
		for _, m := range marks {
			e.shown[m]++
			again = again || e.shown[m] > 1
		}
		if again {
			e.repaid++
		}
	}
	if e.stop != nil && e.answered == e.at {
		close(e.stop)
	}
}
