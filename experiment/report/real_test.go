package report_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/dataset"
	"github.com/contextengine/contextengine/experiment/report"
	"github.com/contextengine/contextengine/internal/datadir"
	"github.com/contextengine/contextengine/models/tiktoken"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// arm is an engine with a store in memory, with hybrid retrieval or with none.
func arm(name string, count core.TokenCounter, recalls bool) experiment.Arm {
	return experiment.Arm{Name: name, Open: func(_ context.Context, host core.Host, _ core.SessionID) (experiment.Subject, error) {
		compactor, err := archive.New(archive.DefaultConfig())
		if err != nil {
			return experiment.Subject{}, err
		}
		store := memory.New()
		parts := engine.Parts{Store: store, Compactor: compactor, Counter: count, Host: host, OwnStore: true}
		if recalls {
			index, err := lexical.New(lexical.DefaultConfig())
			if err != nil {
				return experiment.Subject{}, err
			}
			parts.Observers = []core.Observer{index}
			if parts.Retriever, err = hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"lexical": index}); err != nil {
				return experiment.Subject{}, err
			}
		}
		e, err := engine.New(parts, engine.DefaultConfig())
		return experiment.Subject{Engine: e, Store: store, Close: e.Dispose}, err
	}}
}

// TestRealSession shows a real conversation under two real engines, as whoever fills a report does.
func TestRealSession(t *testing.T) {
	if testing.Short() {
		t.Skip("not run: -short")
	}
	sessions, err := dataset.Open(datadir.File(t, "pi/large-session.jsonl"), dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	counter, err := tiktoken.New("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	r := report.Report{Title: "A real session"}
	var turns []report.Turn
	for _, a := range []experiment.Arm{arm("recent", counter.Count, false), arm("hybrid", counter.Count, true)} {
		w := report.WindowComposition{Title: "Window: " + a.Name}
		last := report.Turn{Arm: a.Name}
		_, err := experiment.Replay(t.Context(), experiment.Spec{
			Session: sessions[0], Arm: a, Budget: 16000, Counter: counter.Count,
			Options: experiment.Options{Sample: -1, Watch: func(c experiment.Call) bool {
				if c.Err != nil {
					t.Errorf("call %d: %v", c.Number, c.Err)
					return false
				}
				lookup := func(id string) (message.Message, bool) {
					for i, known := range c.IDs {
						if known == id {
							return sessions[0].Messages[i], true
						}
					}
					return message.Message{}, false
				}
				call := report.WindowFrom(c.Number, c.Turn, c.Budget, c.Result, lookup)
				explained(t, call, c.Result)
				w.Calls = append(w.Calls, call)
				last.Budget, last.Result, last.IDs, last.Lookup = c.Budget, c.Result, c.IDs, lookup
				return c.Number < 150
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		turns = append(turns, last)
		r.Sections = append(r.Sections, w)
	}
	same := report.CompareTurns("The last turn", turns[0], turns[1])
	kinds := map[report.Difference]int{}
	for _, row := range same.Rows {
		kinds[row.Difference]++
	}
	if kinds[report.Same] == 0 || len(kinds) < 2 {
		t.Errorf("the turn's pieces by difference: %v", kinds)
	}
	r.Sections = append(r.Sections, same)
	page := write(t, r)
	t.Logf("%d bytes, differences %v", len(page), kinds)
	if dir := os.Getenv("CONTEXTENGINE_SHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "real.html"), []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// explained checks that pieces account for the tokens and for each message of a prompt.
func explained(t *testing.T, c report.WindowCall, res core.AssembleResult) {
	t.Helper()
	sum, texts := 0, 0
	for _, p := range c.In {
		sum += p.Tokens
		if p.Text != "" {
			texts++
		}
	}
	if sum != res.EstimatedTokens || texts < len(res.Messages)/2 {
		t.Errorf("call %d: %s", c.Number, fmt.Sprintf("pieces cost %d of %d tokens, %d of %d messages have a text", sum, res.EstimatedTokens, texts, len(res.Messages)))
	}
}
