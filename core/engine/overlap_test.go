package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/sharedtest"
)

// sharedEngine returns an engine over a store that others use too.
func sharedEngine(t *testing.T, store core.Store) *engine.Engine {
	t.Helper()
	e, err := sharedtest.Engine(store)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func say(t *testing.T, e *engine.Engine, id core.SessionID, texts ...string) []string {
	t.Helper()
	var batch []message.Message
	for i, text := range texts {
		role := message.User
		if i%2 == 1 {
			role = message.Assistant
		}
		batch = append(batch, message.New(role, text))
	}
	res, err := e.IngestBatch(t.Context(), core.IngestBatchRequest{Session: id, Messages: batch})
	if err != nil {
		t.Fatal(err)
	}
	return res.IDs
}

// windowText returns what a prompt says.
func windowText(t *testing.T, e *engine.Engine, id core.SessionID) string {
	t.Helper()
	res, err := e.Assemble(t.Context(), core.AssembleRequest{Session: id, Budget: sharedtest.Budget, PromptMode: core.PromptNone})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range res.Messages {
		out = append(out, res.Messages[i].Text())
	}
	return strings.Join(out, "\n")
}

// TestOthersAreSeenOneCallLater: what another engine ingested, compacted, erased or purged is what the next prompt is made of.
func TestOthersAreSeenOneCallLater(t *testing.T) {
	store := memory.New()
	id := core.SessionID{Agent: "ada", Session: "shared"}
	a, b := sharedEngine(t, store), sharedEngine(t, store)
	ids := say(t, a, id, "first question", "a secret answer")
	if got := windowText(t, b, id); !strings.Contains(got, "secret") {
		t.Fatalf("the other engine shows %q", got)
	}
	say(t, a, id, "second question")
	if got := windowText(t, b, id); !strings.Contains(got, "second question") {
		t.Errorf("after a message: the other engine shows %q", got)
	}
	if _, err := a.Forget(t.Context(), engine.ForgetRequest{Scope: id.Scope(), Entries: ids[1:]}); err != nil {
		t.Fatal(err)
	}
	if got := windowText(t, b, id); strings.Contains(got, "secret") || !strings.Contains(got, "second question") {
		t.Errorf("after an erasure: the other engine shows %q", got)
	}
	if _, err := a.Forget(t.Context(), engine.ForgetRequest{Scope: id.Scope(), Purge: true}); err != nil {
		t.Fatal(err)
	}
	if got := windowText(t, b, id); strings.Contains(got, "question") {
		t.Errorf("after a purge: the other engine shows %q", got)
	}
}

// TestSameWordsOfTwoEngines: two engines that hear the same words hear two messages, unless the host says that it is one.
func TestSameWordsOfTwoEngines(t *testing.T) {
	store := memory.New()
	id := core.SessionID{Agent: "ada", Session: "shared"}
	a, b := sharedEngine(t, store), sharedEngine(t, store)
	ids := []string{say(t, a, id, "ok")[0], say(t, b, id, "ok")[0]}
	m := message.New(message.User, "once")
	m.Key = "k"
	for _, e := range []*engine.Engine{a, b} {
		res, err := e.Ingest(t.Context(), core.IngestRequest{Session: id, Message: m})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, res.IDs...)
	}
	if ids[0] == ids[1] || ids[2] != ids[3] {
		t.Errorf("the entries are %v, want three different ones, the last for both engines", ids)
	}
	if got := windowText(t, b, id); strings.Count(got, "ok") != 2 || strings.Count(got, "once") != 1 {
		t.Errorf("the window shows %q", got)
	}
}

// TestReceiptsOfOneMoment: erasures and outcomes of one moment are all kept, whoever makes them.
func TestReceiptsOfOneMoment(t *testing.T) {
	store := memory.New()
	id := core.SessionID{Agent: "ada", Session: "shared"}
	const each = 20
	var wg sync.WaitGroup
	for range 3 {
		e := sharedEngine(t, store)
		wg.Go(func() {
			for range each {
				if _, err := e.Forget(t.Context(), engine.ForgetRequest{Scope: id.Scope()}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := sharedEngine(t, store).Receipts(t.Context(), id.Agent)
	if err != nil || len(got) != 3*each {
		t.Errorf("%d receipts, %v, want %d", len(got), err, 3*each)
	}
}

// TestCompactionsThatOverlap: whoever is too late plans again or says that it was done, never that it cannot be done.
func TestCompactionsThatOverlap(t *testing.T) {
	store := memory.New()
	id := core.SessionID{Agent: "ada", Session: "shared"}
	engines := []*engine.Engine{sharedEngine(t, store), sharedEngine(t, store), sharedEngine(t, store), sharedEngine(t, store)}
	var texts []string
	for n := range 300 {
		texts = append(texts, sharedtest.Text("m", n))
	}
	say(t, engines[0], id, texts...)
	var wg sync.WaitGroup
	var mu sync.Mutex
	reasons := map[string]int{}
	for n := range 16 {
		e := engines[n%len(engines)]
		wg.Go(func() {
			for k := range 20 {
				if n%5 == 0 {
					say(t, e, id, fmt.Sprintf("w%d-%d. %s", n, k, strings.Repeat("word ", 20)))
				}
				res, err := e.Compact(t.Context(), core.CompactRequest{Session: id, Budget: sharedtest.Budget, Force: k%2 == 0})
				if err != nil || !res.OK {
					t.Errorf("Compact = %+v, %v", res, err)
				}
				if !res.Compacted && (res.TokensBefore == 0 || res.TokensAfter != res.TokensBefore || res.FirstKept == "") {
					t.Errorf("Compact = %+v, which does not say what is live", res)
				}
				reason, _, _ := strings.Cut(res.Reason, ":")
				mu.Lock()
				reasons[reason]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for reason := range reasons {
		if reason != "" && reason != core.ReasonAlreadyCompacted && reason != core.ReasonUnderTarget {
			t.Errorf("a compaction says %q", reason)
		}
	}
	t.Log(reasons)
}

// TestPositionOfASpentCall: an id that belongs to something else is an error in the end, not waited for.
func TestPositionOfASpentCall(t *testing.T) {
	store := memory.New()
	id := core.SessionID{Agent: "ada", Session: "shared"}
	cfg := engine.DefaultConfig()
	e, err := engine.New(engine.Parts{Store: store, Compactor: &halver{}, Counter: wordCounter}, cfg, engine.WithIDs(func() string { return "same" }))
	if err != nil {
		t.Fatal(err)
	}
	say(t, e, id, "one")
	_, err = e.Ingest(t.Context(), core.IngestRequest{Session: id, Message: message.New(message.User, "two")})
	if !errors.Is(err, core.ErrConflict) {
		t.Errorf("Ingest under an id that is taken = %v, want ErrConflict", err)
	}
}

// TestPurgedElsewhere: over a store that cannot say what others did, whose views are kept beside it, a session that another engine purged is read anew as soon
// as it is noticed, and goes on.
func TestPurgedElsewhere(t *testing.T) {
	store := memory.New()
	id := core.SessionID{Agent: "ada", Session: "shared"}
	parts := engine.Parts{Store: struct{ core.Store }{store}, Views: store, Compactor: &halver{}, Counter: wordCounter}
	cfg := engine.DefaultConfig()
	cfg.Failure = engine.FailStrict
	var engines []*engine.Engine
	for range 2 {
		e, err := engine.New(parts, cfg)
		if err != nil {
			t.Fatal(err)
		}
		engines = append(engines, e)
	}
	here, there := engines[0], engines[1]
	for name, ask := range map[string]func() error{
		"assemble": func() error {
			_, err := there.Assemble(t.Context(), core.AssembleRequest{Session: id, Budget: 1000})
			return err
		},
		"assemble a transcript": func() error {
			_, err := there.Assemble(t.Context(), core.AssembleRequest{Session: id, Budget: 1000, Transcript: &core.Transcript{Messages: []message.Message{message.New(message.User, "anew")}, Whole: true}})
			return err
		},
		"compact": func() error {
			_, err := there.Compact(t.Context(), core.CompactRequest{Session: id, Budget: 1000, Force: true})
			return err
		},
		"describe": func() error {
			_, err := there.Describe(t.Context(), engine.DescribeRequest{Session: id})
			return err
		},
		"commit": func() error {
			_, err := there.CommitTurn(t.Context(), core.CommitTurnRequest{Session: id, AdvancementKey: "k", Messages: []message.Message{message.New(message.User, "x"), message.New(message.Assistant, "y")}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			say(t, here, id, "one", "two", "three", "four")
			windowText(t, there, id)
			if _, err := here.Forget(t.Context(), engine.ForgetRequest{Scope: id.Scope(), Purge: true}); err != nil {
				t.Fatal(err)
			}
			if err := ask(); err != nil {
				t.Error(err)
			}
			say(t, there, id, "anew")
			if got := windowText(t, there, id); strings.Contains(got, "two") || !strings.Contains(got, "anew") {
				t.Errorf("the window shows %q", got)
			}
			if _, err := there.Forget(t.Context(), engine.ForgetRequest{Scope: id.Scope(), Purge: true}); err != nil {
				t.Fatal(err)
			}
		})
	}
}
