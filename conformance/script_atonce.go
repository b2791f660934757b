package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// scriptAtOnce makes calls of one session while it is in use, and calls of several sessions at the same time.
func scriptAtOnce(s *script) string {
	if text := inTurn(s.waitsItsTurn, s.leavesTheQueue); text != "" {
		return text
	}
	for _, way := range s.storingWays() {
		if text := s.apart(way); text != "" {
			return fmt.Sprintf("%s: %s", way.name, text)
		}
	}
	return ""
}

// begun is how long a call is given to get as far as it can.
const begun = 2 * time.Millisecond

// inUse makes every call for a session while the store lets another call of that session wait; during makes it and describes what is wrong.
func (s *script) inUse(agent string, during func(call func(context.Context) error) string, after func() string) string {
	for _, name := range slices.Sorted(maps.Keys(s.calls(s.id))) {
		id := core.SessionID{Agent: agent, Session: name}
		if _, text := s.talk(id, 2, 3); text != "" {
			return text
		}
		second := s.second(id, name)
		m := s.message(message.User, "waits")
		first := func(ctx context.Context) error {
			_, err := s.engine.Ingest(ctx, core.IngestRequest{Session: id, Message: m})
			return err
		}
		text := s.whileHeld(id, first, func() string { return during(second) })
		if text == "" {
			text = after()
		}
		if text != "" {
			return fmt.Sprintf("%s for a session in which another call is under way: %s", name, text)
		}
	}
	return ""
}

// waitsItsTurn wants a call for a session in use to wait.
func (s *script) waitsItsTurn() string {
	var done chan string // nil where no call was made
	return s.inUse("in use", func(call func(context.Context) error) string {
		done = make(chan string, 1)
		go func(done chan<- string) {
			done <- guard(func() string {
				if err := call(s.ctx()); err != nil {
					return fmt.Sprintf("error %v, want it to wait", err)
				}
				return ""
			})
		}(done)
		select {
		case text := <-done:
			done <- text
		case <-time.After(begun):
		}
		return ""
	}, func() string {
		if done == nil {
			return ""
		}
		text := <-done
		done = nil
		return text
	})
}

// second is a call of a session. A compaction may have a reason of its own to fail.
func (s *script) second(id core.SessionID, name string) func(context.Context) error {
	call := s.calls(id)[name]
	if name != "compact" {
		return call
	}
	return func(ctx context.Context) error {
		if err := call(ctx); errors.Is(err, core.ErrConflict) {
			return err
		}
		return nil
	}
}

// leavesTheQueue ends the context of a call that waits for another one of the session: it must not wait for that.
func (s *script) leavesTheQueue() string {
	return s.inUse("left alone", func(call func(context.Context) error) string {
		ctx, cancel := context.WithTimeout(s.ctx(), begun)
		defer cancel()
		if err := call(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Sprintf("its context ends: error %v, want context.DeadlineExceeded", err)
		}
		return ""
	}, func() string { return "" })
}

// storingWay is a way to store messages. It returns their ids where the engine does.
type storingWay struct {
	name  string
	store func(ctx context.Context, id core.SessionID, list []message.Message) ([]string, error)
}

func (s *script) storingWays() []storingWay {
	out := []storingWay{{"ingest", func(ctx context.Context, id core.SessionID, list []message.Message) ([]string, error) {
		var ids []string
		for _, m := range list {
			res, err := s.engine.Ingest(ctx, core.IngestRequest{Session: id, Message: m})
			if err != nil {
				return nil, err
			}
			ids = append(ids, res.IDs...)
		}
		return ids, nil
	}}}
	if e, ok := s.engine.(core.BatchIngester); ok {
		out = append(out, storingWay{"ingest batch", func(ctx context.Context, id core.SessionID, list []message.Message) ([]string, error) {
			res, err := e.IngestBatch(ctx, core.IngestBatchRequest{Session: id, Messages: list})
			return res.IDs, err
		}})
	}
	if e, ok := s.engine.(core.TurnCommitter); ok {
		out = append(out, storingWay{"commit turn", func(ctx context.Context, id core.SessionID, list []message.Message) ([]string, error) {
			res, err := e.CommitTurn(ctx, core.CommitTurnRequest{Session: id, AdvancementKey: "turn", Messages: list})
			return res.IDs, err
		}})
	}
	if e, ok := s.engine.(core.AfterTurner); ok {
		out = append(out, storingWay{"after turn", func(ctx context.Context, id core.SessionID, list []message.Message) ([]string, error) {
			return nil, e.AfterTurn(ctx, core.AfterTurnRequest{Session: id, Messages: list})
		}})
	}
	if e, ok := s.engine.(core.Bootstrapper); ok {
		out = append(out, storingWay{"bootstrap", func(ctx context.Context, id core.SessionID, list []message.Message) ([]string, error) {
			_, err := e.Bootstrap(ctx, core.BootstrapRequest{Session: id, Transcript: &core.Transcript{Messages: list}})
			return nil, err
		}})
	}
	return append(out, storingWay{"assemble", func(ctx context.Context, id core.SessionID, list []message.Message) ([]string, error) {
		res, err := s.engine.Assemble(ctx, core.AssembleRequest{Session: id, Budget: 4000, Transcript: &core.Transcript{Messages: list}})
		var ids []string
		for i, m := range res.Messages {
			if i < res.RecallAt || i >= res.RecallAt+res.RecallLen {
				ids = append(ids, m.Entry)
			}
		}
		return ids, err
	}})
}

// apart stores messages of several sessions in one way: one of them waits in the store while the others are served, and these come all at once.
func (s *script) apart(way storingWay) string {
	var ids [concurrent]core.SessionID
	var lists [concurrent][]message.Message
	var got [concurrent][]string
	for i := range concurrent {
		ids[i] = core.SessionID{Agent: fmt.Sprintf("apart-%d", i), Session: way.name}
		lists[i] = s.transcript(2).Messages
	}
	store := func(ctx context.Context, i int) (err error) {
		got[i], err = way.store(ctx, ids[i], lists[i])
		return err
	}
	served := false
	text := s.whileHeld(ids[0], func(ctx context.Context) error { return store(ctx, 0) }, func() string {
		served = true
		return atOnce(concurrent-1, func(i int) string {
			if err := store(s.ctx(), i+1); err != nil {
				return fmt.Sprintf("while others are served: error %v", err)
			}
			return ""
		})
	})
	if text != "" || !served {
		return text
	}
	for i, id := range ids {
		held := s.held(id)
		same := slices.EqualFunc(held, lists[i], func(e core.Entry, m message.Message) bool { return e.Text() == m.Text() })
		if !same {
			return fmt.Sprintf("of %d messages given to session %d of %d, all at the same time, these are stored: %q", len(lists[i]), i, concurrent, textsOf(held))
		}
		if want := idsOf(held); got[i] != nil && !slices.Equal(got[i], want) {
			return fmt.Sprintf("the result of session %d of %d, all at the same time, names the entries %q, want %q", i, concurrent, got[i], want)
		}
	}
	return ""
}

func textsOf(entries []core.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Text())
	}
	return out
}
