package conformance

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// manyTurns are more than an engine has to remember by their keys.
const manyTurns = 70

// agedTurns commits many turns, whose messages have an id, a key or a time of their host's or none of these, and some of them again when all are there.
func (s *script) agedTurns(e core.TurnCommitter) string {
	id := core.SessionID{Agent: "agent-a", Session: "of many turns"}
	begun := s.env.Host.Now().Truncate(time.Second)
	var reqs []core.CommitTurnRequest
	stored := 0
	for i := range manyTurns {
		req := core.CommitTurnRequest{Session: id, AdvancementKey: fmt.Sprintf("turn-%d", i)}
		for n, role := range []message.Role{message.User, message.Assistant}[:1+min(manyTurns-1-i, 1)] { // the newest has one message
			m := message.New(role, "go on")
			switch name := fmt.Sprintf("%d-%d", i, n); i % 4 {
			case 1:
				m.ID = name
			case 2:
				m.Key = name
			case 3:
				m.Time = begun.Add(time.Duration(2*i+n) * time.Second)
			}
			req.Messages = append(req.Messages, m)
		}
		stored += len(req.Messages)
		reqs = append(reqs, req)
		if res, err := e.CommitTurn(s.ctx(), req); err != nil || res.Status != core.Committed {
			return fmt.Sprintf("turn %d, which says what others say: %+v, error %v, want it committed", i+1, res, err)
		}
	}
	for _, i := range []int{0, 1, 2, 3, manyTurns / 2, manyTurns - 1, 0} {
		res, err := e.CommitTurn(s.ctx(), reqs[i])
		if n := len(s.held(id)); err != nil || res.Status != core.Duplicate || n != stored {
			return fmt.Sprintf("a turn is stored once for its key; turn %d of %d once more: %+v, error %v, %d entries are stored, want a duplicate and %d",
				i+1, len(reqs), res, err, n, stored)
		}
	}
	return ""
}

// turnsNameArms stores turns in every way in sessions of an arm, and looks whether each of them names it.
func (s *script) turnsNameArms() string {
	e, _ := s.engine.(engine.Armed)
	ways := s.ways()
	for _, name := range slices.Sorted(maps.Keys(ways)) {
		id := core.SessionID{Agent: "agent-a", Session: "of an arm by " + name}
		arm := "arm of " + name
		if _, err := e.Arm(s.ctx(), id, func(string) string { return arm }); err != nil {
			return fmt.Sprintf("arm: error %v", err)
		}
		if err := ways[name](id, s.transcript(6).Messages); err != nil {
			return fmt.Sprintf("%s: error %v", name, err)
		}
		if text := namesArm(s.held(id), 3, arm); text != "" {
			return fmt.Sprintf("turns stored by %s: %s", name, text)
		}
	}
	return ""
}

// namesArm describes the first of so many turns that names no arm.
func namesArm(entries []core.Entry, turns int, arm string) string {
	named := map[int64]bool{}
	for _, e := range entries {
		named[e.Turn] = named[e.Turn] || slices.Contains(slices.Collect(maps.Values(e.Meta)), arm)
	}
	if len(named) != turns {
		return fmt.Sprintf("they are %d, want %d", len(named), turns)
	}
	for _, turn := range slices.Sorted(maps.Keys(named)) {
		if !named[turn] {
			return fmt.Sprintf("every turn stored in a session of an arm names it, and no entry of turn %d has the arm %q among its metadata", turn, arm)
		}
	}
	return ""
}
