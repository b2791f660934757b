package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/retain"
	"github.com/contextengine/contextengine/core/vector"
	"github.com/contextengine/contextengine/internal/needs"
)

// older replaces what may go by a line of text.
type older struct{}

func (older) OwnsCompaction() bool { return true }

func (older) Compact(_ context.Context, c core.Compaction) (core.Patch, error) {
	r := core.Replacement{Kind: "summary", Text: "they talked"}
	for _, e := range c.Entries[:len(c.Entries)-c.Protected] {
		r.Entries = append(r.Entries, e.ID)
	}
	for _, s := range c.Summaries {
		r.Summaries = append(r.Summaries, s.ID)
	}
	return core.Patch{Replace: []core.Replacement{r}}, nil
}

func newEngine(t *testing.T, s core.Store) *engine.Engine {
	t.Helper()
	cfg := engine.DefaultConfig()
	cfg.RecentMessages = 4
	e, err := engine.New(engine.Parts{Store: s, Compactor: older{}, Counter: func(text string) int { return len(strings.Fields(text)) }}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// talk is a conversation; with odd numbers the assistant speaks.
func talk(n int) []message.Message {
	var out []message.Message
	for i := range n {
		role := message.User
		if i%2 == 1 {
			role = message.Assistant
		}
		out = append(out, message.New(role, fmt.Sprintf("message%d %s", i, strings.Repeat("word ", 20))))
	}
	return out
}

// TestEngineAfterRetain has a host show its whole transcript again after most of it was removed from the store.
func TestEngineAfterRetain(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	e := newEngine(t, s)
	assemble := func(e *engine.Engine, n int) core.AssembleResult {
		t.Helper()
		res, err := e.Assemble(t.Context(), core.AssembleRequest{Session: ann, Budget: 900, PromptMode: core.PromptNone,
			Transcript: &core.Transcript{Messages: talk(n)}})
		if err != nil {
			t.Fatalf("Assemble with %d messages: %v", n, err)
		}
		return res
	}
	for n := 1; n <= 81; n += 2 {
		assemble(e, n)
	}
	if res, err := e.Compact(t.Context(), core.CompactRequest{Session: ann, Budget: 900, Force: true}); err != nil || !res.Compacted {
		t.Fatalf("Compact = %+v, %v", res, err)
	}
	before := assemble(e, 81)
	var archive bytes.Buffer
	report, err := s.Retain(t.Context(), retain.Policy{MaxEntries: 1, Archive: &archive})
	if err != nil || report.Emptied < 30 || report.Kept == 0 || report.Deleted != 0 {
		t.Fatalf("Retain = %+v, %v, want most of the conversation emptied", report, err)
	}
	shows := func(res core.AssembleResult) string {
		var b strings.Builder
		for _, m := range res.Messages {
			fmt.Fprintln(&b, m.Role, m.Text())
		}
		return b.String()
	}
	if got, want := shows(assemble(e, 81)), shows(before); got != want {
		t.Errorf("the window after Retain is\n%s\nand was\n%s", got, want)
	}
	stored := len(all(t, s, ann.Scope()))
	again := newEngine(t, s)
	if got, want := shows(assemble(again, 81)), shows(before); got != want {
		t.Errorf("the window of a new engine is\n%s\nand was\n%s", got, want)
	}
	// The host's copies of what was removed are not stored again.
	assemble(again, 83)
	if n := len(all(t, s, ann.Scope())); n != stored+2 {
		t.Errorf("the store has %d entries, want the %d that it had and 2 more", n, stored)
	}
	assemble(again, 5) // and a host that goes back in time meets no gap
	full := open(t, config(t))
	if p, err := full.Import(t.Context(), &archive, nil); err != nil || p.Entries != report.Emptied {
		t.Errorf("Import of the archive = %+v, %v, want the %d that were emptied", p, err, report.Emptied)
	}
}

// TestForgetReachesTheFile erases through the engine and searches the raw files.
func TestForgetReachesTheFile(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	s := open(t, cfg)
	e := newEngine(t, s)
	secret := map[int]bool{}
	for n := range 40 {
		m := message.New(message.User, "say "+needle(n))
		if n%2 == 1 {
			m = message.New(message.Assistant, "said "+needle(n))
		}
		if _, err := e.IngestBatch(t.Context(), core.IngestBatchRequest{Session: ann, Messages: []message.Message{m}}); err != nil {
			t.Fatal(err)
		}
		secret[n] = true
	}
	if _, err := e.Assemble(t.Context(), core.AssembleRequest{Session: ann, Budget: 60, PromptMode: core.PromptNone}); err != nil {
		t.Fatal(err)
	}
	if len(found(t, cfg.Path, secret)) == 0 {
		t.Fatal("what was not erased is not found either: the search is broken")
	}
	receipt, err := e.Forget(t.Context(), engine.ForgetRequest{Scope: ann.Scope()})
	if err != nil || receipt.Entries != 40 || len(receipt.Left) > 0 {
		t.Fatalf("Forget = %+v, %v, want 40 entries and nothing left", receipt, err)
	}
	if left := found(t, cfg.Path, secret); len(left) > 0 {
		t.Errorf("after Forget the files still say %v", left)
	}
}

// TestThousandAgents is a property: whatever one of a thousand agents asks for, it gets its own alone, and all of it.
func TestThousandAgents(t *testing.T) {
	needs.NoRace(t) // one goroutine, and long
	t.Parallel()
	s := open(t, config(t))
	agents := number("AGENTS", 1000)
	name := func(a int) string { return fmt.Sprintf("agent%d", a) }
	id := func(a, i int) string { return fmt.Sprintf("%s-s%d-%d", name(a), i%2, i) }
	const each = 4
	for i := range each {
		for from := 0; from < agents; from += 50 {
			var batch []core.Entry
			for a := from; a < min(from+50, agents); a++ {
				// The same sessions, keys and texts for all: only the agent tells them apart.
				e := entry(core.SessionID{Agent: name(a), Session: fmt.Sprint("s", i%2)}, i)
				e.Key, e.Message = fmt.Sprint("k", i), message.New(message.User, "the same text")
				batch = append(batch, e)
			}
			if res := mustAppend(t, s, batch...); res.Duplicates > 0 {
				t.Fatalf("%d entries of other agents count as duplicates", res.Duplicates)
			}
		}
	}
	own := func(a int, what string, n int, of func(i int) string) {
		t.Helper()
		if n != each {
			t.Errorf("%s of %s has %d entries, want %d", what, name(a), n, each)
		}
		for i := range n {
			if agent := of(i); agent != name(a) {
				t.Fatalf("%s of %s has an entry of %s", what, name(a), agent)
			}
		}
	}
	for a := range agents {
		scope, stranger := core.Scope{Agent: name(a)}, (a+1)%agents
		got := all(t, s, scope)
		own(a, "Scan", len(got), func(i int) string { return got[i].Agent })
		page, err := s.Changes(t.Context(), core.ChangeQuery{Agent: name(a), Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		own(a, "Changes", len(page.Changes), func(i int) string { return page.Changes[i].Entry.Agent })
		if got, err := s.Get(t.Context(), scope, []string{id(a, 0), id(stranger, 1)}); !errors.Is(err, core.ErrNotFound) || got != nil {
			t.Fatalf("Get of an entry of another agent = %v, %v, want ErrNotFound", got, err)
		}
		if a%100 > 0 {
			continue
		}
		m := message.New(message.User, "taken over")
		if err := s.Update(t.Context(), scope, id(stranger, 1), core.Change{Message: &m}); !errors.Is(err, core.ErrNotFound) {
			t.Fatalf("Update of an entry of another agent = %v, want ErrNotFound", err)
		}
		if n, err := s.Delete(t.Context(), scope, []string{id(stranger, 1)}); n != 0 || err != nil {
			t.Fatalf("Delete of an entry of another agent = %d, %v, want 0", n, err)
		}
		if _, err := s.LoadView(t.Context(), core.SessionID{Agent: name(a), Session: "s0"}); !errors.Is(err, core.ErrNotFound) {
			t.Fatal(err)
		}
		if err := s.PutVectors(t.Context(), "m/2", vectorsOf(got, 2)); err != nil {
			t.Fatal(err)
		}
		vectors, err := s.ScanVectors(t.Context(), vector.Query{Space: "m/2", Agent: name(a), Limit: 100})
		if err != nil || len(vectors.Vectors) != 2*each || !strings.HasPrefix(vectors.Vectors[0].ID, name(a)+"-") {
			t.Fatalf("ScanVectors of %s = %d, %v", name(a), len(vectors.Vectors), err)
		}
		if other, err := s.ScanVectors(t.Context(), vector.Query{Space: "m/2", Agent: name(stranger), Limit: 100}); err != nil || len(other.Vectors) > 0 {
			t.Fatalf("ScanVectors of an agent without vectors = %d, %v", len(other.Vectors), err)
		}
	}
}
