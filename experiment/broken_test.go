package experiment_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/examples/transcript"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/dataset"
)

// example is the example conversation with a system message in front.
func example(t *testing.T) dataset.Session {
	t.Helper()
	sessions, err := dataset.Read(strings.NewReader(transcript.Session()), transcript.Name, dataset.Options{})
	if err != nil || len(sessions) != 1 {
		t.Fatalf("%d sessions, error %v", len(sessions), err)
	}
	codec, err := message.Lookup(message.FormatPi)
	if err != nil {
		t.Fatal(err)
	}
	system, err := codec.Decode([]byte(`{"role":"system","content":"You maintain tidetable. Keep answers short."}`))
	if err != nil {
		t.Fatal(err)
	}
	s := sessions[0]
	s.Messages = append([]message.Message{system}, s.Messages...)
	return s
}

// breaker is a sound engine whose results are spoilt on the way out.
type breaker struct {
	core.ContextEngine
	ids     []string
	calls   int
	same    int
	last    int
	result  func(b *breaker, req core.AssembleRequest, res *core.AssembleResult) error
	compact func(res *core.CompactResult)
	ingest  func(b *breaker, req core.IngestRequest) core.IngestRequest
}

func (b *breaker) Ingest(ctx context.Context, req core.IngestRequest) (core.IngestResult, error) {
	if b.ingest != nil {
		req = b.ingest(b, req)
	}
	res, err := b.ContextEngine.Ingest(ctx, req)
	b.ids = append(b.ids, res.IDs...)
	return res, err
}

func (b *breaker) Assemble(ctx context.Context, req core.AssembleRequest) (core.AssembleResult, error) {
	res, err := b.ContextEngine.Assemble(ctx, req)
	if err != nil {
		return res, err
	}
	b.calls++
	if b.same++; len(b.ids) != b.last {
		b.same, b.last = 0, len(b.ids)
	}
	res.Messages = slices.Clone(res.Messages)
	if b.result != nil {
		if err := b.result(b, req, &res); err != nil {
			return core.AssembleResult{}, err
		}
	}
	return res, nil
}

func (b *breaker) Compact(ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
	res, err := b.ContextEngine.Compact(ctx, req)
	if err == nil && b.compact != nil {
		b.compact(&res)
	}
	return res, err
}

// find returns the first message of a role from an index on.
func find(msgs []message.Message, from int, role message.Role) int {
	for i := from; i < len(msgs); i++ {
		if msgs[i].Role == role && msgs[i].Raw != nil {
			return i
		}
	}
	return -1
}

// broken are engines that break one rule each.
var broken = []struct {
	name    string
	rule    experiment.Rule
	result  func(b *breaker, req core.AssembleRequest, res *core.AssembleResult) error
	compact func(res *core.CompactResult)
	ingest  func(b *breaker, req core.IngestRequest) core.IngestRequest
}{
	{name: "overfull", rule: experiment.RuleBudget, result: func(_ *breaker, req core.AssembleRequest, res *core.AssembleResult) error {
		res.SystemPromptAddition += strings.Repeat(" word", req.Budget)
		return nil
	}},
	{name: "result without call", rule: experiment.RulePairs, result: func(_ *breaker, _ core.AssembleRequest, res *core.AssembleResult) error {
		if i := find(res.Messages, 0, message.Tool); i > 0 {
			res.Messages = slices.Delete(res.Messages, i-1, i)
		}
		return nil
	}},
	{name: "call without result", rule: experiment.RulePairs, result: func(_ *breaker, _ core.AssembleRequest, res *core.AssembleResult) error {
		if i := find(res.Messages, 0, message.Tool); i > 0 {
			res.Messages = slices.Delete(res.Messages, i, i+1)
		}
		return nil
	}},
	{name: "swapped", rule: experiment.RuleOrder, result: func(_ *breaker, _ core.AssembleRequest, res *core.AssembleResult) error {
		if i := find(res.Messages, 0, message.User); i > 0 && i+1 < len(res.Messages) {
			m := res.Messages
			m[i], m[i+1] = m[i+1], m[i]
		}
		return nil
	}},
	{name: "shown twice", rule: experiment.RuleTwice, result: func(_ *breaker, _ core.AssembleRequest, res *core.AssembleResult) error {
		if i := find(res.Messages, 1, message.User); i > 0 {
			res.Messages = append(res.Messages, res.Messages[i])
		}
		return nil
	}},
	{name: "newest missing", rule: experiment.RuleNewest, result: func(_ *breaker, req core.AssembleRequest, res *core.AssembleResult) error {
		if n := len(res.Messages); req.Call == core.CallPrompt && n > 1 {
			res.Messages = res.Messages[:n-1]
		}
		return nil
	}},
	{name: "system message missing", rule: experiment.RuleSystem, result: func(_ *breaker, _ core.AssembleRequest, res *core.AssembleResult) error {
		res.Messages = res.Messages[1:]
		res.RecallAt = max(res.RecallAt-1, 0)
		return nil
	}},
	{name: "start moved silently", rule: experiment.RulePrefix, result: func(b *breaker, req core.AssembleRequest, res *core.AssembleResult) error {
		res.Epoch, res.Stepped = 1, false
		if req.Call == core.CallPrompt && len(res.Messages) > 6 && b.calls > 20 {
			res.Messages = slices.Delete(res.Messages, 1, 2)
			if res.RecallLen > 0 {
				res.RecallAt--
			}
		}
		return nil
	}},
	{name: "clock in the prompt", rule: experiment.RuleLoop, result: func(b *breaker, _ core.AssembleRequest, res *core.AssembleResult) error {
		now := message.New(message.User, "[call "+strings.Repeat("i", len(b.ids))+"]")
		res.Messages = slices.Insert(res.Messages, 1, now)
		if res.RecallLen > 0 {
			res.RecallAt++
		}
		return nil
	}},
	{name: "recall in front of history", rule: experiment.RuleRecall, result: func(_ *breaker, _ core.AssembleRequest, res *core.AssembleResult) error {
		if res.RecallLen == 1 && res.RecallAt > 1 {
			m := res.Messages[res.RecallAt]
			res.Messages = slices.Insert(slices.Delete(res.Messages, res.RecallAt, res.RecallAt+1), 1, m)
			res.RecallAt = 1
		}
		return nil
	}},
	{name: "differs when repeated", rule: experiment.RuleSame, result: func(b *breaker, _ core.AssembleRequest, res *core.AssembleResult) error {
		if b.same > 0 {
			res.Messages = append(res.Messages, message.New(message.User, "again"))
		}
		return nil
	}},
	{name: "gives up too early", rule: experiment.RuleBudgetError, result: func(b *breaker, req core.AssembleRequest, _ *core.AssembleResult) error {
		if b.calls == 3 {
			return &core.BudgetError{Budget: req.Budget, Needed: req.Budget + 1, Entry: "x"}
		}
		return nil
	}},
	{name: "changes what it stores", rule: experiment.RuleLost, ingest: func(b *breaker, req core.IngestRequest) core.IngestRequest {
		if len(b.ids) == 3 {
			req.Message = req.Message.WithParts([]message.Part{{Kind: message.Text, Text: "changed"}})
		}
		return req
	}},
	{name: "compacts to more", rule: experiment.RuleCompaction, compact: func(res *core.CompactResult) {
		res.Compacted, res.TokensAfter = true, res.TokensBefore+1
	}},
	{name: "compacts nothing, says nothing", rule: experiment.RuleCompaction, compact: func(res *core.CompactResult) {
		res.Compacted, res.Reason = false, ""
	}},
}

func TestBrokenEngines(t *testing.T) {
	count := counter(t)
	session := example(t)
	session.Messages = session.Messages[:90]
	for _, tt := range broken {
		t.Run(tt.name, func(t *testing.T) {
			good := hybridArm(count)
			arm := experiment.Arm{Name: tt.name, Open: func(ctx context.Context, host core.Host, id core.SessionID) (experiment.Subject, error) {
				s, err := good.Open(ctx, host, id)
				s.Engine = &breaker{ContextEngine: s.Engine, result: tt.result, compact: tt.compact, ingest: tt.ingest}
				return s, err
			}}
			rep, err := experiment.Replay(t.Context(), experiment.Spec{
				Session: session, Arm: arm, Budget: 2000, Counter: count, Options: experiment.Options{Sample: 4},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range rep.Violations {
				if v.Rule == tt.rule {
					return
				}
			}
			t.Errorf("rule %s was not found broken; found: %v", tt.rule, rep.Violations)
		})
	}
}

func TestLostEntry(t *testing.T) {
	count := counter(t)
	good := hybridArm(count)
	arm := experiment.Arm{Name: "erases", Open: func(ctx context.Context, host core.Host, id core.SessionID) (experiment.Subject, error) {
		s, err := good.Open(ctx, host, id)
		b := &breaker{ContextEngine: s.Engine}
		b.result = func(b *breaker, _ core.AssembleRequest, _ *core.AssembleResult) error {
			if b.calls == 70 { // the entry has left the window long ago
				_, err := s.Store.Delete(ctx, id.Scope(), b.ids[4:5])
				return err
			}
			return nil
		}
		s.Engine = b
		return s, err
	}}
	rep, err := experiment.Replay(t.Context(), experiment.Spec{Session: example(t), Arm: arm, Budget: 2000, Counter: count})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Violations) != 1 || rep.Violations[0].Rule != experiment.RuleLost {
		t.Errorf("violations = %v, want one of rule %s", rep.Violations, experiment.RuleLost)
	}
}

func TestOwningEngineThatAsksTheHost(t *testing.T) {
	count := counter(t)
	good := hybridArm(count)
	arm := experiment.Arm{Name: "asks", Open: func(ctx context.Context, host core.Host, id core.SessionID) (experiment.Subject, error) {
		s, err := good.Open(ctx, host, id)
		s.Engine = &breaker{ContextEngine: s.Engine, compact: func(*core.CompactResult) {
			if _, err := host.Compact(ctx, core.CompactRequest{Session: id}); err != nil {
				t.Error(err)
			}
		}}
		return s, err
	}}
	rep, err := experiment.Replay(t.Context(), experiment.Spec{Session: example(t), Arm: arm, Budget: 2000, Counter: count})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Violations) == 0 || rep.Violations[0].Rule != experiment.RuleCompaction {
		t.Errorf("violations = %v, want those of rule %s", rep.Violations, experiment.RuleCompaction)
	}
}
