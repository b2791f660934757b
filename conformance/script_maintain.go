package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

func scriptMaintain(s *script) string {
	e, ok := s.engine.(core.Maintainer)
	r, describes := s.engine.(engine.Recaller)
	if !ok || !describes {
		return ""
	}
	for _, size := range []struct{ messages, budget int }{{4, 8000}, {40, 900}} {
		id := core.SessionID{Agent: "agent-a", Session: fmt.Sprintf("maintained %d", size.messages)}
		if _, text := s.talk(id, size.messages, 25); text != "" {
			return text
		}
		if _, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: size.budget}); err != nil {
			return fmt.Sprintf("assemble: error %v", err)
		}
		for n := range 3 {
			before, err := r.Describe(s.ctx(), engine.DescribeRequest{Session: id})
			if err != nil {
				return fmt.Sprintf("describe: error %v", err)
			}
			res, err := e.Maintain(s.ctx(), core.MaintainRequest{Session: id, Reason: "turn", Budget: size.budget})
			if err != nil {
				return fmt.Sprintf("maintain: error %v", err)
			}
			after, err := r.Describe(s.ctx(), engine.DescribeRequest{Session: id})
			if err != nil {
				return fmt.Sprintf("describe: error %v", err)
			}
			if d := differs(after, before); (d != "") != res.Changed {
				return fmt.Sprintf("maintain %d of %d messages says that it changed something: %v (%q), and Describe: %q", n+1, size.messages, res.Changed, res.Reason, d)
			}
		}
	}
	return inTurn(s.maintainStops, s.maintainFails)
}

// maintainedBudget is one that a session of maintained is many times of.
const maintainedBudget = 900

// maintained is a session in which there is something to do, of an engine that was made anew where that is possible.
func (s *script) maintained(name string) (core.SessionID, string) {
	id := core.SessionID{Agent: "agent-a", Session: "maintained " + name}
	if _, text := s.talk(id, 40, 25); text != "" {
		return id, text
	}
	if _, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: maintainedBudget}); err != nil {
		return id, fmt.Sprintf("assemble: error %v", err)
	}
	if s.restarts() {
		s.reopen(true)
	}
	return id, ""
}

func (s *script) maintains(ctx context.Context, id core.SessionID) (core.MaintainResult, error) {
	res, err := s.engine.(core.Maintainer).Maintain(ctx, core.MaintainRequest{Session: id, Reason: "turn", Budget: maintainedBudget})
	return res, s.heard("maintain", err)
}

// maintainStops makes calls that would change something, whose contexts have ended.
func (s *script) maintainStops() string {
	for n, over := range endings() {
		id, text := s.maintained(fmt.Sprintf("and stopped %d", n))
		if text != "" {
			return text
		}
		ctx, cancel := over.context(s.ctx())
		res, err := s.maintains(ctx, id)
		cancel()
		if err != nil && !errors.Is(err, over.err) {
			return fmt.Sprintf("maintain with a context that %s: error %v, want %v", over.what, err, over.err)
		}
		then, also := s.maintains(s.ctx(), id)
		if also != nil {
			return fmt.Sprintf("maintain after one with a context that %s: error %v, want none", over.what, also)
		}
		if err == nil && then.Changed {
			return fmt.Sprintf("maintain with a context that %s: %+v and no error, want %v; made again it changes something", over.what, res, over.err)
		}
	}
	return ""
}

// maintainFails lets the store fail in a call that would change something.
func (s *script) maintainFails() string {
	for _, place := range []faultPlace{faultDown, faultScan, faultSwap, faultAppend} {
		id, text := s.maintained("while fails " + place.String())
		if text != "" {
			return text
		}
		s.env.faults.arm(place, 1000)
		res, err := s.maintains(s.ctx(), id)
		hits := s.env.faults.disarm()
		what := fmt.Sprintf("maintain while the store's %s fails (%d times)", place, hits)
		if err != nil && (hits == 0 || !ofCore(err)) {
			return fmt.Sprintf("%s: error %v, want one of core's", what, err)
		}
		if s.recover(); s.over {
			return "" // nothing may be restarted
		}
		s.env.Host.advance(time.Hour)
		then, also := s.maintains(s.ctx(), id)
		if also != nil {
			return fmt.Sprintf("maintain after the store's %s failed: error %v, want none", place, also)
		}
		if err == nil && hits > 0 && !res.Changed && then.Changed {
			return fmt.Sprintf("%s: %+v and no error; made again it changes something", what, res)
		}
	}
	return ""
}
