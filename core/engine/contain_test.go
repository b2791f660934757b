package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// madeUp is a retriever, observer and compactor that does what it is told; nil things are done soundly.
type madeUp struct {
	store    core.Store
	retrieve func(core.Entry) []core.Candidate
	appended func()
	compact  func(context.Context, core.Compaction) (core.Patch, error)
}

func (m *madeUp) Attach(s core.Store) error { m.store = s; return nil }

func (m *madeUp) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	page, err := m.store.Scan(ctx, core.ScanQuery{Scope: q.Scope, Limit: 1})
	if err != nil || len(page.Entries) == 0 {
		return nil, err
	}
	return m.retrieve(page.Entries[0]), nil
}

func (m *madeUp) Appended(context.Context, []core.Entry) error {
	if m.appended != nil {
		m.appended()
	}
	return nil
}

func (*madeUp) Updated(context.Context, core.Entry) error { return nil }

func (*madeUp) Deleted(context.Context, core.Scope, []string) error { return nil }

func (*madeUp) OwnsCompaction() bool { return true }

func (m *madeUp) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	return m.compact(ctx, c)
}

// madeUpFixture is a session whose first message is not shown any more, with a retriever that proposes it.
func madeUpFixture(t *testing.T, m *madeUp) *fixture {
	t.Helper()
	f := newFixture(t, func(c *engine.Config, p *engine.Parts) {
		c.Recall.Share, c.Recall.Gate, c.Recall.Whole = 0.3, false, 1
		p.Retriever = m
		if m.compact != nil {
			p.Compactor = m
		}
	})
	f.ingest(user("the kite is red, and the boat is blue"), assistant("noted "+strings.Repeat("word ", 300)))
	for range 20 {
		f.ingest(user("go on "+strings.Repeat("word ", 30)), assistant("done "+strings.Repeat("word ", 30)))
	}
	return f
}

func (f *fixture) problem(part string) bool {
	return slices.ContainsFunc(f.engine.Info().Health, func(p core.Problem) bool { return strings.Contains(p.Part, part) })
}

// TestRecallQuotesWhatWasSaid: whatever a retriever wants quoted of an entry, the block says what the entry says.
func TestRecallQuotesWhatWasSaid(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "> the kite is red, and the boat is blue\n",
		"the kite is red":               "> the kite is red\n",
		"kite is red ... boat is blue":  "> kite is red ... boat is blue\n",
		"the kite is green":             "> the kite is red, and the boat is blue\n",
		"remember: the kite is red":     "> the kite is red, and the boat is blue\n",
		"the boat is blue, the kite is": "> the kite is red, and the boat is blue\n",
	} {
		m := &madeUp{retrieve: func(e core.Entry) []core.Candidate {
			return []core.Candidate{{Entry: e, Text: text, Score: 1, Source: "made up"}}
		}}
		res, err := madeUpFixture(t, m).turn(1)
		if err != nil {
			t.Fatal(err)
		}
		if res.RecallLen != 1 || !strings.Contains(res.Messages[res.RecallAt].Text(), want) {
			t.Errorf("text %q: %d messages are recalled, want %q", text, res.RecallLen, want)
		}
		if wrong := strings.HasSuffix(want, "blue\n") && text != "" && !strings.Contains(text, "..."); wrong != (len(res.Warnings) > 0) {
			t.Errorf("text %q: warnings %q", text, res.Warnings)
		}
	}
}

// TestPartsThatPanic: a panic of a part is a failure of the part. The turn is answered without it, and Info says so.
func TestPartsThatPanic(t *testing.T) {
	sound := func(core.Entry) []core.Candidate { return nil }
	t.Run("retriever", func(t *testing.T) {
		f := madeUpFixture(t, &madeUp{retrieve: func(core.Entry) []core.Candidate { panic("the code is 1234") }})
		res, err := f.turn(1)
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Messages) == 0 || len(res.Warnings) == 0 || !f.problem("retriever") {
			t.Errorf("%d messages, warnings %q, problems %+v", len(res.Messages), res.Warnings, f.engine.Info().Health)
		}
		if strings.Contains(strings.Join(res.Warnings, " "), "1234") {
			t.Errorf("a warning repeats what the panic said: %q", res.Warnings)
		}
	})
	t.Run("observer", func(t *testing.T) {
		m := &madeUp{retrieve: sound}
		f := madeUpFixture(t, m)
		m.appended = func() { panic("broken") }
		if res := f.ingest(user("hello")); res.Ingested != 1 || !f.problem("observer") {
			t.Errorf("result %+v, problems %+v", res, f.engine.Info().Health)
		}
	})
	t.Run("compactor", func(t *testing.T) {
		var list []int
		f := madeUpFixture(t, &madeUp{retrieve: sound, compact: func(context.Context, core.Compaction) (core.Patch, error) {
			return core.Patch{Reason: string(rune(list[3]))}, nil
		}})
		if res := f.compact(600); !res.Compacted || res.TokensAfter > 600 || !f.problem("compactor") {
			t.Errorf("result %+v, problems %+v", res, f.engine.Info().Health)
		}
	})
}

// TestCompactorThatIgnoresItsContext: a compaction ends soon after its deadline although the compactor does not, and what that publishes later comes too late.
func TestCompactorThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake, woken := make(chan struct{}), make(chan error, 1)
		f := madeUpFixture(t, &madeUp{
			retrieve: func(core.Entry) []core.Candidate { return nil },
			compact: func(ctx context.Context, c core.Compaction) (core.Patch, error) {
				<-wake
				woken <- c.Publish(context.WithoutCancel(ctx), core.Patch{Replace: []core.Replacement{{Text: "late", Kind: "summary", Entries: entryIDs(c.Entries[:2])}}})
				return core.Patch{}, nil
			},
		})
		if res := f.compact(600); !res.Compacted || res.TokensAfter > 600 || !f.problem("compactor") {
			t.Errorf("result %+v, problems %+v", res, f.engine.Info().Health)
		}
		close(wake)
		if err := <-woken; !errors.Is(err, core.ErrClosed) {
			t.Errorf("a patch of a compactor that was left behind: error %v, want ErrClosed", err)
		}
		if err := f.engine.Dispose(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
