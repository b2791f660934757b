package engine_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestSummaryThatComesLate: a summary that was stored and not published, as its process ended in between, is taken up where it stands for what is there, and
// nowhere else, whatever others did to the session meanwhile.
func TestSummaryThatComesLate(t *testing.T) {
	const told = "in short: my code is " + secret
	long := strings.Repeat("word ", 30)
	host := []message.Message{user("my code is " + secret), assistant("two " + long), user("three " + long), assistant("four " + long), user("five"), assistant("six")}
	next := func(messages ...message.Message) func(f *fixture) {
		return func(f *fixture) { f.assemble(1000, transcript("next", messages...)) }
	}
	for name, c := range map[string]struct {
		meanwhile func(f *fixture)
		taken     bool
	}{
		"nothing happened": {func(*fixture) {}, true},
		"it went on":       {next(append(host[:6:6], user("seven"))...), true},
		"reset":            {next(user("anew"), assistant("yes"), user("so"), assistant("well"), user("and")), false},
		"rewound":          {next(host[0], user("other"), assistant("yes"), user("so"), assistant("well")), false},
		"cut short":        {next(host[:2]...), false},
		"another order":    {next(host[4], host[5], host[0], host[1], host[2], host[3]), false},
		"compacted":        {func(f *fixture) { f.compact(1000) }, false},
		"erased": {func(f *fixture) {
			f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("code is").ID}})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			text := told
			g := &greedy{propose: func(c core.Compaction) core.Patch {
				return core.Patch{Replace: []core.Replacement{{Kind: "summary", Text: text, Entries: entryIDs(c.Entries[:4])}}}
			}}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = g })
			f.assemble(1000, transcript("next", host...))
			before, err := f.store.LoadView(t.Context(), f.id)
			if err != nil {
				t.Fatal(err)
			}
			if res := f.compact(1000); !res.Compacted {
				t.Fatalf("Compact = %+v", res)
			}
			late := f.entry("in short")
			after, err := f.store.LoadView(t.Context(), f.id)
			if err != nil {
				t.Fatal(err)
			}
			// It is as if the compaction had not come that far.
			if _, err := f.store.Delete(t.Context(), f.id.Scope(), []string{late.ID}); err != nil {
				t.Fatal(err)
			}
			before.Version = after.Version + 1
			if err := f.store.SwapView(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			f.restart()
			text = "others say: nothing of it"
			c.meanwhile(f)
			want := shown(f.assemble(1000))
			now, err := f.store.LoadView(t.Context(), f.id)
			if err != nil {
				t.Fatal(err)
			}
			late.Seq = now.Next
			if _, err := f.store.Append(t.Context(), []core.Entry{late}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				f.restart()
				got := shown(f.assemble(1000))
				if taken := strings.HasPrefix(got, told); taken != c.taken || !taken && got != want {
					t.Errorf("shown: %q\nbefore it came: %q", got, want)
				}
			}
			if name == "erased" {
				if got := f.traces(); got != nil {
					t.Errorf("still there: %q", got)
				}
			}
		})
	}
}
