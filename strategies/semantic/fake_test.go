package semantic_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// listStore is a store that keeps entries in a list.
type listStore struct {
	core.Store // what the tests do not use
	mu         sync.Mutex
	entries    []core.Entry
	onScan     func()
}

func (s *listStore) add(e core.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, e)
}

func (s *listStore) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = slices.DeleteFunc(s.entries, func(e core.Entry) bool { return e.ID == id })
}

func (s *listStore) Get(_ context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []core.Entry
	for _, id := range ids {
		i := slices.IndexFunc(s.entries, func(e core.Entry) bool { return e.ID == id && scope.Contains(e.SessionID()) })
		if i < 0 {
			return nil, fmt.Errorf("list: get %q: %w", id, core.ErrNotFound)
		}
		out = append(out, s.entries[i])
	}
	return out, nil
}

func (s *listStore) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	s.mu.Lock()
	from, _ := strconv.Atoi(string(q.Cursor))
	end := min(from+min(q.Limit, 5), len(s.entries))
	var page core.Page
	for _, e := range s.entries[from:end] {
		if q.Scope.Contains(e.SessionID()) {
			page.Entries = append(page.Entries, e)
		}
	}
	if end < len(s.entries) {
		page.Next = core.Cursor(strconv.Itoa(end))
	}
	hook := s.onScan
	s.mu.Unlock()
	if hook != nil {
		hook()
	}
	return page, ctx.Err()
}

// wordEmbedder gives texts with the same words near vectors.
type wordEmbedder struct {
	mu      sync.Mutex
	err     error
	poison  string // a text with it is invalid
	calls   int
	largest int
	during  func() // called before an answer, without the lock
}

func (w *wordEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	w.mu.Lock()
	w.calls++
	w.largest = max(w.largest, len(texts))
	err, during := w.err, w.during
	w.mu.Unlock()
	if during != nil {
		during()
	}
	if err != nil {
		return nil, err
	}
	out := make([][]float32, len(texts))
	for i, t := range texts {
		if w.poison != "" && strings.Contains(t, w.poison) {
			return nil, fmt.Errorf("fake: text %d: %w", i, core.ErrInvalid)
		}
		out[i] = make([]float32, w.Dimensions())
		for word := range strings.FieldsSeq(t) {
			h := fnv.New32a()
			h.Write([]byte(word))
			out[i][h.Sum32()%uint32(w.Dimensions())]++
		}
	}
	return out, ctx.Err()
}

func (w *wordEmbedder) Dimensions() int { return 256 }
func (w *wordEmbedder) Model() string   { return "words" }

func (w *wordEmbedder) set(change func(*wordEmbedder)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

var noon = time.Date(2024, time.March, 4, 12, 0, 0, 0, time.UTC)

func entry(id, session string, seq int64, text string) core.Entry {
	return core.Entry{
		ID: id, Agent: "ada", Session: session, Seq: seq, Role: message.User, Type: core.TypeMessage,
		Time: noon.Add(time.Duration(seq) * time.Minute), Key: id, Message: message.New(message.User, text),
	}
}
