package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// wordCounter counts words: cheap, and easy to reckon with.
func wordCounter(text string) int { return len(strings.Fields(text)) }

// halver owns compaction and replaces the older half of what may go.
type halver struct{ calls int }

func (h *halver) OwnsCompaction() bool { return true }

func (h *halver) Compact(_ context.Context, c core.Compaction) (core.Patch, error) {
	h.calls++
	r := core.Replacement{Kind: "summary", Text: fmt.Sprintf("summary number %d", h.calls)}
	for _, e := range c.Entries[:len(c.Entries)-c.Protected] {
		r.Entries = append(r.Entries, e.ID)
	}
	for _, s := range c.Summaries {
		r.Summaries = append(r.Summaries, s.ID)
	}
	return core.Patch{Replace: []core.Replacement{r}}, nil
}

type fixture struct {
	t      *testing.T
	store  *memory.Store
	engine *engine.Engine
	id     core.SessionID
	cfg    engine.Config
	parts  engine.Parts
}

func newFixture(t *testing.T, change ...func(*engine.Config, *engine.Parts)) *fixture {
	t.Helper()
	f := &fixture{t: t, store: memory.New(), id: core.SessionID{Agent: "main", Session: "s1"}, cfg: engine.DefaultConfig()}
	f.cfg.RecentMessages = 2
	f.parts = engine.Parts{Store: f.store, Compactor: &halver{}, Counter: wordCounter}
	for _, c := range change {
		c(&f.cfg, &f.parts)
	}
	f.restart()
	return f
}

// restart makes a new engine over the same store.
func (f *fixture) restart() {
	f.t.Helper()
	e, err := engine.New(f.parts, f.cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	f.engine = e
}

func (f *fixture) ingest(messages ...message.Message) core.IngestResult {
	f.t.Helper()
	res, err := f.engine.IngestBatch(f.t.Context(), core.IngestBatchRequest{Session: f.id, Messages: messages})
	if err != nil {
		f.t.Fatal(err)
	}
	return res
}

func (f *fixture) assemble(budget int, change ...func(*core.AssembleRequest)) core.AssembleResult {
	f.t.Helper()
	req := core.AssembleRequest{Session: f.id, Budget: budget, PromptMode: core.PromptNone}
	for _, c := range change {
		c(&req)
	}
	res, err := f.engine.Assemble(f.t.Context(), req)
	if err != nil {
		f.t.Fatal(err)
	}
	return res
}

// transcript hands the messages over as the host's.
func transcript(prompt string, messages ...message.Message) func(*core.AssembleRequest) {
	return func(r *core.AssembleRequest) {
		r.Prompt = prompt
		r.Transcript = &core.Transcript{Messages: messages}
	}
}

func (f *fixture) stored() int {
	f.t.Helper()
	n := 0
	for _, err := range core.All(f.t.Context(), f.store, f.id.Scope(), false) {
		if err != nil {
			f.t.Fatal(err)
		}
		n++
	}
	return n
}

func user(text string) message.Message      { return message.New(message.User, text) }
func assistant(text string) message.Message { return message.New(message.Assistant, text) }

// shown joins the texts of a result.
func shown(res core.AssembleResult) string {
	var b strings.Builder
	for i, m := range res.Messages {
		if i > 0 {
			b.WriteString(" | ")
		}
		b.WriteString(m.Text())
	}
	return b.String()
}

func TestReconcile(t *testing.T) {
	base := []message.Message{user("q1"), assistant("a1"), user("q2"), assistant("a2")}
	for _, tc := range []struct {
		name   string
		host   []message.Message
		want   string
		stored int
	}{
		{"same", base, "q1 | a1 | q2 | a2", 4},
		{"grown by a turn that was never committed", append(base[:4:4], user("q3"), assistant("failed")), "q1 | a1 | q2 | a2 | q3 | failed", 6},
		{"the host shows only the newest turn", base[2:], "q1 | a1 | q2 | a2", 4},
		{"rewound", base[:2], "q1 | a1", 4},
		{"forked", append(base[:2:2], user("other"), assistant("b2")), "q1 | a1 | other | b2", 6},
		{"reset", []message.Message{user("new"), assistant("n1")}, "new | n1", 6},
		{"reset to nothing", []message.Message{}, "", 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			f.ingest(base...)
			for range 2 { // the second call finds nothing new
				if got := shown(f.assemble(1000, transcript("now", tc.host...))); got != tc.want {
					t.Errorf("window = %q, want %q", got, tc.want)
				}
			}
			f.restart()
			if got := shown(f.assemble(1000, transcript("now", tc.host...))); got != tc.want {
				t.Errorf("window after a restart = %q, want %q", got, tc.want)
			}
			if n := f.stored(); n != tc.stored {
				t.Errorf("%d entries stored, want %d", n, tc.stored)
			}
		})
	}
}

func TestReconcileHostCompaction(t *testing.T) {
	f := newFixture(t)
	base := []message.Message{user("q1"), assistant("a1"), user("q2"), assistant("a2")}
	f.ingest(base...)
	sum := user("the host's summary")
	sum.Type = message.CompactionSummary
	host := append([]message.Message{sum}, base[2:]...)
	want := "the host's summary | q2 | a2"
	for range 2 {
		if got := shown(f.assemble(1000, transcript("now", host...))); got != want {
			t.Errorf("window = %q, want %q", got, want)
		}
	}
	if n := f.stored(); n != 5 {
		t.Errorf("%d entries stored, want the four and the summary", n)
	}
	host = append(host, user("q3"), assistant("a3"))
	if got := shown(f.assemble(1000, transcript("now", host...))); got != want+" | q3 | a3" {
		t.Errorf("window = %q, want %q", got, want+" | q3 | a3")
	}
}

func TestOwnOutputChangesNothing(t *testing.T) {
	f := newFixture(t)
	var base []message.Message
	for i := range 40 {
		base = append(base, user(fmt.Sprintf("question %d with some more words in it", i)), assistant(fmt.Sprintf("answer %d, just as long as that", i)))
	}
	first := f.assemble(200, transcript("now", base...))
	if len(first.Messages) >= len(base) {
		t.Fatalf("the window shows all %d messages: nothing is tested", len(base))
	}
	again := f.assemble(200, transcript("now", first.Messages...), func(r *core.AssembleRequest) { r.Call = core.CallLoop })
	if shown(again) != shown(first) {
		t.Errorf("own output gave\n%s\nwant\n%s", shown(again), shown(first))
	}
	if n := f.stored(); n != len(base) {
		t.Errorf("%d entries stored, want %d", n, len(base))
	}
}

// TestIngestedBetweenTranscripts: what a host hands over alone, and then in its transcript too, is one message.
func TestIngestedBetweenTranscripts(t *testing.T) {
	f := newFixture(t)
	host := []message.Message{user("q1"), assistant("a1"), user("q2"), assistant("a2")}
	f.assemble(1000, transcript("now", host[:2]...))
	f.ingest(host[2])
	if got, want := shown(f.assemble(1000, transcript("now", host...))), "q1 | a1 | q2 | a2"; got != want {
		t.Errorf("window = %q, want %q", got, want)
	}
	if n := f.stored(); n != len(host) {
		t.Errorf("%d entries stored, want %d", n, len(host))
	}
}

// TestSaidAsANoteSays: a message that says what the engine's note of nothing left out would say is a message like any other: there is no such note.
func TestSaidAsANoteSays(t *testing.T) {
	f := newFixture(t)
	host := []message.Message{user("q1"), assistant("a1"), user(window.NotShown(0)), assistant("a2")}
	f.ingest(host[:2]...)
	if got, want := shown(f.assemble(1000, transcript("now", host...))), "q1 | a1 | "+window.NotShown(0)+" | a2"; got != want {
		t.Errorf("window = %q, want %q", got, want)
	}
}

func TestSkippedTranscript(t *testing.T) {
	f := newFixture(t)
	base := []message.Message{user("q1"), assistant("a1")}
	f.assemble(1000, transcript("x", base...))
	tail := func(r *core.AssembleRequest) {
		r.Transcript = &core.Transcript{Skipped: 2, Digest: message.DigestOf(base), Messages: []message.Message{user("q2"), assistant("a2")}}
		r.Prompt = "x"
	}
	if got := shown(f.assemble(1000, tail)); got != "q1 | a1 | q2 | a2" {
		t.Errorf("window = %q", got)
	}
	for _, skipped := range []int{2, 9} { // fewer than are known, and more
		_, err := f.engine.Assemble(t.Context(), core.AssembleRequest{
			Session: f.id, Budget: 100, Transcript: &core.Transcript{Skipped: skipped, Digest: "something else"},
		})
		if !errors.Is(err, core.ErrNeedTranscript) {
			t.Errorf("unknown digest of %d: %v, want ErrNeedTranscript", skipped, err)
		}
	}
}

// TestSkippedTranscriptBehindAHeartbeat: what a timer said is in no transcript, so a host need not hand its own over again because of it: also where the
// process that stored it ended before it published that. Where the session has grown by a message, the host is asked for all.
func TestSkippedTranscriptBehindAHeartbeat(t *testing.T) {
	base := []message.Message{user("q1"), assistant("a1")}
	for kind, want := range map[core.EntryType]error{core.TypeHeartbeat: nil, core.TypeMessage: core.ErrNeedTranscript} {
		f := newFixture(t)
		f.assemble(1000, transcript("x", base...))
		m := user("tick")
		if _, err := f.store.Append(t.Context(), []core.Entry{{
			ID: "late", Key: "late", Agent: f.id.Agent, Session: f.id.Session, Seq: 2, Role: m.Role,
			Type: kind, Message: m, Fingerprint: message.Fingerprint(m), Tokens: 5,
		}}); err != nil {
			t.Fatal(err)
		}
		f.restart()
		rest := &core.Transcript{Skipped: 2, Digest: message.DigestOf(base), Messages: []message.Message{user("q2")}}
		res, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 1000, PromptMode: core.PromptNone, Transcript: rest})
		if !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", kind, err, want)
		}
		if got := shown(res); want == nil && got != "q1 | a1 | q2" {
			t.Errorf("%s: shown %q", kind, got)
		}
	}
}

func TestCommitTurn(t *testing.T) {
	f := newFixture(t)
	turn := []message.Message{user("q1"), assistant("a1")}
	commit := func(key string, m ...message.Message) core.CommitTurnResult {
		t.Helper()
		res, err := f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: key, Messages: m})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if got := commit("k1", turn...).Status; got != core.Committed {
		t.Errorf("first commit: %s", got)
	}
	f.restart()
	if got := commit("k1", turn...).Status; got != core.Duplicate {
		t.Errorf("same key after a restart: %s", got)
	}
	if got := commit("k2", turn...).Status; got != core.Committed {
		t.Errorf("same words in another turn: %s", got)
	}
	want := "q1 | a1 | q1 | a1"
	if got := shown(f.assemble(1000, transcript("now", append(turn, turn...)...))); got != want {
		t.Errorf("window = %q, want %q", got, want)
	}
	if n := f.stored(); n != 4 {
		t.Errorf("%d entries stored, want 4", n)
	}
}

func TestCompactPublishesAndReplays(t *testing.T) {
	f := newFixture(t)
	for i := range 30 {
		f.ingest(user(fmt.Sprintf("question %d", i)), assistant(fmt.Sprintf("answer %d", i)))
	}
	f.assemble(200)
	for round := range 3 {
		res, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Force: true})
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 && (!res.Compacted || res.TokensAfter >= res.TokensBefore) {
			t.Errorf("round %d: %+v made no progress", round, res)
		}
	}
	before := shown(f.assemble(200))
	if !strings.Contains(before, "summary number") || !strings.HasSuffix(before, "question 29 | answer 29") {
		t.Errorf("window after compaction = %q", before)
	}
	f.restart()
	if got := shown(f.assemble(200)); got != before {
		t.Errorf("window after a restart = %q, want %q", got, before)
	}
}

func TestSubagents(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("parent question"), assistant("parent answer"))
	child := core.SessionID{Agent: "main", Session: "child"}
	spawn, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	inChild := func(r *core.AssembleRequest) { r.Session = child }
	if got := shown(f.assemble(1000, inChild)); got != "parent question | parent answer" {
		t.Errorf("forked child sees %q", got)
	}
	if err := spawn.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := shown(f.assemble(1000, inChild)); got != "" {
		t.Errorf("after the rollback the child sees %q", got)
	}
	if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.engine.IngestBatch(t.Context(), core.IngestBatchRequest{
		Session: child, Messages: []message.Message{user("task"), assistant("the result")},
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second call is a repetition
		if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Child: child, Reason: "completed"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := shown(f.assemble(1000)); strings.Count(got, "the result") != 1 {
		t.Errorf("parent sees %q, want the child's result once", got)
	}
}

func TestBudgetError(t *testing.T) {
	f := newFixture(t)
	call := message.Message{Role: message.Assistant, Parts: []message.Part{{
		Kind: message.ToolCall, CallID: "1", Name: "write", Args: `{"text":"` + strings.Repeat("word ", 500) + `"}`,
	}}}
	result := message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: "1", Name: "write", Text: "ok"}}}
	f.ingest(user("go"), call, result)
	_, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 100})
	var be *core.BudgetError
	if !errors.As(err, &be) || be.Budget != 100 || be.Needed <= 500 || be.Entry == "" {
		t.Errorf("err = %v, want a BudgetError that names the entry", err)
	}
	// A huge result is clipped instead.
	f.ingest(user("again"), message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: "2", Name: "read", Args: "{}"}}},
		message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: "2", Name: "read", Text: strings.Repeat("line of text\n", 500)}}})
	if res := f.assemble(150); res.EstimatedTokens > 150 {
		t.Errorf("%d tokens in a budget of 150", res.EstimatedTokens)
	}
}

// failing is a store whose Scan fails when told so.
type failing struct {
	*memory.Store
	err error
}

func (s *failing) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	if s.err != nil {
		return core.Page{}, s.err
	}
	return s.Store.Scan(ctx, q)
}

func TestFailurePolicy(t *testing.T) {
	for _, policy := range []engine.FailurePolicy{engine.FailDegrade, engine.FailStrict} {
		t.Run(string(policy), func(t *testing.T) {
			broken := &failing{Store: memory.New(), err: errors.New("disk on fire")}
			f := newFixture(t, func(c *engine.Config, p *engine.Parts) { c.Failure, p.Store = policy, broken })
			req := core.AssembleRequest{Session: f.id, Budget: 100, Transcript: &core.Transcript{Messages: []message.Message{user("hi")}}, Prompt: "x"}
			res, err := f.engine.Assemble(t.Context(), req)
			if policy == engine.FailStrict {
				if !errors.Is(err, broken.err) {
					t.Errorf("strict: %v, want the store's error", err)
				}
				return
			}
			if err != nil || shown(res) != "hi" || !strings.Contains(res.Degraded, "disk on fire") {
				t.Errorf("degrade: %q, degraded %q, %v", shown(res), res.Degraded, err)
			}
			if h := f.engine.Info().Health; len(h) == 0 || !h[0].Quarantined {
				t.Errorf("health says %+v", h)
			}
			broken.err = nil
			if _, err := f.engine.Bootstrap(t.Context(), core.BootstrapRequest{Session: f.id}); err != nil {
				t.Fatal(err)
			}
			if res, err := f.engine.Assemble(t.Context(), req); err != nil || res.Degraded != "" {
				t.Errorf("after bootstrap: degraded %q, %v", res.Degraded, err)
			}
		})
	}
}

func TestHeartbeatsStayOut(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("q1"), assistant("a1"))
	if _, err := f.engine.Ingest(t.Context(), core.IngestRequest{Session: f.id, Message: user("tick"), Heartbeat: true}); err != nil {
		t.Fatal(err)
	}
	f.ingest(user("q2"))
	if got := shown(f.assemble(1000)); got != "q1 | a1 | q2" {
		t.Errorf("window = %q", got)
	}
	if n := f.stored(); n != 4 {
		t.Errorf("%d entries stored, want 4", n)
	}
}

// needy is a compactor that needs something of the host.
type needy struct{ halver }

func (*needy) Requires() capability.Requirements {
	return capability.Requirements{"compact": {Capabilities: []capability.Name{capability.DelegateHost}, Unsupported: "Use another compactor."}}
}

// TestRequirements: what options, the configuration and parts need of the host is told to it, and an engine is not made where it lacks something; the error ends with what
// to do, in the words of all who need it.
func TestRequirements(t *testing.T) {
	lacks := capability.Requirements{"agent-run": {Capabilities: []capability.Name{capability.Assemble, capability.Complete}, Unsupported: "Choose another harness."}}
	parts := func(k core.Compactor) engine.Parts {
		return engine.Parts{Store: memory.New(), Compactor: k, Counter: wordCounter}
	}
	configured, silent := engine.DefaultConfig(), engine.DefaultConfig()
	configured.Requires = lacks
	silent.Requires = capability.Requirements{"agent-run": {Capabilities: []capability.Name{capability.Complete}}}
	needs := func(unsupported string) []engine.Option {
		need := capability.Requirement{Capabilities: []capability.Name{capability.Assemble}, Unsupported: unsupported}
		return []engine.Option{engine.WithRequirements(capability.Requirements{"agent-run": need})}
	}
	for name, c := range map[string]struct {
		compactor core.Compactor
		cfg       engine.Config
		opts      []engine.Option
		missing   capability.Name
		says      string
	}{
		"an option":         {&halver{}, engine.DefaultConfig(), []engine.Option{engine.WithRequirements(lacks)}, capability.Complete, "Choose another harness."},
		"a key":             {&halver{}, configured, nil, capability.Complete, "Choose another harness."},
		"a part":            {&needy{}, engine.DefaultConfig(), nil, capability.DelegateHost, "Use another compactor."},
		"two that say it":   {&halver{}, configured, needs("Ask its author."), capability.Complete, "Ask its author. Choose another harness."},
		"the second of two": {&halver{}, configured, needs(""), capability.Complete, "Choose another harness."},
		"the first of two":  {&halver{}, silent, needs("Ask its author."), capability.Complete, "Ask its author."},
	} {
		_, err := engine.New(parts(c.compactor), c.cfg, c.opts...)
		re, ok := errors.AsType[*capability.RequirementError](err)
		if !ok || len(re.Missing) != 1 || re.Missing[0] != c.missing || !strings.HasSuffix(err.Error(), ": "+c.says) {
			t.Errorf("%s: err = %v, want a RequirementError that names %s and ends with %q", name, err, c.missing, c.says)
		}
	}
	has := capability.Requirements{"agent-run": {Capabilities: []capability.Name{capability.Assemble}}}
	e, err := engine.New(parts(&halver{}), engine.DefaultConfig(), engine.WithRequirements(has))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(has, e.Info().Requires); diff != "" {
		t.Errorf("Info (-want +got):\n%s", diff)
	}
	for name, wrong := range map[string]capability.Requirement{"none": {}, "unknown": {Capabilities: []capability.Name{"fly"}}} {
		c := engine.DefaultConfig()
		c.Requires = capability.Requirements{"agent-run": wrong}
		if err := c.Validate(); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "requires.agent-run.capabilities") {
			t.Errorf("%s: Validate = %v", name, err)
		}
	}
}

// TestOwnOutputBeginsWithASummary: a summary of the host's that the window begins with says nothing of what stands in front of it, when the engine's output is
// handed back: its note says that this is only not shown.
func TestOwnOutputBeginsWithASummary(t *testing.T) {
	tried := false
	for at := range 80 {
		f := newFixture(t)
		var base []message.Message
		for i := range 40 {
			base = append(base, user(fmt.Sprintf("question %d with some more words in it", i)), assistant(fmt.Sprintf("answer %d, just as long as that", i)))
		}
		base[at] = user(fmt.Sprintf("what was before %d with some more words", at))
		base[at].Type = message.CompactionSummary
		for n := range base {
			f.ingest(base[n]) // no list of a host begins with it
		}
		first := f.assemble(200)
		if len(first.Messages) < 2 || !strings.HasPrefix(first.Messages[0].Text(), "[") || first.Messages[1].Type != message.CompactionSummary {
			continue
		}
		tried = true
		loop := func(r *core.AssembleRequest) { r.Call = core.CallLoop }
		handed := append(first.Messages, assistant("and on"))
		once := f.assemble(90, transcript("", handed...), loop)
		for range 2 {
			if again := f.assemble(90, transcript("", handed...), loop); again.Epoch != once.Epoch || shown(again) != shown(once) {
				t.Errorf("again, epoch %d:\n%s\nwant epoch %d:\n%s", again.Epoch, shown(again), once.Epoch, shown(once))
			}
		}
		f.sound()
	}
	if !tried {
		t.Error("no window began with the summary: nothing is tested")
	}
}

// TestHostCompactionBehindAnEmptyWindow: a summary that nobody knew is the host's, also where a window was empty before and nothing that is known follows.
func TestHostCompactionBehindAnEmptyWindow(t *testing.T) {
	f := newFixture(t)
	sum := user("the host's summary")
	sum.Type = message.CompactionSummary
	loop := func(r *core.AssembleRequest) { r.Call = core.CallLoop }
	f.assemble(1000, transcript(""))
	f.assemble(1000, transcript("", user("q1"), user("q2")), loop)
	for range 2 {
		if got, want := shown(f.assemble(1000, transcript("", sum, user("q3"), assistant("a3")), loop)), "the host's summary | q3 | a3"; got != want {
			t.Errorf("shown: %q, want %q", got, want)
		}
	}
}

// TestFirstTurnBehindHeartbeats: a timer alone has spoken, and a rule leaves out what it said: the window is empty, and the first turn goes on behind it.
func TestFirstTurnBehindHeartbeats(t *testing.T) {
	for _, provider := range []string{"", "anthropic", "google", "mistral", "openai", "openai-responses"} {
		f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.History.Provider = provider })
		host := one(user("Read HEARTBEAT.md. If nothing needs attention, reply HEARTBEAT_OK."), assistant("HEARTBEAT_OK"))
		given := f.assemble(1000, transcript("what now?", host...)).Messages
		turn := one(user("what now?"), calling("c1"), resulting("c1", "found"))
		f.assemble(1000, transcript("", join(given, turn)...), inLoop)
		turn = append(turn, assistant("done"))
		if _, err := f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "t1", Messages: turn}); err != nil {
			t.Fatal(err)
		}
		host = join(host, turn)
		f.assemble(1000, transcript("next", host...))
		if got := f.stored(); got != len(host) {
			t.Errorf("%q: %d stored, want %d", provider, got, len(host))
		}
		f.sound()
	}
}

// TestNewBeginningBehindAnEmptyWindow: where a window was empty, a list in the turn that shows nothing known may go on behind it. It does with a model's answer, and is
// a new beginning with a prompt.
func TestNewBeginningBehindAnEmptyWindow(t *testing.T) {
	for _, whole := range []bool{false, true} {
		f := newFixture(t)
		loop := func(r *core.AssembleRequest) { r.Call, r.Transcript.Whole = core.CallLoop, whole }
		f.assemble(1000, transcript(""))
		f.assemble(1000, transcript("", user("q1"), assistant("a1")), loop)
		if got, want := shown(f.assemble(1000, transcript("", assistant("a2")), loop)), "q1 | a1 | a2"; got != want {
			t.Errorf("whole %t: shown: %q, want %q", whole, got, want)
		}
		if got, want := shown(f.assemble(1000, transcript("", user("q2")), loop)), "q2"; got != want {
			t.Errorf("whole %t: shown: %q, want %q", whole, got, want)
		}
	}
}
