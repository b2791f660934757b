package conformance_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// caughtOver is a sound engine over a store that changes what the engine does, and that the named check alone must catch: so are engines made that are wrong inside.
func caughtOver(id, name string, s setup, change func(*brokenStore)) broken {
	return broken{class: "engine: " + id, name: name, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
		t.Helper()
		open := func(tb testing.TB, env conformance.Env) (core.ContextEngine, core.Store) {
			tb.Helper()
			store := env.Store
			if store == nil {
				b := &brokenStore{Store: memory.New()}
				change(b)
				store = b
			}
			return s.over(tb, env, store), store
		}
		return conformance.ExamineEngine(t, conformance.Combination{Name: name, Open: open}, cheap, append([]conformance.Option{
			conformance.WithExactly(40, 20260301), conformance.WithoutShrinking(), conformance.WithFirst(), conformance.WithPatience(time.Second), conformance.WithClaims(id),
		}, only...)...)
	}}
}

// tableSame are engines that take messages for one another, or for said at another time, or in another turn.
func tableSame() []broken {
	var out []broken
	out = append(out, caughtBy("contract.same", "a call with a key stores a text once", recalling(nil), func(w *wrongEngine) {
		w.batch = func(ctx context.Context, req core.IngestBatchRequest) (core.IngestResult, error) {
			if req.IdempotencyKey == "" {
				return w.Engine.IngestBatch(ctx, req)
			}
			var list []message.Message
			var at []int
			for _, m := range req.Messages {
				same := slices.IndexFunc(list, func(o message.Message) bool { return message.Fingerprint(o) == message.Fingerprint(m) })
				if same < 0 {
					list, same = append(list, m), len(list)
				}
				at = append(at, same)
			}
			req.Messages = list
			res, err := w.Engine.IngestBatch(ctx, req)
			if err == nil {
				ids := make([]string, len(at))
				for i, n := range at {
					ids[i] = res.IDs[n]
				}
				res.IDs, res.Duplicates = ids, len(at)-res.Ingested
			}
			return res, err
		}
	}))
	turn := func(name string, same func(stored, m message.Message) bool) {
		out = append(out, caughtBy("contract.same", name, recalling(nil), func(w *wrongEngine) {
			w.turn = func(ctx context.Context, req core.AfterTurnRequest) error {
				list := slices.Clone(req.Messages[:req.PrePrompt])
				for _, m := range req.Messages[req.PrePrompt:] {
					known := false
					for e, err := range core.All(ctx, w.Store(), req.Session.Scope(), false) {
						known = known || err == nil && e.Text() == m.Text() && same(e.Message, m)
					}
					if !known {
						list = append(list, m)
					}
				}
				req.Messages = list
				return w.Engine.AfterTurn(ctx, req)
			}
		}))
	}
	turn("the time counts before ids", func(a, b message.Message) bool { return a.Key == "" && !a.Time.IsZero() && a.Time.Equal(b.Time) })
	turn("the time counts before keys", func(a, b message.Message) bool { return a.ID == "" && !a.Time.IsZero() && a.Time.Equal(b.Time) })
	when := func(name string, change func(m *message.Message)) {
		out = append(out, caughtBy("contract.when", name, recalling(nil), func(w *wrongEngine) {
			w.before = func(_ string, req any) {
				switch r := req.(type) {
				case *core.IngestRequest:
					change(&r.Message)
				case *core.IngestBatchRequest:
					r.Messages = changedMessages(r.Messages, change)
				case *core.CommitTurnRequest:
					r.Messages = changedMessages(r.Messages, change)
				case *core.AfterTurnRequest:
					r.Messages = changedMessages(r.Messages, change)
				}
			}
		}))
	}
	when("the clock's time", func(m *message.Message) { m.Time = time.Time{} })
	when("whole seconds", func(m *message.Message) { m.Time = m.Time.Truncate(time.Second) })
	when("the digits of a time elsewhere", func(m *message.Message) {
		if _, offset := m.Time.Zone(); offset != 0 {
			m.Time = m.Time.Add(time.Duration(offset) * time.Second)
		}
	})
	stored := func(name string, change func(e *core.Entry, at int)) {
		out = append(out, caughtOver("contract.when", name, recalling(nil), func(s *brokenStore) {
			s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
				at := -1
				return s.Store.Append(ctx, entriesOf(entries, func(e *core.Entry) { at++; change(e, at) }))
			}
		}))
	}
	stored("times in the host's zone", func(e *core.Entry, _ int) { e.Time = e.Time.In(time.FixedZone("elsewhere", 5400)) })
	stored("one turn for a whole call", func(e *core.Entry, at int) { e.Turn -= min(e.Turn, int64(at)) })
	stored("answers belong to the turn before", func(e *core.Entry, _ int) {
		if e.Role == message.Assistant {
			e.Turn--
		}
	})
	stored("timers have turns", func(e *core.Entry, at int) {
		if e.Type == core.TypeHeartbeat {
			e.Turn += int64(at)
		}
	})
	for name, heard := range map[string]func([]core.Entry) []core.Entry{
		"of a batch the first is told":               func(e []core.Entry) []core.Entry { return e[:min(len(e), 1)] },
		"of a batch the last is told":                func(e []core.Entry) []core.Entry { return e[max(len(e)-1, 0):] },
		"batches of more than five are told in part": func(e []core.Entry) []core.Entry { return e[:min(len(e), 5)] },
	} {
		s := recalling(nil)
		s.retriever = func() core.Retriever {
			return &listener{append: func(_ map[string]core.Entry, e []core.Entry) []core.Entry { return heard(e) }}
		}
		out = append(out, caughtBy("contract.told", name, s, func(*wrongEngine) {}))
	}
	return out
}

// changedMessages copies messages and changes the copies.
func changedMessages(in []message.Message, change func(*message.Message)) []message.Message {
	out := slices.Clone(in)
	for i := range out {
		change(&out[i])
	}
	return out
}
