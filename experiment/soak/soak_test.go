package soak_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/soak"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// words counts words, and opens nothing that would stay.
func words(text string) int { return len(strings.Fields(text)) }

// sound opens an engine with hybrid retrieval over a store.
func sound(store core.Store) (*engine.Engine, func(context.Context) error, error) {
	index, err := lexical.New(lexical.DefaultConfig())
	if err != nil {
		return nil, nil, err
	}
	retriever, err := hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"lexical": index})
	if err != nil {
		return nil, nil, err
	}
	compactor, err := archive.New(archive.DefaultConfig())
	if err != nil {
		return nil, nil, err
	}
	e, err := engine.New(engine.Parts{
		Store: store, Retriever: retriever, Compactor: compactor, Counter: words, Observers: []core.Observer{index},
	}, engine.DefaultConfig())
	return e, func(ctx context.Context) error {
		return errors.Join(e.Dispose(ctx), index.Close(), store.Close())
	}, err
}

// open makes an engine in memory, changed by wrap.
func open(wrap func(*engine.Engine) core.ContextEngine) func(context.Context) (experiment.Subject, error) {
	return func(context.Context) (experiment.Subject, error) {
		e, closing, err := sound(memory.New())
		if err != nil {
			return experiment.Subject{}, err
		}
		return experiment.Subject{Engine: wrap(e), Close: closing}, nil
	}
}

// leaky loses something in every Assemble.
type leaky struct {
	*engine.Engine
	lose func(ctx context.Context)
}

func (l *leaky) Assemble(ctx context.Context, req core.AssembleRequest) (core.AssembleResult, error) {
	l.lose(ctx)
	return l.Engine.Assemble(ctx, req)
}

// found lists the findings, but for that about the resident set: when a machine takes memory back is not the engine's doing.
func found(rep soak.Report) []string {
	var out []string
	for _, f := range rep.Findings {
		if f.What != soak.FoundResident {
			out = append(out, f.What)
		}
	}
	slices.Sort(out)
	return out
}

// brief is a soak of an hour in a bubble in which time does not cost any: how fast this machine is has no part in it.
func brief(o soak.Options) soak.Options {
	o.Sessions, o.Agents, o.Turns = 40, 4, 6
	o.Time, o.Think, o.Every = time.Hour, 5*time.Minute, time.Minute
	return o
}

// TestVerdict lives sessions over an engine that is sound, and over such that each have one fault.
func TestVerdict(t *testing.T) {
	files := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(files, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var lost [][]byte
	var opened []*os.File
	slow := time.Duration(0)
	rows := []struct {
		name string
		want string
		lose func(stop <-chan struct{}) func(context.Context)
	}{
		{"sound", "", nil},
		{"memory", soak.FoundMemory, func(<-chan struct{}) func(context.Context) {
			return func(context.Context) {
				mu.Lock()
				defer mu.Unlock()
				lost = append(lost, make([]byte, 64<<10))
			}
		}},
		{"goroutines", soak.FoundGoroutines, func(stop <-chan struct{}) func(context.Context) {
			return func(context.Context) { go func() { <-stop }() }
		}},
		{"files", soak.FoundHandles, func(<-chan struct{}) func(context.Context) {
			return func(context.Context) {
				f, err := os.Open(files)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				opened = append(opened, f)
			}
		}},
		{"ever slower", soak.FoundLatency, func(<-chan struct{}) func(context.Context) {
			return func(context.Context) {
				mu.Lock()
				slow += 200 * time.Microsecond
				d := slow
				mu.Unlock()
				time.Sleep(d)
			}
		}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stop := make(chan struct{})
				rep, err := soak.Run(t.Context(), brief(soak.Options{Open: open(func(e *engine.Engine) core.ContextEngine {
					if r.lose == nil {
						return e
					}
					return &leaky{e, r.lose(stop)}
				})}))
				close(stop)
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(found(rep), " "); got != r.want {
					t.Errorf("found %q, want %q: %v", got, r.want, rep.Findings)
				}
				turns, ended, restarts, compactions := int64(0), int64(0), int64(0), int64(0)
				for _, s := range rep.Samples {
					turns, ended, restarts, compactions = turns+s.Turns, ended+s.Left, restarts+s.Restarts, compactions+s.Compactions
				}
				if len(rep.Samples) != 60 || turns < 400 || ended < 40 || restarts == 0 || rep.Past == 0 {
					t.Errorf("%d samples, %d turns, %d sessions left, %d restarts, a past of %d messages: there was no churn",
						len(rep.Samples), turns, ended, restarts, rep.Past)
				}
				if r.lose == nil && compactions == 0 {
					t.Log("no compaction was due")
				}
			})
		})
	}
	for _, f := range opened {
		_ = f.Close()
	}
	if len(lost) == 0 || len(opened) == 0 {
		t.Error("the faults were not there")
	}
}

// TestLeftBehind: what an engine still holds when it is closed is found, however little it is.
func TestLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		rep, err := soak.Run(t.Context(), brief(soak.Options{Open: open(func(e *engine.Engine) core.ContextEngine {
			for range 10 {
				go func() { <-stop }()
			}
			return e
		})}))
		close(stop)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(found(rep), " "); got != soak.FoundGoroutines {
			t.Errorf("found %q, want %q: %v", got, soak.FoundGoroutines, rep.Findings)
		}
	})
}

// TestFailingEngine: errors are findings, and quoted.
func TestFailingEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rep, err := soak.Run(t.Context(), brief(soak.Options{Open: open(func(e *engine.Engine) core.ContextEngine { return &failing{e} })}))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(found(rep), soak.FoundErrors) || len(rep.Errors) == 0 || !strings.Contains(rep.Errors[0], "out of paper") {
			t.Errorf("found %v, errors %q", rep.Findings, rep.Errors)
		}
	})
}

type failing struct{ *engine.Engine }

func (*failing) Assemble(context.Context, core.AssembleRequest) (core.AssembleResult, error) {
	return core.AssembleResult{}, errors.New("out of paper")
}

// TestSQLite soaks for two seconds over a file, in real time. How long calls take there is not judged.
func TestSQLite(t *testing.T) {
	cfg := sqlite.DefaultConfig()
	cfg.Path = filepath.Join(t.TempDir(), "store.db")
	var samples int
	rep, err := soak.Run(t.Context(), soak.Options{
		Sessions: 30, Time: 2 * time.Second, Think: 200 * time.Millisecond, Turns: 5,
		Progress: func(soak.Sample) { samples++ },
		Open: func(ctx context.Context) (experiment.Subject, error) {
			store, err := sqlite.Open(ctx, cfg)
			if err != nil {
				return experiment.Subject{}, err
			}
			e, closing, err := sound(store)
			return experiment.Subject{Engine: e, Close: closing}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range rep.Findings {
		if f.What == soak.FoundErrors || f.What == soak.FoundHandles {
			t.Errorf("found %s: %s %q", f.What, f.Text, rep.Errors)
		}
	}
	// On a busy machine calls pile up, each with a goroutine of the database's; but when all is closed none is left.
	if got, want := rep.After.Goroutines, rep.Before.Goroutines+4; got > want {
		t.Errorf("%d goroutines after the engine was closed, want at most %d", got, want)
	}
	if samples != len(rep.Samples) || samples == 0 {
		t.Errorf("told of %d samples, reported %d", samples, len(rep.Samples))
	}
	store, err := sqlite.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	stats, err := store.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if stats.RawBytes > 0 {
		t.Errorf("%d bytes of messages are left in the store", stats.RawBytes)
	}
	var table, lines bytes.Buffer
	if err := rep.WriteTable(&table, true); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(table.String(), "\n"); got < samples+4 {
		t.Errorf("the table has %d lines for %d samples:\n%s", got, samples, table.String())
	}
	if err := rep.WriteJSON(&lines); err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(&lines)
	n := 0
	for ; ; n++ {
		var v map[string]any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if _, ok := v["findings"]; ok != (n == samples) {
			t.Errorf("line %d has findings: %v", n, ok)
		}
	}
	if n != samples+1 {
		t.Errorf("%d lines of JSON for %d samples", n, samples)
	}
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		rep, err := soak.Run(ctx, brief(soak.Options{Open: open(func(e *engine.Engine) core.ContextEngine { return e })}))
		if !errors.Is(err, context.DeadlineExceeded) || len(rep.Samples) == 0 {
			t.Errorf("Run() = %d samples, %v, want those until it was interrupted", len(rep.Samples), err)
		}
	})
}

func TestInvalidOptions(t *testing.T) {
	for _, o := range []soak.Options{{}, {Open: open(nil), Sessions: -1}, {Open: open(nil), Think: -1}, {Open: open(nil), Time: time.Second, Every: time.Minute}} {
		if _, err := soak.Run(t.Context(), o); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("Run(%+v) error = %v, want core.ErrInvalid", o, err)
		}
	}
}
