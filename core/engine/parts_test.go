package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/engine"
)

// anyPart is a part of every kind. It notes when it is given its store, and what it hears of entries.
type anyPart struct {
	common
	halver
	err      error
	attached int
	heard    int
}

func (p *anyPart) Attach(core.Store) error                                      { p.attached++; return p.err }
func (p *anyPart) Search(context.Context, core.SearchQuery) ([]core.Hit, error) { return nil, nil }
func (p *anyPart) Appended(_ context.Context, entries []core.Entry) error {
	p.heard += len(entries)
	return nil
}
func (p *anyPart) Updated(context.Context, core.Entry) error           { return nil }
func (p *anyPart) Deleted(context.Context, core.Scope, []string) error { return nil }

// uncomparable is anyPart as a value that cannot be compared.
type uncomparable struct {
	*anyPart
	_ []string
}

// TestPartsAreAttachedOnce: every part is given the store once, and told of an entry once, in however many roles it is handed over, also where it cannot be compared
// with the others; a part that cannot use the store ends New.
func TestPartsAreAttachedOnce(t *testing.T) {
	roles := map[string]func(p *engine.Parts, part *anyPart){
		"observer":  func(p *engine.Parts, part *anyPart) { p.Observers = append(p.Observers, part) },
		"searcher":  func(p *engine.Parts, part *anyPart) { p.Searcher = part },
		"retriever": func(p *engine.Parts, part *anyPart) { p.Retriever = part },
		"compactor": func(p *engine.Parts, part *anyPart) { p.Compactor = part },
	}
	all := &anyPart{}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
		for _, role := range roles {
			role(p, all)
		}
		p.Observers = append(p.Observers, nil)
	})
	f.ingest(user("hello"))
	if all.attached != 1 || all.heard != 1 {
		t.Errorf("in all roles: attached %d times, told %d times, want once each", all.attached, all.heard)
	}
	for name, role := range roles {
		part := &anyPart{}
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { role(p, part) })
		f.ingest(user("hello"))
		if part.attached != 1 || part.heard != 1 {
			t.Errorf("%s: attached %d times, told %d times, want once each", name, part.attached, part.heard)
		}
		broken := &anyPart{err: errors.New("wrong store")}
		parts := f.parts
		parts.Observers = nil
		role(&parts, broken)
		if e, err := engine.New(parts, f.cfg); !errors.Is(err, broken.err) || e != nil || !strings.Contains(err.Error(), "*engine_test.anyPart") {
			t.Errorf("%s that cannot use the store: %v, want an error that names it", name, err)
		}
	}
	value := uncomparable{anyPart: &anyPart{}}
	f = newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Retriever = value })
	f.ingest(user("hello"))
	if value.attached != 1 || value.heard != 1 {
		t.Errorf("a value: attached %d times, told %d times, want once each", value.attached, value.heard)
	}
}

// TestNewNeedsItsParts: an engine is made of a store, a compactor and a counter, and of a configuration that is valid; what is missing is named.
func TestNewNeedsItsParts(t *testing.T) {
	for field, lose := range map[string]func(c *engine.Config, p *engine.Parts){
		"store":       func(_ *engine.Config, p *engine.Parts) { p.Store = nil },
		"compactor":   func(_ *engine.Config, p *engine.Parts) { p.Compactor = nil },
		"counter":     func(_ *engine.Config, p *engine.Parts) { p.Counter = nil },
		"window.high": func(c *engine.Config, _ *engine.Parts) { c.Window.High = 2 },
	} {
		part := &anyPart{}
		cfg, parts := engine.DefaultConfig(), engine.Parts{Store: memory.New(), Compactor: part, Counter: wordCounter}
		if field != "compactor" {
			parts.Retriever = part
		}
		lose(&cfg, &parts)
		if e, err := engine.New(parts, cfg); e != nil || !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), field+": ") {
			t.Errorf("without a right %s: %v", field, err)
		}
		if part.attached > 0 {
			t.Errorf("without a right %s a part was used", field)
		}
	}
}

// TestPartsCanBeAskedFor: whoever measures a part apart gets the one that was handed over, and Info says who the engine is.
func TestPartsCanBeAskedFor(t *testing.T) {
	part := &anyPart{}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Retriever, p.Compactor = part, part })
	if f.engine.Store() != core.Store(f.store) || f.engine.Retriever() != core.Retriever(part) || f.engine.Compactor() != core.Compactor(part) {
		t.Error("an engine returns other parts than it was made of")
	}
	if e := newFixture(t).engine; e.Retriever() != nil {
		t.Errorf("without a retriever there is %v", e.Retriever())
	}
	f.parts.Names = core.PartNames{Store: "shelf"}
	e, err := engine.New(f.parts, f.cfg, engine.WithInfo("mine", "My engine", "7"))
	if err != nil {
		t.Fatal(err)
	}
	info := e.Info()
	if info.ID != "mine" || info.Name != "My engine" || info.Version != "7" || info.Parts != f.parts.Names || !info.OwnsCompaction ||
		info.CurrentTurnFence != engine.CurrentTurnFence || info.TurnIdempotency != engine.TurnIdempotency || info.TurnMaintenance != "background" {
		t.Errorf("Info = %+v", info)
	}
}

// needing is a part of each kind that needs something of the host.
type needing struct {
	anyPart
	req capability.Requirements
}

func (p *needing) Requires() capability.Requirements { return p.req }

// needingStore is a store that does.
type needingStore struct {
	*memory.Store
	req capability.Requirements
}

func (s needingStore) Requires() capability.Requirements { return s.req }

// offering is a host with capabilities.
type offering struct {
	core.NoHost
	has []capability.Name
}

func (h offering) Capabilities() []capability.Name { return h.has }

// TestRequirementsOfAllParts: what the options, the configuration, the store, the retriever and the compactor need is needed together. An engine is not made where the
// host lacks any of it, and the error says what each wants done about it.
func TestRequirementsOfAllParts(t *testing.T) {
	all := capability.All()
	need := func(i int, text string) capability.Requirements {
		return capability.Requirements{"compact": {Capabilities: []capability.Name{all[i]}, Unsupported: text}}
	}
	retriever, compactor := &needing{req: need(3, "fourth")}, &needing{req: need(4, "fifth")}
	parts := engine.Parts{Store: needingStore{memory.New(), need(2, "third")}, Retriever: retriever, Compactor: compactor, Counter: wordCounter}
	cfg := engine.DefaultConfig()
	cfg.Requires = need(1, "")
	option := engine.WithRequirements(need(0, "first"))
	for i := range 5 {
		parts.Host = offering{has: slices.Delete(slices.Clone(all[:5]), i, i+1)}
		e, err := engine.New(parts, cfg, option)
		missing, ok := errors.AsType[*capability.RequirementError](err)
		if e != nil || !ok || !slices.Equal(missing.Missing, all[i:i+1]) || missing.Unsupported != "first third fourth fifth" || missing.Operation != "compact" {
			t.Errorf("without %q: error %+v", all[i], missing)
		}
	}
	if retriever.attached+compactor.attached > 0 {
		t.Error("a part was used")
	}
	parts.Host = offering{has: all[:5]}
	e, err := engine.New(parts, cfg, option)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Info().Requires["compact"]; !slices.Equal(got.Capabilities, all[:5]) {
		t.Errorf("Info names %v, want %v", got.Capabilities, all[:5])
	}
}
