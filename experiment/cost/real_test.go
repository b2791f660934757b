package cost_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/cost"
	"github.com/contextengine/contextengine/experiment/dataset"
	"github.com/contextengine/contextengine/internal/datadir"
	"github.com/contextengine/contextengine/models/tiktoken"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// arm is hybrid recall over a lexical index, archive compaction and a store in memory, with the default configuration as change leaves it.
func arm(name string, count core.TokenCounter, change func(*engine.Config)) experiment.Arm {
	cfg := engine.DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	return experiment.Arm{Name: name, Window: cfg.Window, Open: func(_ context.Context, host core.Host, id core.SessionID) (experiment.Subject, error) {
		index, err := lexical.New(lexical.DefaultConfig())
		if err != nil {
			return experiment.Subject{}, err
		}
		retriever, err := hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"lexical": index})
		if err != nil {
			return experiment.Subject{}, err
		}
		compactor, err := archive.New(archive.DefaultConfig())
		if err != nil {
			return experiment.Subject{}, err
		}
		store := memory.New()
		e, err := engine.New(engine.Parts{
			Store: store, Retriever: retriever, Compactor: compactor, Counter: count, Host: host,
			Observers: []core.Observer{index}, OwnStore: true,
		}, cfg, engine.WithIDs(experiment.IDs(id)))
		return experiment.Subject{Engine: e, Store: store, Close: e.Dispose}, err
	}}
}

// sessions returns real conversations, which are no part of the repository.
func sessions(t *testing.T, name string, most int) []dataset.Session {
	t.Helper()
	if file := os.Getenv("COST_FILE"); file != "" {
		out, err := dataset.Open(file, dataset.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return out[:min(most, len(out))]
	}
	if testing.Short() {
		t.Skip("not run: -short")
	}
	out, err := dataset.Open(datadir.File(t, name), dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out[:min(most, len(out))]
}

func counter(t *testing.T) core.TokenCounter {
	t.Helper()
	c, err := tiktoken.New("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	return c.Count
}

// TestCodingSession: with the default configuration a window is full enough for work, and what it recalls does not cost much more than the compaction of a host, which recalls nothing.
func TestCodingSession(t *testing.T) {
	count := counter(t)
	row, err := cost.Measure(t.Context(), sessions(t, "pi/large-session.jsonl", 1), arm("default", count, nil), 32_000, count)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s\n%s", cost.Head, row)
	if row.FillMedian < 0.70 || row.FillP10 < 0.60 {
		t.Errorf("fill is %.2f, and %.2f in the tenth percentile, want 0.70 and 0.60", row.FillMedian, row.FillP10)
	}
	if row.CostHost > 1.35 {
		t.Errorf("it costs %.2f of what it costs with the compaction of a host, which recalls nothing", row.CostHost)
	}
	for _, v := range row.Violations {
		t.Error(v)
	}
}

// TestCurve prints what depths of a step cost, and what evidence they leave in the window: COST_CURVE=24000,40000 go test -run Curve -v. COST_LOW lists
// the shares that stay, "default" for the configuration that holds where nobody chose, "recall in every turn" and "no recall" for the same with that. COST_FILE
// replays another transcript.
func TestCurve(t *testing.T) {
	budgets := os.Getenv("COST_CURVE")
	if budgets == "" {
		t.Skip("not run: set COST_CURVE to budgets in tokens")
	}
	lows := os.Getenv("COST_LOW")
	if lows == "" {
		lows = "default,0.75,0.6,0.5,0.4,0.3,0.2"
	}
	count := counter(t)
	fmt.Println(cost.Head)
	for b := range strings.SplitSeq(budgets, ",") {
		budget, err := strconv.Atoi(b)
		if err != nil {
			t.Fatal(err)
		}
		for low := range strings.SplitSeq(lows, ",") {
			share, err := strconv.ParseFloat(low, 64)
			a := arm("low "+low, count, func(c *engine.Config) { c.Window.Low, c.Window.LowTokens, c.Window.CachePrice = share, budget, 0 })
			switch low {
			case "default":
				a = arm(low, count, nil)
			case "recall in every turn":
				a = arm(low, count, func(c *engine.Config) { c.Recall.Gate = false })
			case "no recall":
				a = arm(low, count, func(c *engine.Config) { c.Recall.Share = 0 })
			default:
				if err != nil {
					t.Fatal(err)
				}
			}
			row, err := cost.Measure(t.Context(), sessions(t, "pi/large-session.jsonl", 1), a, budget, count)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println(row)
		}
	}
}
