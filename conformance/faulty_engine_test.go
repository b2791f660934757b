package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// brokenEngine is an engine with one promise broken.
type brokenEngine struct {
	*engine.Engine
	env      conformance.Env
	request  func(*core.AssembleRequest)
	result   func(core.AssembleRequest, *core.AssembleResult) error
	ingest   func(context.Context, core.IngestRequest) (core.IngestResult, error)
	batch    func(context.Context, core.IngestBatchRequest) (core.IngestResult, error)
	commit   func(context.Context, core.CommitTurnRequest) (core.CommitTurnResult, error)
	compact  func(context.Context, core.CompactRequest) (core.CompactResult, error)
	forget   func(context.Context, engine.ForgetRequest) (engine.Receipt, error)
	search   func(context.Context, engine.SearchRequest) (engine.SearchResult, error)
	expand   func(*engine.ExpandResult)
	detached bool
	// silent engines report no problems.
	silent bool
}

func (b *brokenEngine) Forget(ctx context.Context, req engine.ForgetRequest) (engine.Receipt, error) {
	if b.forget != nil {
		return b.forget(ctx, req)
	}
	return b.Engine.Forget(ctx, req)
}

func (b *brokenEngine) Search(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
	if b.search != nil {
		return b.search(ctx, req)
	}
	return b.Engine.Search(ctx, req)
}

func (b *brokenEngine) Expand(ctx context.Context, req engine.ExpandRequest) (engine.ExpandResult, error) {
	res, err := b.Engine.Expand(ctx, req)
	if b.expand != nil && err == nil {
		b.expand(&res)
	}
	return res, err
}

func (b *brokenEngine) Info() core.Info {
	info := b.Engine.Info()
	if b.silent {
		info.Health = nil
	}
	return info
}

func (b *brokenEngine) Assemble(ctx context.Context, req core.AssembleRequest) (core.AssembleResult, error) {
	if b.detached {
		ctx = context.WithoutCancel(ctx)
	}
	if b.request != nil {
		b.request(&req)
	}
	res, err := b.Engine.Assemble(ctx, req)
	if err != nil || b.result == nil || res.Degraded != "" {
		return res, err
	}
	res.Messages = slices.Clone(res.Messages)
	res.Choices = slices.Clone(res.Choices)
	return res, b.result(req, &res)
}

func (b *brokenEngine) Ingest(ctx context.Context, req core.IngestRequest) (core.IngestResult, error) {
	if b.ingest != nil {
		return b.ingest(ctx, req)
	}
	return b.Engine.Ingest(ctx, req)
}

func (b *brokenEngine) IngestBatch(ctx context.Context, req core.IngestBatchRequest) (core.IngestResult, error) {
	if b.batch != nil {
		return b.batch(ctx, req)
	}
	return b.Engine.IngestBatch(ctx, req)
}

func (b *brokenEngine) CommitTurn(ctx context.Context, req core.CommitTurnRequest) (core.CommitTurnResult, error) {
	if b.commit != nil {
		return b.commit(ctx, req)
	}
	return b.Engine.CommitTurn(ctx, req)
}

func (b *brokenEngine) Compact(ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
	if b.compact != nil {
		return b.compact(ctx, req)
	}
	return b.Engine.Compact(ctx, req)
}

// insert puts a message into a prompt and moves everything that points behind it.
func insert(res *core.AssembleResult, at int, m message.Message) {
	res.Messages = slices.Insert(res.Messages, at, m)
	for i := range res.Choices {
		if res.Choices[i].Message >= at {
			res.Choices[i].Message++
		}
	}
	if res.RecallLen > 0 && res.RecallAt >= at {
		res.RecallAt++
	}
}

// remove takes a message out of a prompt.
func remove(res *core.AssembleResult, at int) {
	res.Messages = slices.Delete(res.Messages, at, at+1)
	res.Choices = slices.DeleteFunc(res.Choices, func(c window.Choice) bool { return c.Message == at })
	for i := range res.Choices {
		if res.Choices[i].Message > at {
			res.Choices[i].Message--
		}
	}
	if res.RecallLen > 0 && res.RecallAt > at {
		res.RecallAt--
	}
}

// find returns the index of the first message from i on for which is holds, or -1.
func find(res *core.AssembleResult, i int, is func(message.Message) bool) int {
	for ; i < len(res.Messages); i++ {
		if is(res.Messages[i]) {
			return i
		}
	}
	return -1
}

func ordinary(m message.Message) bool {
	return m.Role == message.User && m.Raw != nil && !m.Edited && len(m.Text()) > 4
}

// itself are the checks of what an engine says of itself: whoever changes a prompt behind its back makes that wrong.
var itself = []string{"contract.*", "choices.*", "budget.reckoned", "budget.authority", "cache.epoch", "failure.named"}

// engineFault makes a fault of a change to an engine made of s. What the sound engine is found guilty of says nothing about the fault.
func engineFault(name string, s setup, sound func(setup) []string, change func(*brokenEngine), caught []string, kin ...string) fault {
	f := fault{name: name, caught: caught, kin: append(kin, itself...)}
	f.examine = func(t *testing.T, cases int) []conformance.Finding {
		t.Helper()
		known := sound(s)
		found := conformance.ExamineEngine(t, conformance.Combination{Name: name, Open: func(tb testing.TB, env conformance.Env) (core.ContextEngine, core.Store) {
			tb.Helper()
			opened, store := s.open(tb, env)
			e, ok := opened.(*engine.Engine)
			if !ok {
				tb.Fatalf("engine is a %T", opened)
			}
			b := &brokenEngine{Engine: e, env: env}
			change(b)
			return b, store
		}}, cheap, append(few(cases), conformance.WithUntil(caught...), telling(caught, itself))...)
		return slices.DeleteFunc(found, func(f conformance.Finding) bool {
			return slices.Contains(known, f.ID()) && !slices.Contains(caught, f.ID())
		})
	}
	return f.with(30)
}

// soundness examines each setup once.
func soundness(t *testing.T) func(setup) []string {
	t.Helper()
	var mu sync.Mutex
	cache := map[string][]string{}
	return func(s setup) []string {
		key := fmt.Sprint(s.compactor, s.retriever != nil)
		mu.Lock()
		defer mu.Unlock()
		if ids, ok := cache[key]; ok {
			return ids
		}
		ids := []string{}
		for _, f := range conformance.ExamineEngine(t, conformance.Combination{Name: "sound", Open: s.open}, cheap, few(40)...) {
			ids = append(ids, f.ID())
		}
		cache[key] = ids
		if len(ids) > 0 {
			t.Logf("the sound engine %s is reported by %q", key, ids)
		}
		return ids
	}
}

func faultyEngines(t *testing.T) []fault {
	t.Helper()
	sound := soundness(t)
	return slices.Concat(faultyPrompts(sound), faultyRecall(sound), faultyWrites(sound), faultyCompactions(sound), faultyHeads(sound))
}

// changed are the checks that notice any change of a prompt that the engine does not know of.
var changed = []string{"idempotent.own-output", "twice.stored", "cache.*", "order.tail", "lost.readback", "order.chronological", "lost.shown", "twice.entry", "head.*"}

func faultyPrompts(sound func(setup) []string) []fault {
	plain := setup{compactor: "archive"}
	result := func(f func(core.AssembleRequest, *core.AssembleResult)) func(*brokenEngine) {
		return func(b *brokenEngine) {
			b.result = func(req core.AssembleRequest, res *core.AssembleResult) error { f(req, res); return nil }
		}
	}
	return []fault{
		engineFault("overfull prompt", plain, sound, result(func(req core.AssembleRequest, res *core.AssembleResult) {
			if req.Transcript == nil && req.Budget < 2000 {
				insert(res, 0, message.New(message.System, strings.Repeat("careful ", req.Budget)))
			}
		}), []string{"budget.recount"}, append(changed, "budget.*", "failure.*", "compact.*")...),
		engineFault("estimate of nothing", plain, sound, result(func(_ core.AssembleRequest, res *core.AssembleResult) { res.EstimatedTokens = 0 }),
			[]string{"budget.estimate"}),
		engineFault("refuses what fits", plain, sound, func(b *brokenEngine) {
			b.result = func(req core.AssembleRequest, _ *core.AssembleResult) error {
				return &core.BudgetError{Budget: req.Budget, Needed: req.Budget + 1, Entry: "x"}
			}
		}, []string{"budget.refused"}),
		engineFault("an entry dropped", plain, sound, result(func(_ core.AssembleRequest, res *core.AssembleResult) {
			if i := find(res, 0, ordinary); i >= 0 && i < len(res.Messages)-1 {
				remove(res, i)
			}
		}), []string{"lost.shown"}, append(changed, "roles.provider")...),
		engineFault("newest message dropped", plain, sound, result(func(_ core.AssembleRequest, res *core.AssembleResult) {
			if n := len(res.Messages); n > 0 {
				remove(res, n-1)
			}
		}), []string{"order.tail"}, append(changed, "pairs.torn", "idempotent.repeat", "back.found", "isolation.back", "erase.stored")...),
		engineFault("a pair torn", plain, sound, result(func(_ core.AssembleRequest, res *core.AssembleResult) {
			if i := find(res, 0, message.Message.HasResults); i >= 0 {
				remove(res, i)
			}
		}), []string{"pairs.torn"}, append(changed, "roles.provider")...),
		engineFault("current turn echoed", plain, sound, result(func(req core.AssembleRequest, res *core.AssembleResult) {
			if req.Prompt != "" {
				insert(res, len(res.Messages), message.New(message.User, req.Prompt))
			}
		}), []string{"order.echo"}, append(changed, "budget.*", "idempotent.*", "hidden.*", "erase.*", "isolation.back")...),
		engineFault("an entry twice", plain, sound, result(func(_ core.AssembleRequest, res *core.AssembleResult) {
			if i := find(res, 0, ordinary); i >= 0 {
				insert(res, i, res.Messages[i])
			}
		}), []string{"twice.entry"}, append(changed, "budget.*", "compact.*")...),
		engineFault("two entries swapped", plain, sound, result(func(_ core.AssembleRequest, res *core.AssembleResult) {
			i := find(res, 0, ordinary)
			if i < 0 {
				return
			}
			if j := find(res, i+1, ordinary); j >= 0 {
				res.Messages[i], res.Messages[j] = res.Messages[j], res.Messages[i]
			}
		}), []string{"order.chronological"}, append(changed, "roles.provider")...),
		engineFault("start follows the budget", plain, sound, result(func(req core.AssembleRequest, res *core.AssembleResult) {
			for range req.Budget % 4 {
				if i := find(res, 0, ordinary); i == 0 && len(res.Messages) > 1 {
					remove(res, 0)
				}
			}
		}), []string{"cache.prefix"}, append(changed, "roles.provider")...),
		engineFault("a tool loop starts anew", plain, sound, result(func(req core.AssembleRequest, res *core.AssembleResult) {
			if req.Call == core.CallLoop && len(res.Messages) > 0 && req.Transcript == nil {
				insert(res, 0, message.New(message.System, "continue"))
			}
		}), []string{"cache.loop"}, append(changed, "budget.*")...),
		engineFault("addition with a counter", plain, sound, func(b *brokenEngine) {
			var n atomic.Int32
			b.result = func(_ core.AssembleRequest, res *core.AssembleResult) error {
				res.SystemPromptAddition = strings.Repeat("!", int(n.Add(1))%5)
				return nil
			}
		}, []string{"cache.addition"}, "idempotent.repeat", "budget.*"),
		engineFault("addition from the start", plain, sound, result(func(_ core.AssembleRequest, res *core.AssembleResult) {
			if res.SystemPromptAddition == "" {
				res.SystemPromptAddition = engine.SystemPromptAddition
			}
		}), []string{"cache.addition"}, "budget.*"),
		engineFault("addition with every other step", plain, sound, func(b *brokenEngine) {
			var n atomic.Int32
			b.result = func(_ core.AssembleRequest, res *core.AssembleResult) error {
				if res.Stepped && n.Add(1)%2 == 0 || !res.Stepped && n.Load()%2 == 0 {
					res.SystemPromptAddition = ""
				}
				return nil
			}
		}, []string{"cache.addition"}, "idempotent.repeat", "idempotent.own-output"),
		engineFault("forgets nothing", plain, sound, func(b *brokenEngine) {
			b.forget = func(ctx context.Context, req engine.ForgetRequest) (engine.Receipt, error) {
				return engine.Receipt{Entries: len(req.Entries)}, ctx.Err()
			}
		}, []string{"erase.shown", "erase.stored"}, append(changed, "lost.verbatim", "isolation.back")...),
		engineFault("forgets so well that the host brings it back", plain, sound, func(b *brokenEngine) {
			b.forget = func(ctx context.Context, req engine.ForgetRequest) (engine.Receipt, error) {
				rec, err := b.Engine.Forget(ctx, req)
				if err == nil {
					_, err = b.Engine.Forget(ctx, engine.ForgetRequest{Scope: req.Scope, Purge: true})
				}
				return rec, err
			}
		}, []string{"erase.shown"}, append(changed, "erase.stored", "failure.*", "idempotent.*", "isolation.back", "back.*", "lost.verbatim")...).with(120),
		engineFault("searches what the window shows alone", plain, sound, func(b *brokenEngine) {
			b.search = func(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
				res, err := b.Engine.Search(ctx, req)
				res.Found = slices.DeleteFunc(res.Found, func(f engine.Found) bool { return f.Seq == 0 })
				return res, err
			}
		}, []string{"back.found"}, "head.kept"),
		engineFault("expands the beginning alone", plain, sound, func(b *brokenEngine) {
			b.expand = func(res *engine.ExpandResult) {
				if len(res.Found) > 0 && len(res.Found[0].Excerpt) > 12 {
					res.Found[0].Excerpt, res.Next = res.Found[0].Excerpt[:12], 0
				}
			}
		}, []string{"back.found"}, "head.kept"),
		engineFault("searches everything there is", plain, sound, func(b *brokenEngine) {
			b.search = func(ctx context.Context, req engine.SearchRequest) (engine.SearchResult, error) {
				res, err := b.Engine.Search(ctx, req)
				for _, agent := range []string{"agent-a", "agent-b"} {
					for entry, err := range core.All(ctx, b.Store(), core.Scope{Agent: agent}, false) {
						if err == nil && strings.Contains(entry.Text(), req.Query) {
							res.Text += entry.Text()
						}
					}
				}
				return res, err
			}
		}, []string{"isolation.back"}, "back.found", "head.kept"),
		engineFault("bytes changed", plain, sound, result(func(_ core.AssembleRequest, res *core.AssembleResult) {
			if i := find(res, 0, ordinary); i >= 0 {
				res.Messages[i].Raw = append(slices.Clone(res.Messages[i].Raw), ' ')
			}
		}), []string{"lost.verbatim"}, changed...),
		engineFault("assistant twice in a row", plain, sound, result(func(req core.AssembleRequest, res *core.AssembleResult) {
			if i := find(res, 0, func(m message.Message) bool { return m.Role == message.Assistant }); i >= 0 && req.Settings.Provider != "" {
				insert(res, i, message.New(message.Assistant, "well"))
			}
		}), []string{"roles.provider"}, append(changed, "budget.*")...),
		engineFault("texts by chance", plain, sound, func(b *brokenEngine) {
			id := instances.Add(1)
			b.result = func(_ core.AssembleRequest, res *core.AssembleResult) error {
				res.SystemPromptAddition = fmt.Sprintf("run %d", id)
				return nil
			}
		}, []string{"deterministic.same-bytes"}, "cache.addition", "budget.estimate"),
		engineFault("another answer the second time", plain, sound, func(b *brokenEngine) {
			last := ""
			var mu sync.Mutex
			b.result = func(req core.AssembleRequest, res *core.AssembleResult) error {
				mu.Lock()
				defer mu.Unlock()
				key := fmt.Sprintf("%+v", req)
				if key == last && len(res.Messages) > 0 {
					insert(res, 0, message.New(message.System, "again"))
				}
				last = key
				return nil
			}
		}, []string{"idempotent.repeat"}, append(changed, "deterministic.same-bytes")...),
		engineFault("own output taken for news", plain, sound, result(func(_ core.AssembleRequest, res *core.AssembleResult) {
			if n := len(res.Messages); n > 0 {
				insert(res, 0, message.New(message.System, "note"))
			}
		}), []string{"idempotent.own-output"}, append(changed, "budget.*")...),
	}
}

// cheap is a counter that is quick: what it counts does not matter to the faults, as long as names of roles cost what they cost in o200k.
func cheap(s string) int {
	switch s {
	case "system", "user", "assistant", "tool":
		return 1
	}
	return (len(s) + 3) / 4
}

// instances counts engines made by faults that differ from run to run.
var instances atomic.Int64
