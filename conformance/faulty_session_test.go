package conformance_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

func faultyRecall(sound func(setup) []string) []fault {
	recalling := setup{compactor: "archive", retriever: words, change: func(c *engine.Config) { c.Recall.Gate = false }}
	plain := setup{compactor: "archive"}
	leak := func(from func(core.SessionID) core.SessionID) func(*brokenEngine) {
		return func(b *brokenEngine) {
			var mu sync.Mutex
			newest := map[core.SessionID]message.Message{}
			b.ingest = func(ctx context.Context, req core.IngestRequest) (core.IngestResult, error) {
				res, err := b.Engine.Ingest(ctx, req)
				mu.Lock()
				defer mu.Unlock()
				if err == nil && !req.Heartbeat {
					newest[req.Session] = message.New(message.System, req.Message.Text())
				}
				return res, err
			}
			b.result = func(req core.AssembleRequest, res *core.AssembleResult) error {
				mu.Lock()
				defer mu.Unlock()
				if m, ok := newest[from(req.Session)]; ok {
					insert(res, 0, m)
				}
				return nil
			}
		}
	}
	block := func(f func(*core.AssembleResult)) func(*brokenEngine) {
		return func(b *brokenEngine) {
			b.result = func(_ core.AssembleRequest, res *core.AssembleResult) error {
				if res.RecallLen == 1 {
					f(res)
				}
				return nil
			}
		}
	}
	return []fault{
		engineFault("recall in front", recalling, sound, block(func(res *core.AssembleResult) {
			m := res.Messages[res.RecallAt]
			remove(res, res.RecallAt)
			insert(res, 0, m)
			res.RecallAt = 0
		}), []string{"order.recall"}, changed...),
		engineFault("recall as it is", recalling, sound, block(func(res *core.AssembleResult) {
			m := &res.Messages[res.RecallAt]
			*m = message.New(message.User, strings.ReplaceAll(m.Text(), "\n> ", "\n")+"\n\nSystem: OPENED")
		}), []string{"recall.quoted"}, append(changed, "budget.*", "idempotent.*", "back.found")...),
		engineFault("recall not closed", recalling, sound, block(func(res *core.AssembleResult) {
			m := &res.Messages[res.RecallAt]
			*m = message.New(message.User, strings.TrimSuffix(m.Text(), "</recalled>"))
		}), []string{"recall.quoted"}, append(changed, "budget.*", "idempotent.*", "back.found")...),
		engineFault("recall closed and opened again", recalling, sound, block(func(res *core.AssembleResult) {
			m := &res.Messages[res.RecallAt]
			*m = message.New(message.User, m.Text()+"\n<recalled>\n</recalled>")
		}), []string{"recall.quoted"}, append(changed, "budget.*", "idempotent.*", "back.found")...),
		engineFault("recall without marks", recalling, sound, block(func(res *core.AssembleResult) {
			m := &res.Messages[res.RecallAt]
			*m = message.New(message.User, strings.ReplaceAll(m.Text(), "\n> ", "\n"))
		}), []string{"recall.quoted"}, append(changed, "budget.*", "idempotent.*", "back.found")...),
		engineFault("recall leaves with its turn", recalling, sound, func(b *brokenEngine) {
			b.result = func(_ core.AssembleRequest, res *core.AssembleResult) error {
				quotes := func(m message.Message) bool { return strings.HasPrefix(m.Text(), "<recalled>") }
				for i := find(res, 0, quotes); i >= 0; i = find(res, i+1, quotes) {
					if res.RecallLen == 0 || i != res.RecallAt {
						remove(res, i)
						i--
					}
				}
				return nil
			}
		}, []string{"cache.kept"}, append(changed, "roles.provider")...).with(400),
		engineFault("another agent's entry", plain, sound, leak(func(id core.SessionID) core.SessionID {
			if id.Agent == "agent-b" {
				return core.SessionID{Agent: "agent-a", Session: "main"}
			}
			return core.SessionID{Agent: "agent-b", Session: "main"}
		}), []string{"isolation.agent"}, append(changed, "budget.*", "order.echo")...),
		engineFault("another session's entry", plain, sound, leak(func(id core.SessionID) core.SessionID {
			if id.Session == "main" {
				return core.SessionID{Agent: id.Agent, Session: "other"}
			}
			return core.SessionID{Agent: id.Agent, Session: "main"}
		}), []string{"isolation.session"}, append(changed, "budget.*", "order.echo")...),
		engineFault("heartbeats shown", plain, sound, func(b *brokenEngine) {
			b.ingest = func(ctx context.Context, req core.IngestRequest) (core.IngestResult, error) {
				req.Heartbeat = false
				return b.Engine.Ingest(ctx, req)
			}
		}, []string{"hidden.heartbeat"}, changed...),
	}
}

func faultyWrites(sound func(setup) []string) []fault {
	plain := setup{compactor: "archive"}
	return []fault{
		{name: "forgets on restart", caught: []string{"lost.readback"}, kin: append(changed, "isolation.*", "back.*", "budget.*", "failure.*", "idempotent.*", "compact.*", "contract.*"),
			find: func(t *testing.T) []conformance.Finding {
				t.Helper()
				return conformance.ExamineEngine(t, conformance.Combination{Name: "forgets", Open: func(tb testing.TB, env conformance.Env) (core.ContextEngine, core.Store) {
					tb.Helper()
					env.Store = nil
					return plain.open(tb, env)
				}}, cheap, append(few(20), conformance.WithUntil("lost.readback"))...)
			}},
		engineFault("half a batch", plain, sound, func(b *brokenEngine) {
			b.batch = func(ctx context.Context, req core.IngestBatchRequest) (core.IngestResult, error) {
				res, err := b.Engine.IngestBatch(ctx, req)
				if err != nil {
					_, _ = b.Engine.Ingest(context.WithoutCancel(ctx), core.IngestRequest{Session: req.Session, Message: req.Messages[0]})
				}
				return res, err
			}
			b.commit = func(ctx context.Context, req core.CommitTurnRequest) (core.CommitTurnResult, error) {
				res, err := b.Engine.CommitTurn(ctx, req)
				if err != nil {
					_, _ = b.Engine.Ingest(context.WithoutCancel(ctx), core.IngestRequest{Session: req.Session, Message: req.Messages[0]})
				}
				return res, err
			}
		}, []string{"failure.no-half"}, append(changed, "failure.spurious", "hidden.*")...).with(100),
		engineFault("nothing stored, nothing said", plain, sound, func(b *brokenEngine) {
			var n atomic.Int32
			b.ingest = func(ctx context.Context, req core.IngestRequest) (core.IngestResult, error) {
				if n.Add(1)%3 == 0 && ctx.Err() == nil {
					return core.IngestResult{Ingested: 1, IDs: []string{"gone"}}, nil
				}
				return b.Engine.Ingest(ctx, req)
			}
		}, []string{"lost.readback"}, append(changed, "back.found", "pairs.torn", "idempotent.key", "isolation.*", "roles.provider")...),
		engineFault("failures swallowed", plain, sound, func(b *brokenEngine) {
			b.silent = true
			b.ingest = func(ctx context.Context, req core.IngestRequest) (core.IngestResult, error) {
				res, err := b.Engine.Ingest(ctx, req)
				if err != nil && ctx.Err() == nil {
					return res, nil
				}
				return res, err
			}
		}, []string{"failure.loud"}, append(changed, "back.found", "idempotent.*", "lost.*", "twice.*", "failure.*")...),
		engineFault("keys ignored", plain, sound, func(b *brokenEngine) {
			b.ingest = func(ctx context.Context, req core.IngestRequest) (core.IngestResult, error) {
				req.Message.Key, req.Message.ID = "", ""
				return b.Engine.Ingest(ctx, req)
			}
		}, []string{"idempotent.key"}, append(changed, "twice.*")...),
		engineFault("turns committed anew", plain, sound, func(b *brokenEngine) {
			b.commit = func(ctx context.Context, req core.CommitTurnRequest) (core.CommitTurnResult, error) {
				res, err := b.Engine.CommitTurn(ctx, req)
				res.Status = core.Committed
				return res, err
			}
		}, []string{"idempotent.commit"}).with(200),
		engineFault("messages stored twice", plain, sound, func(b *brokenEngine) {
			b.ingest = func(ctx context.Context, req core.IngestRequest) (core.IngestResult, error) {
				res, err := b.Engine.Ingest(ctx, req)
				if err == nil && res.Ingested == 1 {
					req.Message.Key, req.Message.ID = "", ""
					_, _ = b.Engine.Ingest(ctx, req)
				}
				return res, err
			}
		}, []string{"twice.stored"}, append(changed, "isolation.back", "twice.*", "budget.*", "erase.*", "lost.verbatim")...),
		engineFault("cancellation ignored", plain, sound, func(b *brokenEngine) { b.detached = true }, []string{"cancel.stops"}, "cache.*"),
		engineFault("fails now and then", plain, sound, func(b *brokenEngine) {
			var n atomic.Int64
			b.result = func(core.AssembleRequest, *core.AssembleResult) error {
				if n.Add(1)%5 == 0 {
					return errors.New("broken: not today")
				}
				return nil
			}
		}, []string{"failure.spurious"}, "idempotent.*", "cache.*"),
	}
}

func faultyCompactions(sound func(setup) []string) []fault {
	plain := setup{compactor: "archive"}
	delegating := setup{compactor: "delegate"}
	instead := func(f func(b *brokenEngine, ctx context.Context, req core.CompactRequest) (core.CompactResult, error)) func(*brokenEngine) {
		return func(b *brokenEngine) {
			b.compact = func(ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
				if err := ctx.Err(); err != nil {
					return core.CompactResult{}, err
				}
				return f(b, ctx, req)
			}
		}
	}
	return []fault{
		engineFault("runtime asked twice", delegating, sound, instead(func(b *brokenEngine, ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
			if _, err := b.Engine.Compact(ctx, req); err != nil {
				return core.CompactResult{}, err
			}
			return b.Engine.Compact(ctx, req)
		}), []string{"compact.exactly-once"}, changed...),
		engineFault("runtime's result rewritten", delegating, sound, instead(func(b *brokenEngine, ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
			res, err := b.Engine.Compact(ctx, req)
			res.Summary += "!"
			return res, err
		}), []string{"compact.passed-through"}),
		engineFault("owner asks the runtime", plain, sound, instead(func(b *brokenEngine, ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
			if _, err := b.env.Host.Compact(ctx, req); err != nil && ctx.Err() != nil {
				return core.CompactResult{}, err
			}
			return b.Engine.Compact(ctx, req)
		}), []string{"compact.owner"}, append(changed, "lost.*")...),
		engineFault("silent no-op", plain, sound, instead(func(*brokenEngine, context.Context, core.CompactRequest) (core.CompactResult, error) {
			return core.CompactResult{OK: true}, nil
		}), []string{"compact.silent"}, "compact.progress"),
		engineFault("no progress", plain, sound, instead(func(*brokenEngine, context.Context, core.CompactRequest) (core.CompactResult, error) {
			return core.CompactResult{OK: true, Compacted: true, TokensBefore: 900, TokensAfter: 900}, nil
		}), []string{"compact.progress"}, "compact.converges"),
		engineFault("progress that never ends", plain, sound, instead(func(*brokenEngine, context.Context, core.CompactRequest) (core.CompactResult, error) {
			return core.CompactResult{OK: true, Compacted: true, TokensBefore: 900, TokensAfter: 800}, nil
		}), []string{"compact.converges"}),
		engineFault("fails with its model", plain, sound, instead(func(b *brokenEngine, ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
			brief, cancel := context.WithTimeout(ctx, b.env.Deadline)
			defer cancel()
			if _, err := b.env.Model.Complete(brief, core.CompletionRequest{Prompt: "summarise"}); err != nil && ctx.Err() == nil {
				return core.CompactResult{}, err
			}
			return b.Engine.Compact(ctx, req)
		}), []string{"compact.fallback"}),
	}
}

// TestRetrieverWords shows that the retriever the faults are made of is sound.
func TestRetrieverWords(t *testing.T) {
	t.Parallel()
	conformance.TestRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return &wordRetriever{}, memory.New() }, overAsker(func(*asker) {}))
}

// TestStoreSearcher shows that the searcher the faults are made of is sound.
func TestStoreSearcher(t *testing.T) {
	t.Parallel()
	conformance.TestStore(t, func(testing.TB) core.Store { return &scanSearcher{Store: memory.New()} },
		conformance.WithClaims("search", "isolation.search", "deterministic.search", "cancel.search"))
}
