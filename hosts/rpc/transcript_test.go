package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/rpc"
	"github.com/contextengine/contextengine/internal/drawn"
)

func TestNeedTranscript(t *testing.T) {
	t.Parallel()
	host := rpc.NewHost()
	c := open(t, newServer(t, one{composed(t, host)}, host), rpc.ClientOptions{})
	ctx := t.Context()
	list := raws([][]byte{user("one", 1), answer("two", 2), user("three", 3), answer("four", 4)})
	assemble := func(tp rpc.TranscriptParams) (rpc.AssembleResult, error) {
		return c.Assemble(ctx, rpc.AssembleParams{Session: sid("s"), Budget: 1000, Transcript: &tp, References: true})
	}
	_, err := assemble(rpc.TranscriptParams{Skipped: 2, Prefix: "d2", Messages: list[2:], Digest: "d4"})
	if e := wantCode(t, "unknown prefix", err, rpc.CodeNeedTranscript); e.Data.Known == nil || len(*e.Data.Known) != 0 {
		t.Errorf("known = %v", e.Data.Known)
	}
	if _, err := c.Bootstrap(ctx, rpc.BootstrapParams{Session: sid("s"), Transcript: &rpc.TranscriptParams{Messages: list[:2], Digest: "d2"}}); err != nil {
		t.Fatal(err)
	}
	res, err := assemble(rpc.TranscriptParams{Skipped: 2, Prefix: "d2", Messages: list[2:], Digest: "d4"})
	if err != nil || len(res.Items) != 1 || res.Items[0].To != 4 {
		t.Fatalf("Assemble = %+v, %v", res, err)
	}
	_, err = assemble(rpc.TranscriptParams{Skipped: 3, Prefix: "d3", Messages: list[3:], Digest: "d4"})
	e := wantCode(t, "unknown prefix", err, rpc.CodeNeedTranscript)
	if want := []rpc.Checkpoint{{Count: 4, Digest: "d4"}, {Count: 2, Digest: "d2"}}; !slices.Equal(*e.Data.Known, want) {
		t.Errorf("known = %v, want %v", *e.Data.Known, want)
	}
	// Another digest of the same count is another list.
	_, err = assemble(rpc.TranscriptParams{Skipped: 4, Prefix: "other", Messages: nil})
	wantCode(t, "other prefix", err, rpc.CodeNeedTranscript)
	// Another session knows nothing of it.
	_, err = c.Assemble(ctx, rpc.AssembleParams{Session: sid("t"), Budget: 1000, Transcript: &rpc.TranscriptParams{Skipped: 2, Prefix: "d2", Messages: list[2:]}})
	wantCode(t, "other session", err, rpc.CodeNeedTranscript)
	// A turn that is committed can be skipped, if the client says where it stands.
	turn := raws([][]byte{user("five", 5), answer("six", 6)})
	_, err = c.CommitTurn(ctx, rpc.CommitTurnParams{Session: sid("s"), AdvancementKey: "k", Messages: turn, Advance: &rpc.Advance{Count: 4, Prefix: "d4", Digest: "d6"}})
	if err != nil {
		t.Fatal(err)
	}
	res, err = assemble(rpc.TranscriptParams{Skipped: 6, Prefix: "d6", Messages: []json.RawMessage{}, Digest: "d6"})
	if err != nil || len(res.Items) != 1 || res.Items[0].From != 0 || res.Items[0].To != 6 {
		t.Fatalf("Assemble = %+v, %v", res, err)
	}
	// A tool loop hands the output back, and names it.
	out := res.Output
	if out.Count != 6 || out.Digest == "" {
		t.Fatalf("output = %+v", out)
	}
	loop := rpc.TranscriptParams{Skipped: out.Count, Prefix: out.Digest, Messages: []json.RawMessage{}}
	res, err = c.Assemble(ctx, rpc.AssembleParams{Session: sid("s"), Budget: 1000, Call: core.CallLoop, Transcript: &loop, References: true})
	if err != nil || len(res.Items) != 1 || res.Items[0].To != 6 {
		t.Errorf("loop call = %+v, %v", res, err)
	}
	// What is disposed of is forgotten.
	if err := c.Dispose(ctx, rpc.DisposeParams{Session: sid("s")}); err != nil {
		t.Fatal(err)
	}
	_, err = assemble(rpc.TranscriptParams{Skipped: 6, Prefix: "d6", Messages: nil})
	wantCode(t, "after dispose", err, rpc.CodeNeedTranscript)
	if res, err = assemble(rpc.TranscriptParams{Messages: slices.Concat(list, turn), Digest: "d6"}); err != nil || len(res.Items) != 1 {
		t.Errorf("whole transcript = %+v, %v", res, err)
	}
}

// When the engine cannot use what the server knows, the client sends everything.
func TestEngineThatNeedsTheTranscript(t *testing.T) {
	t.Parallel()
	calls := 0
	f := &fake{assemble: func(_ context.Context, req core.AssembleRequest) (core.AssembleResult, error) {
		calls++
		if req.Transcript.Skipped > 0 {
			return core.AssembleResult{}, fmt.Errorf("core: %w", core.ErrNeedTranscript)
		}
		return core.AssembleResult{Messages: req.Transcript.Messages, PromptAuthority: core.AuthorityHost, Degraded: "store: away"}, nil
	}}
	c := open(t, newServer(t, one{f}, nil), rpc.ClientOptions{})
	v := rpc.NewConversation(c, sid("s"), "")
	list := raws([][]byte{user("one", 1), answer("two", 2), user("three", 3)})
	if _, _, err := v.Assemble(t.Context(), list[:1], rpc.AssembleParams{Budget: 9}); err != nil {
		t.Fatal(err)
	}
	got, res, err := v.Assemble(t.Context(), list, rpc.AssembleParams{Budget: 9})
	if err != nil || len(got) != 3 || res.Degraded == "" {
		t.Errorf("Assemble = %v, %+v, %v", got, res, err)
	}
	if calls != 3 {
		t.Errorf("the engine was called %d times, want 3", calls)
	}
}

// Whatever happens to the host's list, what the client puts together from references is the list that it would have got without.
func TestReferencesStandForTheFullList(t *testing.T) {
	t.Parallel()
	base := drawn.Seed(t)
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			referencesHold(t, rand.New(rand.NewPCG(base, seed)))
		})
	}
}

func referencesHold(t *testing.T, rng *rand.Rand) {
	t.Helper()
	// Two servers with engines of the same state: one is asked with references and tails, the other in full.
	brief := open(t, newServer(t, one{composed(t, nil)}, nil), rpc.ClientOptions{})
	full := open(t, newServer(t, one{composed(t, nil)}, nil), rpc.ClientOptions{})
	v := rpc.NewConversation(brief, sid("s"), "")
	loop := rpc.NewConversation(brief, sid("s"), "")
	var list []json.RawMessage
	at := 0
	next := func() json.RawMessage {
		at++
		texts := []string{"ok", "yes <b>&</b>", strings.Repeat("long ", rng.IntN(80)), "\u2028", fmt.Sprint("number ", at)}
		stamp := at
		if rng.IntN(3) == 0 {
			stamp = 0 // the same bytes may come again
		}
		if at%2 == 1 {
			return user(texts[rng.IntN(len(texts))], stamp)
		}
		return answer(texts[rng.IntN(len(texts))], stamp)
	}
	for step := range 16 {
		switch op := rng.IntN(12); {
		case op < 7 || len(list) < 4:
			for range 1 + rng.IntN(6) {
				list = append(list, next())
			}
		case op < 8: // rewound
			list = slices.Clone(list[:len(list)-1-rng.IntN(3)])
		case op < 9: // the host shows the newest part
			list = slices.Clone(list[1+rng.IntN(len(list)-2):])
		case op < 10: // one message is written anew
			list = slices.Clone(list)
			list[rng.IntN(len(list))] = next()
		case op < 11:
			if err := brief.Dispose(t.Context(), rpc.DisposeParams{Session: sid("s")}); err != nil {
				t.Fatal(err)
			}
		default: // a reset
			list = nil
			list = append(list, next())
		}
		p := rpc.AssembleParams{Budget: 300 + rng.IntN(300), Prompt: "what now?"}
		if rng.IntN(4) == 0 {
			key, turn := fmt.Sprint("turn", step), []json.RawMessage{next(), next()}
			_, err := v.CommitTurn(t.Context(), key, turn)
			_, err2 := full.CommitTurn(t.Context(), rpc.CommitTurnParams{Session: sid("s"), AdvancementKey: key, Messages: turn})
			if err != nil || err2 != nil {
				t.Fatalf("CommitTurn = %v, %v", err, err2)
			}
			list = append(slices.Clone(list), turn...)
		}
		got, _, err := v.Assemble(t.Context(), list, p)
		want := sameCall(t, full, list, p, got, err, step)
		if want != nil && rng.IntN(3) == 0 { // a tool loop hands the output back
			p.Call = core.CallLoop
			again, _, err := loop.Assemble(t.Context(), want, p)
			sameCall(t, full, want, p, again, err, step)
		}
	}
}

// sameCall makes the same call in full and compares.
func sameCall(t *testing.T, full *rpc.Client, list []json.RawMessage, p rpc.AssembleParams, got []json.RawMessage, err error, step int) []json.RawMessage {
	t.Helper()
	p.Session, p.Transcript = sid("s"), &rpc.TranscriptParams{Messages: list}
	res, ferr := full.Assemble(t.Context(), p)
	if (err == nil) != (ferr == nil) {
		t.Fatalf("step %d: with references %v, in full %v", step, err, ferr)
	}
	if err != nil {
		if !errors.Is(err, core.ErrBudget) {
			t.Fatalf("step %d: %v", step, err)
		}
		return nil
	}
	if !slices.EqualFunc(got, res.Messages, func(a, b json.RawMessage) bool { return masked(a) == masked(b) }) {
		t.Fatalf("step %d: with references\n%s\nin full\n%s", step, got, res.Messages)
	}
	return got
}

// masked takes the random ids of entries out of a message of the engine's own.
func masked(m json.RawMessage) string {
	s := string(m)
	if at := strings.Index(s, "#e"); at >= 0 {
		s = s[:at]
	}
	return s
}

// A list that grows by a turn costs about that turn, not the list.
func TestLongTranscriptIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := newServer(t, one{composed(t, nil)}, nil)
	tapped := attach(t, s)
	c := rpc.NewClient(tapped, struct{ *tap }{tapped}, rpc.ClientOptions{})
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Initialize(t.Context(), rpc.InitializeParams{Client: rpc.Program{Name: "x"}, Format: "pi"}); err != nil {
		t.Fatal(err)
	}
	v := rpc.NewConversation(c, sid("s"), "")
	var list []json.RawMessage
	for i := range 500 {
		list = append(list, user(fmt.Sprint("question ", i, strings.Repeat(" word", 40)), 2*i), answer(fmt.Sprint("answer ", i), 2*i+1))
	}
	size := func() (sent, got int) {
		tapped.mu.Lock()
		defer tapped.mu.Unlock()
		return tapped.sent.Len(), tapped.got.Len()
	}
	if _, _, err := v.Assemble(t.Context(), list, rpc.AssembleParams{Budget: 20_000, Prompt: "p"}); err != nil {
		t.Fatal(err)
	}
	sent, got := size()
	if sent < 150_000 {
		t.Errorf("the first call sent %d bytes", sent)
	}
	for i := range 5 {
		turn := raws([][]byte{user(fmt.Sprint("new question ", i), 5000+2*i), answer("new answer", 5001+2*i)})
		if _, err := v.CommitTurn(t.Context(), fmt.Sprint(i), turn); err != nil {
			t.Fatal(err)
		}
		list = append(list, turn...)
		if _, _, err := v.Assemble(t.Context(), list, rpc.AssembleParams{Budget: 20_000, Prompt: "p"}); err != nil {
			t.Fatal(err)
		}
	}
	nextSent, nextGot := size()
	t.Logf("first call: %d bytes there, %d back; then %d and %d for each turn", sent, got, (nextSent-sent)/5, (nextGot-got)/5)
	if (nextSent-sent)/5 > 2000 || (nextGot-got)/5 > 5000 {
		t.Errorf("a turn costs %d bytes there and %d back", (nextSent-sent)/5, (nextGot-got)/5)
	}
}

// Bytes are the host's, there and back, whatever is in them.
func TestBytesAreKept(t *testing.T) {
	t.Parallel()
	c := open(t, newServer(t, one{composed(t, nil)}, nil), rpc.ClientOptions{})
	list := raws([][]byte{
		[]byte(`{ "role" : "user", "content":"a < b && c > d \u2028 é \/ \u0041", "timestamp":1767225600000, "x":[1.0, 1e3,{"messages":null}] }`),
		[]byte(`{"role":"assistant","content":[{"type":"text","text":"\"messages\":null {\"$payload\":1}}"}],"stopReason":"stop","timestamp":1767225601000}`),
	})
	if _, err := c.IngestBatch(t.Context(), rpc.IngestBatchParams{Session: sid("s"), Messages: list}); err != nil {
		t.Fatal(err)
	}
	res, err := c.Assemble(t.Context(), rpc.AssembleParams{Session: sid("s"), Budget: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(res.Messages, list, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
		t.Errorf("got  %s\nwant %s", res.Messages, list)
	}
	if _, err := c.Ingest(t.Context(), rpc.IngestParams{Session: sid("t"), Message: json.RawMessage("{\n \"role\": \"user\", \"content\": \"x\"}")}); err != nil {
		t.Errorf("a message of two lines: %v", err)
	}
}

// TestIngestOverAnotherConnection: a call whose answer was lost is made again over another connection, and nothing is stored twice.
func TestIngestOverAnotherConnection(t *testing.T) {
	t.Parallel()
	s := newServer(t, one{composed(t, nil)}, nil)
	message := json.RawMessage(`{"role":"user","content":"ok"}`)
	for n, want := range []core.IngestResult{{Ingested: 2}, {Duplicates: 2}} {
		c := open(t, s, rpc.ClientOptions{})
		first, err := c.Ingest(t.Context(), rpc.IngestParams{Session: sid("s"), Message: message, IdempotencyKey: "one", Format: "openai"})
		if err != nil {
			t.Fatal(err)
		}
		second, err := c.IngestBatch(t.Context(), rpc.IngestBatchParams{Session: sid("s"), Messages: []json.RawMessage{message}, IdempotencyKey: "two", Format: "openai"})
		if err != nil {
			t.Fatal(err)
		}
		if first.Ingested+second.Ingested != want.Ingested || first.Duplicates+second.Duplicates != want.Duplicates {
			t.Errorf("connection %d: %+v and %+v, want %+v together", n+1, first, second, want)
		}
	}
}

func TestExpandRefusesWhatIsOutside(t *testing.T) {
	t.Parallel()
	list := raws([][]byte{user("one", 1)})
	for _, it := range []rpc.Item{{From: 0, To: 2}, {From: -1, To: 1}, {From: 1, To: 1}, {}} {
		if got, err := rpc.Expand([]rpc.Item{it}, list); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("Expand(%+v) = %v, %v", it, got, err)
		}
	}
}

// A whole conversation over the wire: subagents, maintenance, turns of older hosts.
func TestSubagents(t *testing.T) {
	t.Parallel()
	host := rpc.NewHost()
	c := open(t, newServer(t, one{composed(t, host)}, host), rpc.ClientOptions{})
	ctx := t.Context()
	if err := c.AfterTurn(ctx, rpc.AfterTurnParams{Session: sid("p"), Messages: raws([][]byte{user("old", 1), user("hello", 2), answer("hi", 3)}), PrePrompt: 1}); err != nil {
		t.Fatal(err)
	}
	sp, err := c.PrepareSubagentSpawn(ctx, rpc.SpawnParams{Parent: sid("p"), Child: sid("c"), Mode: core.SpawnFork, TTLMs: 60_000})
	if err != nil || sp.SpawnID == "" || sp.GrantID == "" {
		t.Fatalf("PrepareSubagentSpawn = %+v, %v", sp, err)
	}
	res, err := c.Assemble(ctx, rpc.AssembleParams{Session: sid("c"), Budget: 1000})
	if err != nil || len(res.Messages) < 2 {
		t.Errorf("the fork sees %s, %v", res.Messages, err)
	}
	if err := c.RollbackSubagentSpawn(ctx, rpc.RollbackParams{SpawnID: sp.SpawnID}); err != nil {
		t.Error(err)
	}
	wantCode(t, "second rollback", c.RollbackSubagentSpawn(ctx, rpc.RollbackParams{SpawnID: sp.SpawnID}), rpc.CodeNotFound)
	if _, err := c.PrepareSubagentSpawn(ctx, rpc.SpawnParams{Parent: sid("p"), Child: sid("d")}); err != nil {
		t.Fatal(err)
	}
	if err := c.OnSubagentEnded(ctx, rpc.SubagentEndedParams{Child: sid("d"), Reason: "completed", Result: "the answer is 42"}); err != nil {
		t.Fatal(err)
	}
	res, err = c.Assemble(ctx, rpc.AssembleParams{Session: sid("p"), Budget: 1000, Explain: true})
	if err != nil || len(res.Choices) == 0 || !strings.Contains(fmt.Sprintf("%s", res.Messages), "the answer is 42") {
		t.Errorf("the parent sees %s, %v", res.Messages, err)
	}
	if _, err := c.Maintain(ctx, rpc.MaintainParams{Session: sid("p"), Reason: "turn", Budget: 1000}); err != nil {
		t.Error(err)
	}
	_, err = c.Maintain(ctx, rpc.MaintainParams{Session: sid("p"), Reason: "why not"})
	wantCode(t, "Maintain", err, rpc.CodeInvalidParams)
}
