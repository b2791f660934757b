package engine_test

import (
	"context"
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

// TestErasedWhileAnotherCompacts: in a store that keeps no views, a summary that another process stored of what was erased meanwhile is emptied by whoever reads it next, also when
// the process that stored it is gone. One that nothing was erased from stays.
func TestErasedWhileAnotherCompacts(t *testing.T) {
	talk := func(more string) []message.Message {
		return []message.Message{user("so it is with " + more), assistant("and we noted"), user("then came the apple"), assistant("then came the pear"), user("then came the plum"), assistant("then came the fig")}
	}
	for name, c := range map[string]struct {
		before, gone bool
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
		"another one erased, later summary": {erased: "for the end", stays: secret, then: func(_, other *fixture) { other.ingest(talk("more")...); other.compact(30) }},
	} {
		for _, moment := range []string{"made", "stored"} {
			t.Run(name+", while it is "+moment, func(t *testing.T) {
				making := func() {}
				index := &told{there: map[string]string{}}
				f, other, store := remoteFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor, p.Observers = keeper{&making}, []core.Observer{index} })
				f.ingest(talk(secret)...)
				if c.before {
					f.compact(30)
					f.ingest(talk("others")...)
				}
				f.ingest(user("one for the end"))
				erase := f.entry(c.erased)
				other.assemble(1000)
				erased := false
				meanwhile := func() {
					if !erased {
						erased = true
						other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{erase.ID}})
					}
				}
				if moment == "made" {
					making = meanwhile
				} else {
					store.storing = meanwhile
				}
				f.compact(30)
				if !erased {
					t.Fatal("nothing was compacted: nothing is tested")
				}
				if c.then != nil {
					c.then(f, other)
				}
				if c.gone {
					f.restart()
				}
				for range 2 {
					for _, g := range []*fixture{other, f} {
						got := shown(g.assemble(1000))
						if strings.Contains(got, c.erased) {
							t.Errorf("shown: %q", got)
						}
						if c.stays != "" && !strings.Contains(got, c.stays) {
							t.Errorf("shown: %q, want %q in it", got, c.stays)
						}
						if moment == "made" && strings.Contains(got, "was erased") && !c.before {
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
