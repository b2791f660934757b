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

// keeper says in one summary all that was said, and what earlier summaries say. While it does so, others are at work.
type keeper struct{ making *func() }

func (keeper) OwnsCompaction() bool { return true }

func (k keeper) Compact(_ context.Context, c core.Compaction) (core.Patch, error) {
	r := core.Replacement{Kind: "summary"}
	for _, sum := range c.Summaries {
		r.Summaries = append(r.Summaries, sum.ID)
		r.Text += sum.Text + " "
	}
	for _, e := range c.Entries[:len(c.Entries)-c.Protected] {
		r.Entries = append(r.Entries, e.ID)
		words := strings.Fields(e.Text())
		r.Text += strings.Join(words[max(len(words)-1, 0):], " ") + " "
	}
	(*k.making)()
	return core.Patch{Replace: []core.Replacement{r}}, nil
}

// duringCompaction has something happen once, while the next summary is made or while it is stored. It returns whether it has happened.
func duringCompaction(moment string, making *func(), store *remote, do func()) *bool {
	done := false
	once := func() {
		if !done {
			done = true
			do()
		}
	}
	if moment == "made" {
		*making = once
	} else {
		store.storing = once
	}
	return &done
}

// TestErasedWhileAnotherCompacts: in a store that keeps no views, a summary that another process stored of what was erased meanwhile is emptied by whoever reads it next, also when
// the process that stored it is gone. One that nothing was erased from stays.
func TestErasedWhileAnotherCompacts(t *testing.T) {
	talk := func(more string) []message.Message {
		return []message.Message{user("so it is with " + more), assistant("and we noted"), user("then came the apple"), assistant("then came the pear"), user("then came the plum"), assistant("then came the fig")}
	}
	for name, c := range map[string]struct {
		before, gone bool
		// earlier says that this process erased a message before.
		earlier bool
		// erased is a word of what is erased, stays one of what a summary says afterwards.
		erased, stays string
		then          func(f, other *fixture)
	}{
		"first summary":                     {erased: secret},
		"first summary, process gone":       {erased: secret, gone: true},
		"summary of a summary":              {erased: secret, before: true},
		"summary of a summary, gone":        {erased: secret, before: true, gone: true},
		"summary made of it":                {erased: secret, then: func(_, other *fixture) { other.ingest(talk("more")...); other.compact(30) }},
		"summary made of it, gone":          {erased: secret, gone: true, then: func(_, other *fixture) { other.ingest(talk("more")...); other.compact(30) }},
		"another one erased":                {erased: "for the end", stays: secret},
		"another one erased, gone":          {erased: "for the end", stays: secret, gone: true},
		"another one erased, of a summary":  {erased: "for the end", stays: secret, before: true},
		"after another erasure":             {erased: secret, earlier: true},
		"after another erasure, gone":       {erased: secret, earlier: true, gone: true},
		"after another, of a summary":       {erased: secret, earlier: true, before: true},
		"another one erased, after another": {erased: "for the end", stays: secret, earlier: true},
		"another one erased, later summary": {erased: "for the end", stays: secret, then: func(_, other *fixture) { other.ingest(talk("more")...); other.compact(30) }},
	} {
		for i := range 4 { // whoever looks first may mend it for the other one
			moment, own := []string{"made", "stored"}[i/2], i%2 == 0
			t.Run(fmt.Sprintf("%s, while it is %s, looks first %t", name, moment, own), func(t *testing.T) {
				making := func() {}
				index := &told{there: map[string]string{}}
				f, other, store := remoteFixture(t, func(_ *engine.Config, p *engine.Parts) {
					p.Compactor, p.Observers = keeper{&making}, []core.Observer{index}
				})
				f.ingest(talk(secret)...)
				if c.before {
					f.compact(30)
					f.ingest(talk("others")...)
				}
				f.ingest(user("one for the end"))
				erase := f.entry(c.erased)
				if c.earlier {
					f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("and we noted").ID}})
				}
				other.assemble(1000)
				erased := duringCompaction(moment, &making, store, func() { other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{erase.ID}}) })
				f.compact(30)
				if !*erased {
					t.Fatal("nothing was compacted: nothing is tested")
				}
				if c.then != nil {
					c.then(f, other)
				}
				if c.gone {
					f.restart()
				}
				looking := []*fixture{other, f}
				if own {
					slices.Reverse(looking)
				}
				for range 2 {
					for _, g := range looking {
						got := shown(g.assemble(1000))
						if strings.Contains(got, c.erased) {
							t.Errorf("shown: %q", got)
						}
						if c.stays != "" && !strings.Contains(got, c.stays) {
							t.Errorf("shown: %q, want %q in it", got, c.stays)
						}
						if moment == "made" && strings.Contains(got, "was erased") && !c.before && !c.earlier {
							t.Errorf("shown: %q: it was not made again", got)
						}
					}
					f.ingest(user("further"))
				}
				if got := f.traces(); c.erased == secret && got != nil {
					t.Errorf("left: %q", got)
				}
				for id, text := range index.there {
					if strings.Contains(text, c.erased) {
						t.Errorf("an index was not told that %s is erased: %q", id, text)
					}
				}
			})
		}
	}
}

// TestSummaryOfAnOlderVersion: a summary that does not say how many of its messages were erased, and was made when some were, stays.
func TestSummaryOfAnOlderVersion(t *testing.T) {
	making := func() {}
	f, other, _ := remoteFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = keeper{&making} })
	f.ingest(user("so it is with "+secret), assistant("and we noted"), user("then came the apple"), assistant("then came the pear"), user("then came the plum"))
	other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
	f.compact(30)
	sum := f.entry("noted apple")
	if sum.Type != core.TypeSummary || sum.Meta["emptied"] != "1" {
		t.Fatalf("%+v: nothing is tested", sum.Meta)
	}
	delete(sum.Meta, "emptied")
	if err := f.parts.Store.Update(t.Context(), f.id.Scope(), sum.ID, core.Change{Meta: sum.Meta}); err != nil {
		t.Fatal(err)
	}
	f.restart()
	for _, g := range []*fixture{f, other} {
		if got := shown(g.assemble(1000)); !strings.Contains(got, "noted apple") {
			t.Errorf("shown: %q", got)
		}
	}
}

// spawn makes a fork of a session, which f then speaks of.
func (f *fixture) spawn(child core.SessionID) {
	f.t.Helper()
	if _, err := f.engine.PrepareSubagentSpawn(f.t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork}); err != nil {
		f.t.Fatal(err)
	}
	f.id = child
}

// left lists the summaries of all agents that say a word.
func (f *fixture) left(word string) (out []string) {
	f.t.Helper()
	for _, agent := range []string{"main", "other"} {
		for entry, err := range core.All(f.t.Context(), f.store, core.Scope{Agent: agent}, false) {
			if err != nil {
				f.t.Fatal(err)
			}
			if entry.Type == core.TypeSummary && strings.Contains(entry.Text(), word) {
				out = append(out, entry.Session+": "+entry.Text())
			}
		}
	}
	return out
}

// TestErasedWhileAForkCompacts: what another process erases of the parent while a fork's summary is under way is not shown by the fork, and not left in its session once that is
// opened.
func TestErasedWhileAForkCompacts(t *testing.T) {
	for _, agent := range []string{"main", "other"} {
		for _, moment := range []string{"made", "stored"} {
			for _, gone := range []bool{false, true} {
				t.Run(fmt.Sprintf("agent %s, while it is %s, gone %t", agent, moment, gone), func(t *testing.T) {
					making := func() {}
					f, other, store := remoteFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = keeper{&making} })
					f.ingest(user("so it is with "+secret), assistant("and we noted"), user("then came the apple"), assistant("then came the pear"))
					parent, erase := f.id, f.entry(secret).ID
					other.assemble(1000)
					f.spawn(core.SessionID{Agent: agent, Session: "child"})
					f.ingest(user("one for the end"), assistant("two for the end"), user("three for the end"))
					erased := duringCompaction(moment, &making, store, func() { other.forget(engine.ForgetRequest{Scope: parent.Scope(), Entries: []string{erase}}) })
					f.compact(30)
					if !*erased {
						t.Fatal("nothing was compacted: nothing is tested")
					}
					if gone {
						f.restart()
					}
					for range 2 {
						if got := shown(f.assemble(1000)); strings.Contains(got, secret) {
							t.Errorf("shown: %q", got)
						}
					}
					if got := f.left(secret); got != nil {
						t.Errorf("left: %q", got)
					}
				})
			}
		}
	}
}

// TestErasedBehindAnotherForksSummary: a fork of a fork shows a summary that stands in the session of the first one, and what it is of is erased.
func TestErasedBehindAnotherForksSummary(t *testing.T) {
	for _, agent := range []string{"main", "other"} {
		making := func() {}
		f, other, _ := remoteFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = keeper{&making} })
		f.ingest(user("so it is with "+secret), assistant("and we noted"), user("then came the apple"), assistant("then came the pear"))
		parent, erase := f.id, f.entry(secret).ID
		f.spawn(core.SessionID{Agent: agent, Session: "child"})
		f.ingest(user("one for the end"), assistant("two for the end"), user("three for the end"))
		f.compact(30)
		f.spawn(core.SessionID{Agent: agent, Session: "grandchild"})
		f.ingest(user("my own"))
		if got := shown(f.assemble(1000)); !strings.Contains(got, secret) {
			t.Fatalf("%s: shown: %q: nothing is tested", agent, got)
		}
		other.forget(engine.ForgetRequest{Scope: parent.Scope(), Entries: []string{erase}})
		if got := shown(f.assemble(1000)); strings.Contains(got, secret) {
			t.Errorf("%s: shown: %q", agent, got)
		}
		if got := f.left(secret); got != nil {
			t.Errorf("%s: left: %q", agent, got)
		}
	}
}

// TestErasedOfTwoSummariesOfTheSame: of two summaries of the same messages, one of which was emptied, a third one is made. What was erased of both counts once in it, so that one
// erasure more, which its process did not see, is noticed.
func TestErasedOfTwoSummariesOfTheSame(t *testing.T) {
	making := func() {}
	f, other, store := remoteFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = keeper{&making} })
	talk := func(words ...string) {
		for i, word := range words {
			f.ingest(message.New([]message.Role{message.User, message.Assistant}[i%2], "it is so and so that we say here "+word))
		}
	}
	talk("x0", "x1", "x2", "x3")
	f.compact(30)
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("here x0").ID}})
	talk("y0", secret, "y2", "y3")
	other.compact(30) // it does not know of the first summary
	f.assemble(1000)
	talk("z0", "z1")
	erase := f.entry("here " + secret).ID
	erased := duringCompaction("stored", &making, store, func() { other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{erase}}) })
	f.compact(30)
	if !*erased {
		t.Fatal("nothing was compacted: nothing is tested")
	}
	for range 2 {
		for _, g := range []*fixture{f, other} {
			if got := shown(g.assemble(1000)); strings.Contains(got, secret) {
				t.Errorf("shown: %q", got)
			}
		}
	}
	if got := f.left(secret); got != nil {
		t.Errorf("left: %q", got)
	}
}

// TestPurgedWhileAnotherCompacts: a session that another process purges while a summary of it is under way has nothing left of what was said, and the compaction is no failure.
func TestPurgedWhileAnotherCompacts(t *testing.T) {
	for _, moment := range []string{"made", "stored"} {
		for _, gone := range []bool{false, true} {
			for _, again := range []bool{false, true} {
				t.Run(fmt.Sprintf("while it is %s, gone %t, said again %t", moment, gone, again), func(t *testing.T) {
					making := func() {}
					f, other, store := remoteFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = keeper{&making} })
					f.ingest(user("so it is with "+secret), assistant("and we noted"), user("then came the apple"), assistant("then came the pear"), user("then came the plum"))
					other.assemble(1000)
					purged := duringCompaction(moment, &making, store, func() {
						other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Purge: true})
						if again {
							other.ingest(user("anew"), assistant("yes"))
						}
					})
					f.compact(30)
					if !*purged {
						t.Fatal("nothing was compacted: nothing is tested")
					}
					if gone {
						f.restart()
					}
					want := ""
					if again {
						want = "anew | yes"
					}
					for range 2 {
						for _, g := range []*fixture{f, other} {
							if got := shown(g.assemble(1000)); got != want {
								t.Errorf("shown: %q, want %q", got, want)
							}
						}
					}
					if got := f.left(""); got != nil {
						t.Errorf("left: %q", got)
					}
				})
			}
		}
	}
}

// TestSummaryOfOneThatIsNotShown: a stored summary that says it replaces another one is taken where that one stands alone: beside what it already tells, the same would be shown twice.
func TestSummaryOfOneThatIsNotShown(t *testing.T) {
	making := func() {}
	f, other, _ := remoteFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = keeper{&making} })
	f.ingest(user("so it is with apples"), assistant("and we noted"), user("then came the pear"), assistant("then came the plum"))
	f.compact(30)
	f.ingest(user("then came the fig"), assistant("then came the quince"), user("one for the end"))
	f.compact(30)
	sum := f.entry("fig quince")
	if sum.Type != core.TypeSummary || sum.Meta["supersedes"] == "" {
		t.Fatalf("%+v: nothing is tested", sum.Meta)
	}
	sum.Meta["supersedes"] = "another"
	if err := f.parts.Store.Update(t.Context(), f.id.Scope(), sum.ID, core.Change{Meta: sum.Meta}); err != nil {
		t.Fatal(err)
	}
	f.restart()
	for _, g := range []*fixture{f, other} {
		got := shown(g.assemble(1000))
		for _, word := range []string{"apples", "noted", "pear", "fig", "quince", "for the end"} {
			if n := strings.Count(got, word); n != 1 {
				t.Errorf("%q is shown %d times: %q", word, n, got)
			}
		}
	}
}
