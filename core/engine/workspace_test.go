package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// TestResultsOutliveTheCall: sessions of several sizes at once, and nothing of what one call returned is changed by another.
func TestResultsOutliveTheCall(t *testing.T) {
	store := memory.New()
	e, err := engine.New(engine.Parts{Store: store, Compactor: &halver{}, Counter: wordCounter, Retriever: &oldest{store: store}}, engine.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			id := core.SessionID{Agent: "ada", Session: fmt.Sprint(i)}
			type returned struct {
				res  core.AssembleResult
				text string
			}
			var all []returned
			for turn := range 30 {
				role := message.User
				if turn%2 == 1 {
					role = message.Assistant
				}
				m := message.New(role, fmt.Sprintf("turn %d of %d %s", turn, i, strings.Repeat("word ", 10+20*i)))
				if _, err := e.Ingest(t.Context(), core.IngestRequest{Session: id, Message: m}); err != nil {
					t.Error(err)
				}
				req := core.AssembleRequest{Session: id, Budget: 1000, Settings: core.RuntimeSettings{Provider: []string{"", "anthropic"}[turn%2]}}
				res, err := e.Assemble(t.Context(), req)
				if err != nil {
					t.Error(err)
				}
				for _, m := range res.Messages {
					if other := m.Text(); strings.HasPrefix(other, "turn ") && !strings.Contains(other, fmt.Sprintf(" of %d ", i)) {
						t.Errorf("session %d shows %q", i, other)
					}
				}
				all = append(all, returned{res, asText(t, res)})
			}
			for turn, r := range all {
				if got := asText(t, r.res); got != r.text {
					t.Errorf("session %d: the result of turn %d was changed afterwards\nwas %s\nis  %s", i, turn, r.text, got)
				}
			}
		})
	}
	wg.Wait()
}

// asText is all that a result says, the entries of its messages included.
func asText(t *testing.T, res core.AssembleResult) string {
	t.Helper()
	b, err := json.Marshal(res)
	if err != nil {
		t.Error(err)
	}
	for _, m := range res.Messages {
		b = append(b, " "+m.Entry...)
	}
	return string(b)
}

// oldest proposes the oldest entries of a scope.
type oldest struct{ store core.Store }

func (o *oldest) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	page, err := o.store.Scan(ctx, core.ScanQuery{Scope: q.Scope, Limit: 5})
	if err != nil {
		return nil, err
	}
	var out []core.Candidate
	for _, entry := range page.Entries {
		if !q.InWindow(entry.ID) {
			out = append(out, core.Candidate{Entry: entry, Score: 1, Source: "oldest"})
		}
	}
	return out, nil
}

// TestRetrieverLeftBehind: one that goes on after its deadline asks what the window showed when it was called, while the session moves on. The race
// detector sees to the rest.
func TestRetrieverLeftBehind(t *testing.T) {
	late := &late{stop: make(chan struct{}), wrong: make(chan string, 1)}
	cfg := engine.DefaultConfig()
	cfg.Recall.Deadline = time.Millisecond
	e, err := engine.New(engine.Parts{Store: memory.New(), Compactor: &halver{}, Counter: wordCounter, Retriever: late}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	id := core.SessionID{Agent: "ada", Session: "one"}
	for turn := range 200 {
		m := message.New(message.User, fmt.Sprintf("turn %d %s", turn, strings.Repeat("word ", 20)))
		if _, err := e.Ingest(t.Context(), core.IngestRequest{Session: id, Message: m}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Assemble(t.Context(), core.AssembleRequest{Session: id, Budget: 1000}); err != nil {
			t.Fatal(err)
		}
	}
	close(late.stop)
	if err := e.Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case id := <-late.wrong:
		t.Errorf("the entry %s was in the window when the retriever was called, and is not any more", id)
	default:
	}
}

// late asks until it is stopped. Of its calls only a few go on, so that the others have time.
type late struct {
	mu    sync.Mutex
	calls int
	stop  chan struct{}
	wrong chan string
}

func (l *late) Retrieve(_ context.Context, q core.Query) ([]core.Candidate, error) {
	l.mu.Lock()
	l.calls++
	leave := l.calls%40 != 1
	l.mu.Unlock()
	if leave {
		return nil, nil
	}
	shown := q.Recent[len(q.Recent)-1].ID
	for {
		select {
		case <-l.stop:
			return nil, nil
		case <-time.After(100 * time.Microsecond):
		}
		if !q.InWindow(shown) || q.InWindow("nobody") {
			select {
			case l.wrong <- shown:
			default:
			}
		}
	}
}

// TestManyMergedTextsLeave: of texts that a rule merged into one message one leaves with each step, and there is an end to the steps of a call. What is shown
// is explained by the entries it shows all the same.
func TestManyMergedTextsLeave(t *testing.T) {
	for budget := 950; budget < 1000; budget += 2 {
		f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.History.Provider = "anthropic" })
		for i := range 200 {
			f.ingest(user(fmt.Sprintf("text %d and some more words", i)))
		}
		for _, b := range []int{4000, budget, budget} {
			res := f.assemble(b)
			if res.EstimatedTokens > b {
				t.Errorf("budget %d: %d tokens", b, res.EstimatedTokens)
			}
			for _, c := range res.Choices {
				if c.Reason != window.ReasonTail || c.Stub != "" {
					continue
				}
				got, err := f.store.Get(t.Context(), f.id.Scope(), []string{c.Entry})
				if err != nil {
					t.Fatal(err)
				}
				if said := got[0].Text(); !strings.Contains(res.Messages[c.Message].Text(), said) {
					t.Errorf("budget %d: message %d is said to show %q", b, c.Message, said)
				}
			}
		}
	}
}
