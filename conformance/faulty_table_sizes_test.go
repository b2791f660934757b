package conformance_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// cut is the beginning of a text, or of a list.
func cut(text string, n int) string { return text[:min(n, len(text))] }

func first[T any](list []T, n int) []T { return list[:min(n, len(list))] }

func last[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// tableSizes are engines that keep a part of what is long, or of what is many.
func tableSizes() []broken {
	var out []broken
	before := func(id, name string, f func(req any)) {
		out = append(out, caughtBy(id, name, recalling(nil), func(w *wrongEngine) { w.before = func(_ string, req any) { f(req) } }))
	}
	for id, change := range map[string]func(req any, all func([]message.Message) []message.Message){
		"contract.ingest": func(req any, all func([]message.Message) []message.Message) {
			if r, ok := req.(*core.IngestRequest); ok {
				r.Message = all([]message.Message{r.Message})[0]
			}
		},
		"contract.batch": func(req any, all func([]message.Message) []message.Message) {
			if r, ok := req.(*core.IngestBatchRequest); ok {
				r.Messages = all(r.Messages)
			}
		},
		"contract.commit": func(req any, all func([]message.Message) []message.Message) {
			if r, ok := req.(*core.CommitTurnRequest); ok {
				r.Messages = all(r.Messages)
			}
		},
		"contract.after-turn": func(req any, all func([]message.Message) []message.Message) {
			if r, ok := req.(*core.AfterTurnRequest); ok {
				r.Messages = all(r.Messages)
			}
		},
		"contract.bootstrap": func(req any, all func([]message.Message) []message.Message) {
			if r, ok := req.(*core.BootstrapRequest); ok && r.Transcript != nil {
				t := *r.Transcript
				t.Messages, r.Transcript = all(t.Messages), &t
			}
		},
	} {
		each := func(name string, f func(*message.Message)) {
			before(id, name, func(req any) {
				change(req, func(list []message.Message) []message.Message { return changedMessages(list, f) })
			})
		}
		for _, n := range []int{128 << 10, 20 << 10} {
			each(fmt.Sprintf("texts of more than %d bytes are cut", n), func(m *message.Message) {
				m.Parts = slices.Clone(m.Parts)
				for i := range m.Parts {
					m.Parts[i].Text = cut(m.Parts[i].Text, n)
				}
			})
		}
		for _, n := range []int{64, 16, 5} {
			each(fmt.Sprintf("of more than %d parts the rest is lost", n), func(m *message.Message) { m.Parts = first(m.Parts, n) })
		}
		if id == "contract.ingest" {
			continue
		}
		for _, n := range []int{100, 20} {
			before(id, fmt.Sprintf("of more than %d messages the last are stored", n), func(req any) {
				change(req, func(list []message.Message) []message.Message { return last(list, n) })
			})
		}
	}
	for _, n := range []int{100, 20, 5} {
		out = append(out, caughtBy("contract.forget", fmt.Sprintf("of more than %d ids the rest stays", n), recalling(nil), func(w *wrongEngine) {
			w.forget = func(ctx context.Context, req engine.ForgetRequest) (engine.Receipt, error) {
				few := req
				few.Entries = first(req.Entries, n)
				rec, err := w.Engine.Forget(ctx, few)
				rec.Entries += len(req.Entries) - len(few.Entries)
				rec.Request = req
				return rec, err
			}
		}))
	}
	for _, n := range []int{50, 20} {
		out = append(out, caughtBy("contract.forget", fmt.Sprintf("the newest %d receipts", n), recalling(nil), func(w *wrongEngine) {
			w.receipts = func(ctx context.Context, agent string) ([]engine.Receipt, error) {
				all, err := w.Engine.Receipts(ctx, agent)
				return last(all, n), err
			}
		}))
	}
	for _, n := range []int{100, 50} {
		out = append(out, caughtBy("contract.score", fmt.Sprintf("the newest %d outcomes", n), recalling(nil), func(w *wrongEngine) {
			w.outcomes = func(ctx context.Context, agent string) ([]engine.Outcome, error) {
				all, err := w.Engine.Outcomes(ctx, agent)
				return last(all, n), err
			}
		}))
	}
	return slices.Concat(out, tableLongWords(), tableFields())
}

// tableLongWords are engines that keep the beginning of what somebody says to them.
func tableLongWords() []broken {
	var out []broken
	for id, c := range map[string]struct {
		what  string
		bytes []int
		cut   func(req any, n int)
	}{
		"contract.ended": {"a result", []int{4000, 1000, 200}, func(req any, n int) {
			if r, ok := req.(*core.SubagentEnded); ok {
				r.Result = cut(r.Result, n)
			}
		}},
		"contract.compact": {"wishes", []int{1000, 100}, func(req any, n int) {
			if r, ok := req.(*core.CompactRequest); ok {
				r.Instructions = cut(r.Instructions, n)
			}
		}},
		"contract.forget": {"a reason", []int{1000, 100}, func(req any, n int) {
			if r, ok := req.(*engine.ForgetRequest); ok {
				r.Reason = cut(r.Reason, n)
			}
		}},
		"contract.found": {"a query", []int{500, 200, 100}, func(req any, n int) {
			if r, ok := req.(*engine.SearchRequest); ok {
				r.Query = cut(r.Query, n)
			}
		}},
		"contract.steered": {"a prompt", []int{500, 250, 50}, func(req any, n int) {
			if r, ok := req.(*core.AssembleRequest); ok {
				r.Prompt = cut(r.Prompt, n)
			}
		}},
		"contract.sections": {"a section", []int{4000, 1000}, func(req any, n int) {
			if r, ok := req.(*core.AssembleRequest); ok {
				r.Memory.Sections = slices.Clone(r.Memory.Sections)
				for i, s := range r.Memory.Sections {
					r.Memory.Sections[i] = cut(s, n)
				}
			}
		}},
	} {
		for _, n := range c.bytes {
			out = append(out, caughtBy(id, fmt.Sprintf("%s of more than %d bytes is cut", c.what, n), recalling(nil), func(w *wrongEngine) {
				w.before = func(_ string, req any) { c.cut(req, n) }
			}))
		}
	}
	delegate := setup{compactor: "delegate"}
	out = append(out, caughtBy("contract.compact", "wishes of more than 1000 bytes are cut before they are passed on", delegate, func(w *wrongEngine) {
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.CompactRequest); ok {
				r.Instructions = cut(r.Instructions, 1000)
			}
		}
	}), caughtBy("contract.sections", "sections without the white space around them", recalling(nil), func(w *wrongEngine) {
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.AssembleRequest); ok {
				r.Memory.Sections = slices.Clone(r.Memory.Sections)
				for i, s := range r.Memory.Sections {
					r.Memory.Sections[i] = strings.TrimSpace(s)
				}
			}
		}
	}), caughtBy("contract.ended", "results without the white space around them", recalling(nil), func(w *wrongEngine) {
		w.ended = func(ctx context.Context, req core.SubagentEnded) error {
			req.Result = strings.TrimSpace(req.Result)
			return w.Engine.OnSubagentEnded(ctx, req)
		}
	}))
	return out
}

// tableFields are engines that leave a field of an answer empty, or have one value for all.
func tableFields() []broken {
	var out []broken
	archive := recalling(nil)
	archive.compactor = "archive"
	after := func(id, name string, s setup, f func(res any)) {
		out = append(out, caughtBy(id, name, s, func(w *wrongEngine) { w.after = func(_ string, res any) { f(res) } }))
	}
	info := func(name string, f func(*core.Info)) {
		after("contract.commit", name, recalling(nil), func(res any) {
			if i, ok := res.(*core.Info); ok {
				f(i)
			}
		})
	}
	info("turns are stored once, and Info does not name it", func(i *core.Info) { i.TurnIdempotency = "" })
	info("the current turn is behind what is recalled, and Info does not name it", func(i *core.Info) { i.CurrentTurnFence = "" })
	summaries := func(name string, f func(*engine.SummaryInfo)) {
		after("contract.compact", name, archive, func(res any) {
			if d, ok := res.(*engine.DescribeResult); ok {
				for i := range d.Summaries {
					f(&d.Summaries[i])
				}
			}
		})
	}
	summaries("every summary is called one", func(s *engine.SummaryInfo) { s.Kind = "summary" })
	summaries("nobody says what a summary stands for", func(s *engine.SummaryInfo) { s.Of = nil })
	after("contract.back", "what is expanded is a message", recalling(nil), func(res any) {
		if r, ok := res.(*engine.ExpandResult); ok {
			for i := range r.Found {
				r.Found[i].Type = core.TypeMessage
			}
		}
	})
	out = append(out, caughtBy("contract.arm", "arms without the white space around them", recalling(nil), func(w *wrongEngine) {
		w.arm = func(ctx context.Context, id core.SessionID, choose func(string) string) (string, error) {
			return w.Engine.Arm(ctx, id, func(recorded string) string { return strings.TrimSpace(choose(recorded)) })
		}
	}), caughtBy("contract.commit", "a timer's turn has another key each time", recalling(nil), func(w *wrongEngine) {
		n := 0
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.CommitTurnRequest); ok && r.Heartbeat {
				n++
				r.AdvancementKey = fmt.Sprintf("%s %d", r.AdvancementKey, n)
			}
		}
	}))
	// What an engine of this module hands to a compactor has nothing hidden in it, so that the compactor alone cannot do this.
	return append(out, caughtBy("contract.compact", "what a timer said is compacted as a message", recalling(nil), func(w *wrongEngine) {
		w.before = func(_ string, req any) {
			if r, ok := req.(*core.IngestRequest); ok {
				r.Heartbeat = false
			}
		}
	}))
}

// timersToo compacts what a timer said as if somebody had said it.
func timersToo(ctx context.Context, c core.Compaction, sound soundCompact) (core.Patch, error) {
	c.Entries = slices.Clone(c.Entries)
	for i := range c.Entries {
		if c.Entries[i].Type == core.TypeHeartbeat {
			c.Entries[i].Type = core.TypeMessage
		}
	}
	return sound(ctx, c)
}

// tableHiddenParts are compactors and retrievers whose fault shows with what is long, hidden, or changed by somebody else.
func tableHiddenParts() []broken {
	var out []broken
	for _, n := range []int{200, 20} {
		out = append(out, brokenCompactorOf("stubs", "archive", fmt.Sprintf("arguments of more than %d bytes are masked", n), func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
			p, err := s(ctx, c)
			for i, e := range c.Entries[:len(c.Entries)-c.Protected] {
				for j, part := range e.Message.Parts {
					replaced := slices.ContainsFunc(p.Replace, func(r core.Replacement) bool { return slices.Contains(r.Entries, e.ID) })
					if part.Kind == message.ToolCall && len(part.Args) > n && !replaced {
						p.Stubs = maps.Clone(p.Stubs)
						if p.Stubs == nil {
							p.Stubs = map[string]window.Stub{}
						}
						p.Stubs[e.ID] = window.Stub{Kind: window.Masked, Texts: map[int]string{j: "masked"}, Tokens: c.Cost[i] / 2}
					}
				}
			}
			return p, err
		}, conformance.WithClaims("patch.text")))
	}
	out = append(out, brokenCompactorOf("hidden", "summary", "the model is told what timers said", func(ctx context.Context, c core.Compaction, _ *conformance.Model, s soundCompact) (core.Patch, error) {
		return timersToo(ctx, c, s)
	}, conformance.WithClaims("patch.text")))
	return append(out, broken{class: "retriever: remembers", name: "says that it reads the store", find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
		t.Helper()
		return early(5, only, func(opts ...conformance.Option) []conformance.Finding {
			return conformance.ExamineRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return &claims{}, memory.New() }, opts...)
		}, conformance.WithClaims("retrieve.content"))
	}})
}

// claims is a listener that says that it reads in the store what it remembers.
type claims struct{ listener }

func (*claims) ReadsStore() bool { return true }
