package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// emptying is a store that tells before an entry is emptied.
type emptying struct {
	*memory.Store
	before func()
}

func (s *emptying) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	if before := s.before; before != nil && c.Type == core.TypeErased {
		s.before = nil
		before()
	}
	return s.Store.Update(ctx, scope, id, c)
}

// telling is a store that tells, just before a summary is stored, that whoever is to erase something does so, without seeing the summary.
type telling struct {
	*memory.Store
	after func()
}

func (s *telling) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if after := s.after; after != nil && entries[0].Type == core.TypeSummary {
		s.after = nil
		after()
	}
	return s.Store.Append(ctx, entries)
}

// TestForgetReachesEveryView: an erasure reaches forks that belong to other agents, and theirs, whoever these belong to, and a view behind a thousand others.
func TestForgetReachesEveryView(t *testing.T) {
	f := newFixture(t)
	f.parts.Compactor = teller{}
	f.restart()
	f.id.Session = "zzz"
	for i := range 2*core.MaxPage + 1 {
		if err := f.store.SwapView(t.Context(), core.View{Session: core.SessionID{Agent: "main", Session: fmt.Sprintf("s%05d", i)}, Version: 1}); err != nil {
			t.Fatal(err)
		}
	}
	f.ingest(user("my code is "+secret), assistant("noted"), user("b"), assistant("c"))
	f.compact(100)
	f.assemble(100)
	fork := func(from, to core.SessionID) {
		if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: from, Child: to, Mode: core.SpawnFork}); err != nil {
			t.Fatal(err)
		}
	}
	child, grandchild := core.SessionID{Agent: "helper", Session: "child"}, core.SessionID{Agent: "third", Session: "child"}
	fork(f.id, child)
	fork(child, grandchild)
	last := core.SessionID{Agent: "third", Session: "of the same agent"}
	fork(grandchild, last)
	f.restart() // nothing is in memory
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
	for _, id := range []core.SessionID{f.id, child, grandchild, last} {
		v, err := f.store.LoadView(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if body := fmt.Sprint(v.Summaries, v.Shown); strings.Contains(body, secret) {
			t.Errorf("the view of %s holds %s", id, body)
		}
		if s := shown(f.assemble(100, func(r *core.AssembleRequest) { r.Session = id })); strings.Contains(s, secret) {
			t.Errorf("%s shows %s", id, s)
		}
	}
}

// TestForgetWhileCompacting: neither a summary that is published while an erasure is under way, nor one that comes after it, keeps what was erased.
func TestForgetWhileCompacting(t *testing.T) {
	t.Run("published meanwhile", func(t *testing.T) {
		store := &emptying{Store: memory.New()}
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store, p.Compactor = store, teller{} })
		f.store = store.Store
		f.ingest(user("my code is "+secret), assistant("noted"), user("b"), assistant("c"))
		store.before = func() {
			if f.compact(100); len(f.traces()) < 3 {
				t.Errorf("the secret is in %q only", f.traces())
			}
		}
		rec := f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
		if rec.Summaries != 1 {
			t.Errorf("receipt: %+v", rec)
		}
		if got := f.traces(); got != nil {
			t.Errorf("still there: %q", got)
		}
	})
	t.Run("published afterwards", func(t *testing.T) {
		late := &meanwhile{Compactor: teller{}}
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = late })
		f.ingest(user("my code is "+secret), assistant("noted"), user("b"), assistant("c"))
		late.do = func() { f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}}) }
		// The patch is refused, and the compaction is planned again.
		if _, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 100, Force: true}); err != nil {
			t.Fatal(err)
		}
		if got := f.traces(); got != nil {
			t.Errorf("still there: %q", got)
		}
	})
	for name, purge := range map[string]bool{"between its entry and its view": false, "the same, purged": true} {
		t.Run(name, func(t *testing.T) {
			store := &telling{Store: memory.New()}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store, p.Compactor = store, teller{} })
			f.store = store.Store
			f.ingest(user("my code is "+secret), assistant("noted"), user("b"), assistant("c"))
			elsewhere, err := engine.New(engine.Parts{Store: store.Store, Compactor: teller{}, Counter: f.parts.Counter}, f.cfg)
			if err != nil {
				t.Fatal(err)
			}
			store.after = func() {
				req := engine.ForgetRequest{Scope: f.id.Scope(), Purge: purge}
				if !purge {
					req.Entries = []string{f.entry("code is").ID}
				}
				if _, err := elsewhere.Forget(t.Context(), req); err != nil {
					t.Error(err)
				}
			}
			f.compact(100)
			if got := f.traces(); got != nil {
				t.Errorf("still there: %q", got)
			}
		})
	}
	t.Run("shortened afterwards", func(t *testing.T) {
		late := &meanwhile{Compactor: stubber{text: secret}}
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = late })
		f.ingest(user("my code is "+secret+strings.Repeat(" word", 50)), assistant("noted"), user("b"), assistant("c"))
		late.do = func() { f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}}) }
		if _, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 100, Force: true}); err != nil {
			t.Fatal(err)
		}
		if got := f.traces(); got != nil {
			t.Errorf("still there: %q", got)
		}
	})
}

// meanwhile is a compactor before whose answer something happens.
type meanwhile struct {
	core.Compactor
	do    func()
	calls int
}

func (m *meanwhile) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	m.calls++
	p, err := m.Compactor.Compact(ctx, c)
	if do := m.do; do != nil {
		m.do = nil
		do()
	}
	return p, err
}

// stubber is a compactor that shortens the oldest entry to a text.
type stubber struct{ text string }

func (stubber) OwnsCompaction() bool { return true }

func (s stubber) Compact(_ context.Context, c core.Compaction) (core.Patch, error) {
	return core.Patch{Stubs: map[string]window.Stub{c.Entries[0].ID: {Kind: window.Clipped, Texts: map[int]string{0: s.text}}}}, nil
}

// TestRewindWhileCompacting: a summary of what was rewound meanwhile is not published, and one of before the rewind stands for nothing that is gone.
func TestRewindWhileCompacting(t *testing.T) {
	host := []message.Message{user("one"), assistant("two"), user("three"), assistant("four"), user("five"), assistant("six")}
	for name, then := range map[string][]message.Message{
		"reset":            {user("anew"), assistant("yes"), user("so"), assistant("well")},
		"rewound":          {host[0], user("other"), assistant("yes"), user("so"), assistant("well")},
		"cut short":        host[:2],
		"reset to nothing": {},
		"another order":    {host[2], host[3], host[0], host[1], host[4], host[5]},
	} {
		t.Run(name, func(t *testing.T) {
			late := &meanwhile{Compactor: steady{}}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = late })
			f.assemble(1000, transcript("next", host...))
			late.do = func() { f.assemble(1000, transcript("next", then...)) }
			if _, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 1000, Force: true}); err != nil {
				t.Fatal(err) // the patch is refused, and the compaction is planned again
			}
			want := sentText(core.AssembleResult{Messages: then})
			if got := sentText(f.assemble(1000)); got != want {
				t.Errorf("published:\n%s\nwant\n%s", got, want)
			}
			if got := sentText(f.assemble(1000, transcript("next", then...))); got != want {
				t.Errorf("shown:\n%s\nwant\n%s", got, want)
			}
			// The same with the summary published before.
			f = newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = steady{} })
			f.assemble(1000, transcript("next", host...))
			f.compact(1000)
			if s := shown(f.assemble(1000, transcript("next", host...))); !strings.HasPrefix(s, "[4 earlier]") {
				t.Fatalf("shown: %s", s)
			}
			if name == "another order" {
				return // the summary speaks of the same entries
			}
			if got := sentText(f.assemble(1000, transcript("next", then...))); got != want {
				t.Errorf("compacted before, shown:\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestRewindToWhatACompactionTook: where a host goes back meanwhile to just what a compaction takes, what was paid for is published and not thrown away. The
// newest turn is shown all the same.
func TestRewindToWhatACompactionTook(t *testing.T) {
	host := []message.Message{user("one"), assistant("two"), user("three"), assistant("four"), user("five"), assistant("six")}
	late := &meanwhile{Compactor: steady{}}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = late })
	f.assemble(1000, transcript("next", host...))
	late.do = func() { f.assemble(1000, transcript("next", host[:4]...)) }
	if res := f.compact(1000); !res.Compacted {
		t.Errorf("Compact = %+v", res)
	}
	for range 2 {
		if got, want := shown(f.assemble(1000, transcript("next", host[:4]...))), "[4 earlier] | three | four"; got != want {
			t.Errorf("shown: %q, want %q", got, want)
		}
		f.restart()
	}
}

// TestHostIDUsedAgain: a host's id names a message together with what it says: the same id with another text is another message.
func TestHostIDUsedAgain(t *testing.T) {
	with := func(id, text string) message.Message {
		m := user(text)
		m.ID = id
		return m
	}
	f := newFixture(t)
	f.ingest(with("1", "one"), with("1", "another"))
	f.ingest(with("1", "one"), with("1", "a third"))
	if s := shown(f.assemble(1000)); s != "one | another | a third" {
		t.Errorf("shown: %q", s)
	}
}

// TestTurnOfWhatWasIngested: a turn's messages that were ingested before are known by the host's ids, and by those alone where there are any: another id is another
// message, also when it was said at the same time.
func TestTurnOfWhatWasIngested(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	with := func(id string, at time.Time) message.Message {
		m := user("ok")
		m.ID, m.Time = id, at
		return m
	}
	for name, c := range map[string]struct {
		before, turn message.Message
		want         string
	}{
		"the same id":                      {with("1", time.Time{}), with("1", time.Time{}), "ok | so it is"},
		"the same id at another time":      {with("1", at), with("1", at.Add(time.Hour)), "ok | so it is"},
		"another id":                       {with("1", time.Time{}), with("2", time.Time{}), "ok | ok | so it is"},
		"another id at the same time":      {with("1", at), with("2", at), "ok | ok | so it is"},
		"the same time":                    {with("", at), with("", at), "ok | so it is"},
		"nothing that says it is the same": {with("", time.Time{}), with("", time.Time{}), "ok | ok | so it is"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.ingest(c.before)
			req := core.CommitTurnRequest{Session: f.id, AdvancementKey: "k", Messages: []message.Message{c.turn, assistant("so it is")}}
			if _, err := f.engine.CommitTurn(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			if got := shown(f.assemble(1000)); got != c.want {
				t.Errorf("shown: %q, want %q", got, c.want)
			}
		})
	}
}

// TestForgetWhatIsShownBeforeTheNextStep: what a compaction behind the window replaced is shown until the window steps; an erasure takes that too.
func TestForgetWhatIsShownBeforeTheNextStep(t *testing.T) {
	behind := &greedy{propose: func(c core.Compaction) core.Patch {
		r := core.Replacement{Kind: "summary", Text: "they spoke of " + secret, Entries: entryIDs(c.Entries[:c.Left])}
		for i := range c.Summaries {
			r.Summaries = append(r.Summaries, c.Summaries[i].ID)
		}
		return core.Patch{Replace: []core.Replacement{r}}
	}}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = behind })
	const budget = 200
	talk := func() {
		for range 8 {
			f.ingest(user("so "+strings.Repeat("word ", 15)), assistant("yes "+strings.Repeat("word ", 15)))
			f.assemble(budget)
		}
	}
	f.ingest(user("my code is " + secret))
	for range 2 {
		talk()
		if res := f.compact(budget); !res.Compacted {
			t.Fatalf("Compact = %+v", res)
		}
	}
	v, err := f.store.LoadView(t.Context(), f.id)
	if err != nil || v.Shown == nil || !strings.Contains(fmt.Sprint(v.Shown.Summaries), secret) {
		t.Fatalf("the view shows %+v: nothing is tested: %v", v.Shown, err)
	}
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
	if got := f.traces(); got != nil {
		t.Errorf("still there: %q", got)
	}
	if s := shown(f.assemble(budget)); strings.Contains(s, secret) {
		t.Errorf("shown: %q", s)
	}
}

// TestForgetWithSummariesThatDoNotSay: a summary that does not say what it stands for goes with what was said before it.
func TestForgetWithSummariesThatDoNotSay(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("before it"), user("my code is "+secret), user("so"))
	summary := func(id string, seq int64) core.Entry {
		m := user("they spoke of " + secret)
		return core.Entry{
			ID: id, Agent: f.id.Agent, Session: f.id.Session, Seq: seq, Role: m.Role, Type: core.TypeSummary, Time: time.Now().UTC().Truncate(time.Millisecond),
			Key: "c:" + id, Fingerprint: message.Fingerprint(m), Message: m, Tokens: 5,
		}
	}
	if _, err := f.store.Append(t.Context(), []core.Entry{summary("old", 3)}); err != nil {
		t.Fatal(err)
	}
	f.restart()
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
	if got := f.traces(); got != nil {
		t.Errorf("still there: %q", got)
	}
}

// TestForgetThePinnedPrompt: the message with which a turn began that outgrew the window is erased like any other, and what follows is shown without it.
func TestForgetThePinnedPrompt(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("before"), assistant("noted"), user("my code is "+secret))
	for i := range 6 {
		id := fmt.Sprint("c", i)
		f.ingest(calling(id), resulting(id, strings.Repeat("word ", 40)))
	}
	if got := shown(f.assemble(130)); !strings.Contains(got, secret) || !strings.Contains(got, "this turn") {
		t.Fatalf("window = %q: nothing is tested", got)
	}
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
	if v, err := f.store.LoadView(t.Context(), f.id); err != nil || v.Pinned != "" {
		t.Errorf("%q stays in front: %v", v.Pinned, err)
	}
	for range 2 {
		if got := shown(f.assemble(130)); strings.Contains(got, secret) || !strings.Contains(got, "word") {
			t.Errorf("shown %q", got)
		}
		f.restart()
	}
}

// TestWhatWasErasedMeanwhileCostsNoSecondTry: a patch shortens what is left of it; the compactor is not asked again, which may cost a model's work.
func TestWhatWasErasedMeanwhileCostsNoSecondTry(t *testing.T) {
	late := &meanwhile{Compactor: shortenAll{}}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = late })
	words := strings.Repeat(" word", 50)
	f.ingest(user("my code is "+secret+words), assistant("noted"+words), user("b"), assistant("c"))
	late.do = func() { f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}}) }
	if res := f.compact(100); !res.Compacted {
		t.Errorf("Compact = %+v", res)
	}
	if late.calls != 1 {
		t.Errorf("the compactor was asked %d times, want once", late.calls)
	}
	if got := shown(f.assemble(1000)); got != "in short | b | c" {
		t.Errorf("shown %q", got)
	}
}

// shortenAll is a compactor that shortens whatever it may.
type shortenAll struct{}

func (shortenAll) OwnsCompaction() bool { return true }

func (shortenAll) Compact(_ context.Context, c core.Compaction) (core.Patch, error) {
	p := core.Patch{Stubs: map[string]window.Stub{}}
	for _, entry := range c.Entries[:len(c.Entries)-c.Protected] {
		p.Stubs[entry.ID] = window.Stub{Kind: window.Clipped, Texts: map[int]string{0: "in short"}}
	}
	return p, nil
}

// TestSummaryThatWasStoredButNotPublished: a compaction that loses its race when its summary is stored already is planned again, and does not say before that
// it compacted.
func TestSummaryThatWasStoredButNotPublished(t *testing.T) {
	store, h := &telling{Store: memory.New()}, &halver{}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store, p.Compactor = store, h })
	f.store = store.Store
	f.ingest(user("one"+strings.Repeat(" word", 90)), assistant("two"), user("three"), assistant("four"))
	elsewhere, err := engine.New(engine.Parts{Store: store.Store, Compactor: &halver{}, Counter: f.parts.Counter}, f.cfg)
	if err != nil {
		t.Fatal(err)
	}
	store.after = func() {
		if _, err := elsewhere.Forget(t.Context(), engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("four").ID}}); err != nil {
			t.Error(err)
		}
	}
	if res := f.compact(100); !res.Compacted || h.calls != 2 {
		t.Errorf("Compact = %+v, the compactor was asked %d times, want twice", res, h.calls)
	}
	for range 2 {
		if got := shown(f.assemble(1000)); got != "summary number 2 | two | three" {
			t.Errorf("shown %q", got)
		}
		f.restart()
	}
}

// stubborn is a store that changes nothing, until it gives in.
type stubborn struct {
	*memory.Store
	givesIn bool
}

func (s *stubborn) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	if s.givesIn {
		return s.Store.Update(ctx, scope, id, c)
	}
	return fmt.Errorf("update: %w", core.ErrUnavailable)
}

// TestSummaryOfBeforeAnErasure: a summary that a view does not know yet is taken up when as much had been erased when it was made, and emptied otherwise. Where
// it cannot be emptied an engine that degrades goes on without it, also with new messages, says so, and tries again at the next call; a strict one fails.
func TestSummaryOfBeforeAnErasure(t *testing.T) {
	summaries := func(made string) *fixture {
		f := newFixture(t)
		for i := range 11 {
			said := fmt.Sprintf("%s-%02d", secret, i)
			f.ingest(user(said))
			f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(said).ID}})
		}
		f.ingest(user("one"))
		late := core.Entry{
			ID: "late", Agent: f.id.Agent, Session: f.id.Session, Seq: 12, Role: message.User, Type: core.TypeSummary, Tokens: 2, Key: "c:late", Fingerprint: "late",
			Message: message.New(message.User, "summary of before"), Meta: map[string]string{"erasures": made, "kind": "summary", "covers": "1"},
		}
		if _, err := f.store.Append(t.Context(), []core.Entry{late}); err != nil {
			t.Fatal(err)
		}
		return f
	}
	kept := func(f *fixture) bool {
		got, err := f.store.Get(t.Context(), f.id.Scope(), []string{"late"})
		if err != nil || len(got) != 1 || len(got[0].Meta) > 0 && got[0].Type == core.TypeErased {
			t.Errorf("its place holds %+v, %v", got, err)
			return false
		}
		return got[0].Text() != ""
	}
	for made, want := range map[string]bool{"11": true, "10": false, "": false} {
		f := summaries(made)
		f.restart()
		if got := shown(f.assemble(1000)); got != "one" {
			t.Errorf("made at %q: shown %q", made, got)
		}
		if got := kept(f); got != want {
			t.Errorf("made at %q: it is kept: %t, want %t", made, got, want)
		}
	}
	f := summaries("10")
	store := &stubborn{Store: f.store}
	f.parts.Store = store
	f.restart()
	if res := f.assemble(1000); shown(res) != "one" || len(f.engine.Info().Health) == 0 {
		t.Errorf("shown %q, health %v", shown(res), f.engine.Info().Health)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // an engine that does not get past it tries for ever
	defer cancel()
	if _, err := f.engine.Ingest(ctx, core.IngestRequest{Session: f.id, Message: user("two")}); err != nil { // behind what could not be emptied
		t.Fatal(err)
	}
	if got := shown(f.assemble(1000)); got != "one | two" {
		t.Errorf("after another message: shown %q", got)
	}
	store.givesIn = true
	if got := shown(f.assemble(1000)); got != "one | two" || kept(f) {
		t.Errorf("once the store changes something again: shown %q, it is kept: %t", got, kept(f))
	}
	f = summaries("10")
	f.parts.Store, f.cfg.Failure = &stubborn{Store: f.store}, engine.FailStrict
	f.restart()
	if _, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 1000}); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("a strict engine: %v", err)
	}
}
