package conformance_test

import (
	"context"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// tableSentences are engines that break one sentence of the contract where it is seldom read: long after, after a reset, in what is unknown to them.
func tableSentences() []broken {
	return slices.Concat(
		tableAged(),
	)
}

// storedOf are a session's entries, read past the engine.
func storedOf(w *wrongEngine, id core.SessionID) []core.Entry {
	var out []core.Entry
	for e, err := range core.All(context.Background(), w.Store(), id.Scope(), false) {
		if err == nil {
			out = append(out, e)
		}
	}
	return out
}

// tableAged are engines that forget turns.
func tableAged() []broken {
	var out []broken
	aged := func(name string, is func(m message.Message) bool) {
		out = append(out, caughtBy("contract.keys", name, recalling(nil), func(w *wrongEngine) {
			keys := map[core.SessionID][]string{}
			w.commit = func(ctx context.Context, req core.CommitTurnRequest) (core.CommitTurnResult, error) {
				res, err := w.Engine.CommitTurn(ctx, req)
				known := keys[req.Session]
				if err == nil && res.Status == core.Duplicate && !slices.Contains(known[max(len(known)-64, 0):], req.AdvancementKey) && is(req.Messages[0]) {
					res.Status = core.Committed
				}
				if err == nil && !slices.Contains(known, req.AdvancementKey) {
					keys[req.Session] = append(known, req.AdvancementKey)
				}
				return res, err
			}
		}))
	}
	aged("a turn that was committed long ago is new", func(message.Message) bool { return true })
	aged("a turn whose messages have ids, committed long ago, is new", func(m message.Message) bool { return m.ID != "" })
	aged("a turn whose messages have times, committed long ago, is new", func(m message.Message) bool { return !m.Time.IsZero() })
	return out
}
