package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// failChecks look at what an engine does that cannot do what it is asked for.
var failChecks = []Check{
	{ID: "contract.degraded", Promise: 9, Suite: SuiteEngine, script: scriptDegraded,
		Rule: "a prompt that was made while the store failed says so, in the result or in Info.Health, and one that may be too large leaves the count to the host"},
	{ID: "contract.dispose", Promise: 9, Suite: SuiteEngine, script: scriptDispose,
		Rule: "Dispose returns when its context ends, also while a call is under way; without an error it has waited for that, and every later call is ErrClosed"},
	{ID: "contract.aside", Promise: 9, Suite: SuiteEngine, Needs: []Need{NeedRetrier}, script: scriptAside,
		Rule: "an engine that is set aside in one session serves the others, and serves all once it was asked to try again"},
}

// scriptDegraded asks for prompts that the window has to move for, while the store fails, with a transcript and without.
func scriptDegraded(s *script) string {
	for _, place := range []faultPlace{faultSwap, faultScan, faultAppend} {
		for _, with := range []bool{false, true} {
			id := core.SessionID{Agent: "agent-a", Session: fmt.Sprintf("degraded %v %v", place, with)}
			t := &core.Transcript{}
			for i := range 24 {
				t.Messages = append(t.Messages, s.longMessage([]message.Role{message.User, message.Assistant}[i%2]))
			}
			for _, m := range t.Messages[:20] {
				if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: m}); err != nil {
					return fmt.Sprintf("ingest: error %v", err)
				}
			}
			req := core.AssembleRequest{Session: id, Budget: traceBudget, PromptMode: core.PromptNone}
			if with {
				req.Transcript = t
			}
			before := s.engine.Info().Health
			s.env.faults.arm(place, 1000)
			res, err := s.engine.Assemble(s.ctx(), req)
			hits := s.env.faults.disarm()
			after := s.engine.Info().Health
			what := fmt.Sprintf("assemble while the store's %s fails (%d times), with a transcript: %v", place, hits, with)
			if hits > 0 && err == nil && res.Degraded == "" && len(res.Warnings) == 0 && (len(after) == 0 || reflect.DeepEqual(before, after)) {
				return what + ": no error, nothing in the result and no problem more in Info.Health"
			}
			if err == nil {
				n, text := s.recounted(res)
				if text != "" {
					return what + ": " + text
				}
				if n > req.Budget && res.PromptAuthority != core.AuthorityHost {
					return fmt.Sprintf("%s: the prompt costs %d, its budget is %d, and the authority is %q; degraded: %q", what, n, req.Budget, res.PromptAuthority, res.Degraded)
				}
			}
			if s.recover(); s.over {
				return ""
			}
			s.env.Host.advance(time.Hour)
		}
	}
	return ""
}

// longMessage is a message of which a few fill the budget of these scripts.
func (s *script) longMessage(role message.Role) message.Message {
	return s.message(role, strings.Repeat("the budget report moved ", 16))
}

// scriptDispose ends engines in which a call of each kind waits for the store, with a context that has ended.
func scriptDispose(s *script) string {
	if _, ok := s.engine.(core.Disposer); !ok {
		return ""
	}
	if s.restarts() {
		if text := s.disposesInTime(); text != "" {
			return text
		}
		s.reopen(true)
	}
	for _, name := range []string{"ingest", "ingest batch", "commit turn", "after turn", "bootstrap", "assemble", "compact", "subagent ended", "forget"} {
		id := core.SessionID{Agent: s.id.Agent, Session: "waits in " + name}
		call := s.storing(id)[name]
		if call == nil {
			continue
		}
		returned, disposed := make(chan struct{}), false
		waits := func(ctx context.Context) error {
			defer close(returned)
			_ = call(ctx) // what becomes of it is the engine's
			return nil
		}
		text := s.whileHeld(id, waits, func() string { disposed = true; return s.disposesSoon(returned) })
		if text != "" {
			return fmt.Sprintf("while %s waits for the store: %s", name, text)
		}
		if !disposed {
			continue // it stores nothing
		}
		if text := s.isClosed(); text != "" {
			return fmt.Sprintf("disposed of while %s waited for the store, which it no longer does: %s", name, text)
		}
		if !s.restarts() {
			return ""
		}
		s.reopen(true)
	}
	s.dispose()
	if text := s.isClosed(); text != "" {
		return "disposed of while no call was under way: " + text
	}
	if s.restarts() {
		s.reopen(true)
	}
	return ""
}

// returnsToo is how long a call may take to return that an engine ended.
const returnsToo = time.Second

// waitsLong is how long a call waits for the store while an engine is disposed of.
const waitsLong = 300 * time.Millisecond

// disposesInTime disposes of the engine with a context that lasts, while a call waits for the store.
func (s *script) disposesInTime() string {
	id := core.SessionID{Agent: s.id.Agent, Session: "waits for long"}
	m, ctx := s.message(message.User, "waits"), s.ctx()
	returned, disposed := make(chan struct{}), make(chan error, 1)
	waits := func(ctx context.Context) error {
		defer close(returned)
		_, _ = s.engine.Ingest(ctx, core.IngestRequest{Session: id, Message: m}) // what becomes of it is the engine's
		return nil
	}
	begun := false
	text := s.whileHeld(id, waits, func() string {
		begun = true
		go func() { disposed <- s.engine.(core.Disposer).Dispose(ctx) }() //nolint:forcetypeassert // it was looked at
		select {
		case err := <-disposed:
			disposed <- err
			if err != nil {
				return ""
			}
			return s.isOver(returned)
		case <-time.After(waitsLong):
			return ""
		}
	})
	if text != "" || !begun {
		return text
	}
	if err := <-disposed; err != nil {
		return fmt.Sprintf("dispose while a call waited for the store: error %v, want none", err)
	}
	return ""
}

// isOver waits for a call after an engine was disposed of without an error: one that the engine ended itself may take a moment.
func (s *script) isOver(returned <-chan struct{}) string {
	select {
	case <-returned:
		return ""
	case <-time.After(returnsToo):
		return "dispose returns no error, and the call is still under way"
	}
}

// disposesSoon disposes of the engine with a context that has ended, while a call waits for the store.
func (s *script) disposesSoon(returned <-chan struct{}) string {
	ctx, cancel := cancelled(s.ctx())
	defer cancel()
	err := s.engine.(core.Disposer).Dispose(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Sprintf("dispose with an ended context: error %v, want the context's", err)
	}
	if err == nil {
		return s.isOver(returned)
	}
	return ""
}

// isClosed makes every call of an engine that was disposed of.
func (s *script) isClosed() string {
	id := core.SessionID{Agent: s.id.Agent, Session: "behind the end"}
	calls := s.calls(id)
	if e, ok := s.engine.(core.Maintainer); ok {
		calls["maintain"] = func(ctx context.Context) error {
			_, err := e.Maintain(ctx, core.MaintainRequest{Session: id, Budget: 4000})
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		if err := calls[name](s.ctx()); !errors.Is(err, core.ErrClosed) {
			return fmt.Sprintf("%s: error %v, want ErrClosed", name, err)
		}
	}
	return ""
}

// mostTries is how often a call is made that fails, before an engine is taken for one that is never set aside.
const mostTries = 12

// scriptAside lets an engine fail in one session until it is set aside there, then in two, then in as many as it takes until it is set aside in all.
func scriptAside(s *script) string {
	ingest := func(id core.SessionID) error {
		_, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: s.message(message.User, "is it on")})
		return err
	}
	// fails makes a call fail through no fault of what cannot be reached, and reports whether the session is set aside then.
	fails := func(id core.SessionID) bool {
		s.env.faults.armBroken(faultAppend, 1000)
		defer s.env.faults.disarm()
		for range mostTries {
			if errors.Is(ingest(id), core.ErrQuarantined) {
				return true
			}
		}
		return false
	}
	works := func(what string, ids ...core.SessionID) string {
		for _, id := range ids {
			err := ingest(id)
			if err == nil {
				_, err = s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: 4000})
			}
			if err != nil {
				return fmt.Sprintf("%s: session %s: error %v", what, id, err)
			}
		}
		return ""
	}
	session := func(name string) core.SessionID { return core.SessionID{Agent: "agent-a", Session: name} }
	retry := func(what string, ids ...core.SessionID) string {
		s.engine.(engine.Retrier).Retry() //nolint:forcetypeassert // it is needed
		if text := works("asked to try again, "+what, ids...); text != "" {
			return text
		}
		if i := slices.IndexFunc(s.engine.Info().Health, func(p core.Problem) bool { return p.Quarantined }); i >= 0 {
			return fmt.Sprintf("asked to try again, and all works: Info.Health still says %+v", s.engine.Info().Health[i])
		}
		return ""
	}
	first, second, other := session("first"), session("second"), session("other")
	if text := works("nothing failed", first, second); text != "" {
		return text
	}
	if !fails(first) {
		return "" // never set aside
	}
	others := []core.SessionID{other, second, {Agent: "agent-b", Session: "first"}}
	if text := works("set aside in one session of one agent", others...); text != "" {
		return text
	}
	if text := retry("set aside in one session", first); text != "" {
		return text
	}
	if fails(first) && fails(second) {
		if text := works("set aside in two sessions", other); text != "" {
			return text
		}
		if text := retry("set aside in two sessions", second, first); text != "" {
			return text
		}
	}
	var all []core.SessionID
	for n := range 5 {
		all = append(all, session(fmt.Sprintf("one of many %d", n)))
		fails(all[n])
	}
	return retry("set aside in many sessions", append(all, session("new"), other)...)
}
