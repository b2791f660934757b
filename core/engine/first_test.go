package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// aiming notes what compactions are to aim at.
type aiming struct {
	halver
	targets []int
}

func (c *aiming) Compact(ctx context.Context, task core.Compaction) (core.Patch, error) {
	c.targets = append(c.targets, task.Target)
	return c.halver.Compact(ctx, task)
}

// TestForcedBeforeAnyBudget: a compaction that is forced where no budget is known yet aims at a share of what there is, as it does at a share of a budget.
func TestForcedBeforeAnyBudget(t *testing.T) {
	c := &aiming{}
	f := newFixture(t, func(_ *engine.Config, parts *engine.Parts) { parts.Compactor = c })
	f.ingest(turns(30)...)
	res := f.compact(0)
	if want := []int{int(f.cfg.Compaction.Target * float64(res.TokensBefore))}; !res.Compacted || !slices.Equal(c.targets, want) || want[0] == 0 {
		t.Errorf("aimed at %v of %d tokens, want %v; Compact = %+v", c.targets, res.TokensBefore, want, res)
	}
}

// TestSummaryThatDoesNotSayOfWhat: a summary of which the store does not say any more what it stands for is found in its own session as long as it stands there.
func TestSummaryThatDoesNotSayOfWhat(t *testing.T) {
	f := newFixture(t, func(_ *engine.Config, parts *engine.Parts) { parts.Compactor = teller{} })
	f.assemble(4000, full, transcript("now", append([]message.Message{user("my code is " + secret), assistant("noted")}, chatter(0, 4)...)...))
	f.compact(100)
	for entry, err := range core.AllOf(t.Context(), f.store, f.id.Scope(), core.TypeSummary) {
		if err != nil {
			t.Fatal(err)
		}
		delete(entry.Meta, "of")
		if err := f.store.Update(t.Context(), f.id.Scope(), entry.ID, core.Change{Meta: entry.Meta}); err != nil {
			t.Fatal(err)
		}
	}
	finds := func() bool {
		return slices.ContainsFunc(f.search(engine.SearchRequest{Query: secret, Limit: 50}), func(line string) bool { return strings.Contains(line, "list down") })
	}
	if !finds() {
		t.Error("not found where it stands")
	}
	f.assemble(4000, full, transcript("We go on."))
	if finds() {
		t.Error("found after a reset")
	}
}

// TestTaskOfASubagentIsRecalledFor: a subagent that begins with nothing is given what its parent said that has to do with its task, although the task asks nothing; one that
// sees what its parent said is not.
func TestTaskOfASubagentIsRecalledFor(t *testing.T) {
	for _, mode := range []core.SpawnMode{core.SpawnIsolated, core.SpawnFork} {
		p := &proposer{}
		f := newFixture(t, func(_ *engine.Config, parts *engine.Parts) { parts.Retriever = p })
		for i := range 40 {
			f.ingest(user(fmt.Sprintf("chapter %d of the diary please %s", i, strings.Repeat("harbour ", 20))), assistant("noted, harbour"))
		}
		f.assemble(1000, full)
		child := core.SessionID{Agent: f.id.Agent, Session: "child"}
		if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: mode}); err != nil {
			t.Fatal(err)
		}
		f.everything(p, f.id.Agent)
		f.say(child, false, user("Begin with it"))
		res := f.assemble(1000, func(r *core.AssembleRequest) { r.Session, r.PromptMode = child, core.PromptFull })
		if got, want := res.RecallLen > 0, mode == core.SpawnIsolated; got != want {
			t.Errorf("%s: recalls: %t, want %t", mode, got, want)
		}
	}
}
