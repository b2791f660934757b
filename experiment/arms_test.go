package experiment_test

import (
	"context"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/dataset"
	"github.com/contextengine/contextengine/models/tiktoken"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/delegate"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// counter returns the counter that prompts are recounted with.
func counter(t *testing.T) core.TokenCounter {
	t.Helper()
	c, err := tiktoken.New("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	return c.Count
}

// hybridArm is hybrid retrieval over a lexical index, archive compaction and a store in memory.
func hybridArm(count core.TokenCounter) experiment.Arm {
	return experiment.Arm{Name: "hybrid+archive", Open: func(ctx context.Context, host core.Host, id core.SessionID) (experiment.Subject, error) {
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
		}, engine.DefaultConfig(), engine.WithIDs(experiment.IDs(id)))
		return experiment.Subject{Engine: e, Store: store, Close: e.Dispose}, err
	}}
}

// delegateArm has no retriever and leaves compaction to the host.
func delegateArm(count core.TokenCounter) experiment.Arm {
	return experiment.Arm{Name: "delegate", Open: func(_ context.Context, host core.Host, _ core.SessionID) (experiment.Subject, error) {
		compactor, err := delegate.New(host)
		if err != nil {
			return experiment.Subject{}, err
		}
		store := memory.New()
		e, err := engine.New(engine.Parts{Store: store, Compactor: compactor, Counter: count, Host: host, OwnStore: true}, engine.DefaultConfig())
		return experiment.Subject{Engine: e, Store: store, Close: e.Dispose}, err
	}}
}

// legacyArm changes nothing.
func legacyArm() experiment.Arm {
	return experiment.Arm{Name: "legacy", Open: func(_ context.Context, host core.Host, _ core.SessionID) (experiment.Subject, error) {
		return experiment.Subject{Engine: engine.NewLegacy(host)}, nil
	}}
}

// TestRedactingArm: an engine that redacts is held to what its rules make of the messages.
func TestRedactingArm(t *testing.T) {
	count := counter(t)
	cfg := engine.DefaultConfig()
	cfg.Redact = []engine.RedactRule{{Name: "word", Pattern: `(?i)please`}}
	redact, err := cfg.Redactor()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"told": true, "not told": false} {
		arm := experiment.Arm{Name: name, Open: func(_ context.Context, host core.Host, _ core.SessionID) (experiment.Subject, error) {
			compactor, err := archive.New(archive.DefaultConfig())
			if err != nil {
				return experiment.Subject{}, err
			}
			store := memory.New()
			e, err := engine.New(engine.Parts{Store: store, Compactor: compactor, Counter: count, Host: host, OwnStore: true}, cfg)
			return experiment.Subject{Engine: e, Store: store}, err
		}}
		if want {
			arm.Redact = redact
		}
		sessions, err := dataset.Read(strings.NewReader(`{"role":"user","content":"Please look"}
{"role":"assistant","content":"I did, please wait"}
{"role":"user","content":"and now?"}
`), "polite", dataset.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rep, err := experiment.Replay(t.Context(), experiment.Spec{Session: sessions[0], Budget: 2000, Arm: arm, Counter: count})
		if err != nil {
			t.Fatal(err)
		}
		if clean := len(rep.Violations) == 0; clean != want {
			t.Errorf("%s: violations %v", name, rep.Violations)
		}
	}
}
