package conformance

import (
	"cmp"
	"context"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/leanovate/gopter"

	"github.com/contextengine/contextengine/core"
)

// TestCounter holds a token counter to the contract of core.TokenCounter. open returns a counter; two of them count alike.
func TestCounter(t *testing.T, open func(tb testing.TB) core.TokenCounter, opts ...Option) {
	t.Helper()
	testModel(t, counterChecks(), counting(open), opts)
}

// TestEmbedder holds an embedder to the contract of core.Embedder. Models that answer a little differently each time pass where their vectors point the same way.
func TestEmbedder(t *testing.T, open func(tb testing.TB) core.Embedder, opts ...Option) {
	t.Helper()
	testModel(t, embedderChecks(), embedding(open), opts)
}

// TestCompleter holds a completer to the contract of core.Completer. What it answers is not judged.
func TestCompleter(t *testing.T, open func(tb testing.TB) core.Completer, opts ...Option) {
	t.Helper()
	testModel(t, completerChecks(), completing(open), opts)
}

// ExamineCounter is TestCounter for tools: it returns what it finds instead of failing a test.
func ExamineCounter(tb testing.TB, open func(tb testing.TB) core.TokenCounter, opts ...Option) []Finding {
	tb.Helper()
	return examineModels(tb, counterChecks(), counting(open), opts)
}

// ExamineEmbedder is TestEmbedder for tools: it returns what it finds instead of failing a test.
func ExamineEmbedder(tb testing.TB, open func(tb testing.TB) core.Embedder, opts ...Option) []Finding {
	tb.Helper()
	return examineModels(tb, embedderChecks(), embedding(open), opts)
}

// ExamineCompleter is TestCompleter for tools: it returns what it finds instead of failing a test.
func ExamineCompleter(tb testing.TB, open func(tb testing.TB) core.Completer, opts ...Option) []Finding {
	tb.Helper()
	return examineModels(tb, completerChecks(), completing(open), opts)
}

// modelRun is one case of one check: some texts, and one of the parts that take text.
type modelRun struct {
	tb        testing.TB
	watch     *watch
	texts     []string
	counter   core.TokenCounter
	embedder  core.Embedder
	completer core.Completer
	// open makes another part of the kind.
	open func(*modelRun)
}

func counting(open func(testing.TB) core.TokenCounter) func(*modelRun) {
	return func(r *modelRun) { r.counter = open(r.tb) }
}

func embedding(open func(testing.TB) core.Embedder) func(*modelRun) {
	return func(r *modelRun) { r.embedder = open(r.tb) }
}

func completing(open func(testing.TB) core.Completer) func(*modelRun) {
	return func(r *modelRun) { r.completer = open(r.tb) }
}

func (r *modelRun) ctx() context.Context { return r.watch.calling(r.tb.Context()) }

func (r *modelRun) count(text string) int {
	r.watch.beat()
	return r.counter(text)
}

func testModel(t *testing.T, checks []Check, open func(*modelRun), opts []Option) {
	t.Helper()
	o := resolve(t, fewer(25), opts)
	t.Logf("conformance seed %d", o.seed)
	defer func() { o.close(t, t.Failed()) }()
	for _, c := range checks {
		t.Run(c.ID, func(t *testing.T) {
			runCheck(t, c, nil, o, func() (Finding, bool) { return examineModel(t, c, open, o) })
		})
	}
}

func examineModels(tb testing.TB, checks []Check, open func(*modelRun), opts []Option) []Finding {
	tb.Helper()
	o := resolve(tb, fewer(25), opts)
	var out []Finding
	for _, c := range checks {
		if o.claims != nil && !matches(c, o.claims) {
			continue
		}
		if f, found := examineModel(tb, c, open, o); found {
			if out = append(out, f); o.first {
				break
			}
		}
	}
	return out
}

func examineModel(tb testing.TB, c Check, open func(*modelRun), o options) (Finding, bool) {
	tb.Helper()
	defer o.watch.tally.during(c, o.watch)()
	w := watched{watch: o.watch}
	cases := o.cases
	if c.once {
		cases = 1
	}
	text, texts, found := forAll(seedFor(o.seed, c.ID), cases, o.shrink, genTexts, textShrinker(), func(texts []string) string {
		tb := &caseTB{TB: tb}
		defer w.finish(tb)
		return w.run(tb, func() string {
			r := &modelRun{tb: tb, watch: w.watch, texts: texts, open: open}
			open(r)
			return c.model(r)
		})
	})
	if !found {
		return Finding{}, false
	}
	lines := make([]string, len(texts))
	for i, s := range texts {
		lines[i] = quoteShort(s)
	}
	return Finding{Check: c, Text: cmp.Or(w.hung, text), Case: strings.Join(lines, "\n"), Seed: o.seed}, true
}

// genTexts makes texts of every kind, and some that are none.
func genTexts(r *rand.Rand) []string {
	out := make([]string, 1+r.Intn(6))
	for i := range out {
		out[i] = makeText("say", textKind(r.Intn(int(textKinds))), r.Intn(60), r.Intn(60), nil)
		if r.Intn(5) == 0 {
			odd := prompts()
			out[i] = odd[r.Intn(len(odd))]
		}
	}
	return out
}

func textShrinker() gopter.Shrinker {
	return sliceShrinker(func(s string) []string {
		if len(s) < 2 {
			return nil
		}
		return []string{s[:len(s)/2], s[len(s)/2:]}
	})
}

// modelChecks are those of all parts that take text.
func modelChecks() []Check {
	return slices.Concat(counterChecks(), embedderChecks(), completerChecks())
}
