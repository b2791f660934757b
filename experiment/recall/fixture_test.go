package recall_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/experiment/questions"
	"github.com/contextengine/contextengine/experiment/recall"
	"github.com/contextengine/contextengine/internal/datadir"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// words counts tokens well enough for engines that are never asked for a window.
func words(text string) int { return len(text)/4 + 1 }

// retriever makes the retriever of a test over a searcher of words.
type retriever func(words core.Searcher, log *slog.Logger) (core.Retriever, error)

// plain asks the searcher of words alone.
func plain(words core.Searcher, log *slog.Logger) (core.Retriever, error) {
	cfg := hybrid.DefaultConfig()
	cfg.Limit = 1000
	return hybrid.New(cfg, map[string]core.Searcher{"lexical": words}, hybrid.WithLogger(log))
}

func memoryStore(testing.TB) (core.Store, error) { return memory.New(), nil }

func sqliteStore(tb testing.TB) (core.Store, error) {
	tb.Helper()
	cfg := sqlite.DefaultConfig()
	cfg.Path = filepath.Join(tb.TempDir(), "store.db")
	return sqlite.Open(context.Background(), cfg)
}

// arm is an engine of real parts.
func arm(tb testing.TB, name string, store func(testing.TB) (core.Store, error), make retriever, change func(*recall.Subject)) recall.Arm {
	tb.Helper()
	return recall.Arm{Name: name, Digest: name, Open: func(context.Context) (recall.Subject, error) {
		sub := recall.Subject{Warnings: &recall.Warnings{}}
		s, err := store(tb)
		if err != nil {
			return sub, err
		}
		index, err := lexical.New(lexical.DefaultConfig())
		if err != nil {
			return sub, err
		}
		r, err := make(index, slog.New(sub.Warnings))
		if err != nil {
			return sub, err
		}
		a, err := archive.New(archive.DefaultConfig())
		if err != nil {
			return sub, err
		}
		var n atomic.Int64
		e, err := engine.New(engine.Parts{Store: s, Retriever: r, Compactor: a, Counter: words, OwnStore: true}, engine.DefaultConfig(),
			engine.WithIDs(func() string { return fmt.Sprintf("q%08d", n.Add(1)) }))
		if err != nil {
			return sub, err
		}
		sub.Engine, sub.Retriever, sub.Store = e, r, s
		sub.Close = func(ctx context.Context) error { return errors.Join(index.Close(), e.Dispose(ctx)) }
		if change != nil {
			change(&sub)
		}
		return sub, nil
	}}
}

func dataset(tb testing.TB, elem ...string) *questions.Dataset {
	tb.Helper()
	d, err := questions.Open(filepath.Join(append([]string{"..", "questions", "testdata"}, elem...)...))
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// realData opens a data set of the measurement data, or skips the test.
func realData(tb testing.TB, name string) *questions.Dataset {
	tb.Helper()
	d, err := questions.Open(datadir.File(tb, name))
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func measure(tb testing.TB, plan recall.Plan) *recall.Result {
	tb.Helper()
	res, err := recall.Run(tb.Context(), plan)
	if err != nil {
		tb.Fatal(err)
	}
	for _, a := range res.Arms {
		if a.Error != "" {
			tb.Fatalf("%s: %s", a.Name, a.Error)
		}
	}
	return res
}

// recallOf returns the recall of an arm in a group in percent.
func recallOf(tb testing.TB, a recall.ArmResult, group, measure string) float64 {
	tb.Helper()
	for _, g := range a.Groups {
		for _, m := range g.Measures {
			if g.Name == group && m.Name == measure {
				return 100 * m.Recall.Mean
			}
		}
	}
	tb.Fatalf("%s: no %s in %q", a.Name, measure, group)
	return 0
}
