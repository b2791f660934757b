package rpc

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// spawns remember the prepared subagents, so that they can be rolled back and their end be told to the engine of their parent. The
// oldest are forgotten beyond a bound.
type spawns struct {
	mu    sync.Mutex
	order []*spawn
}

type spawn struct {
	id            string
	parent, child core.SessionID
	rollback      func(ctx context.Context) error
}

const maxSpawns = 4096

func (s *spawns) add(parent, child core.SessionID, rollback func(ctx context.Context) error) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.order) >= maxSpawns {
		s.order = append(s.order[:0], s.order[len(s.order)-maxSpawns+1:]...)
	}
	sp := &spawn{id: "s-" + strings.ToLower(rand.Text()), parent: parent, child: child, rollback: rollback}
	s.order = append(s.order, sp)
	return sp.id
}

// take removes the spawn of that id; nil when it is not known.
func (s *spawns) take(id string) *spawn {
	return s.remove(func(sp *spawn) bool { return sp.id == id })
}

// parent returns the parent of a child that was prepared here.
func (s *spawns) parent(child core.SessionID) (core.SessionID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sp := range s.order {
		if sp.child == child {
			return sp.parent, true
		}
	}
	return core.SessionID{}, false
}

// end forgets a child.
func (s *spawns) end(child core.SessionID) {
	for s.remove(func(sp *spawn) bool { return sp.child == child }) != nil {
	}
}

func (s *spawns) remove(match func(*spawn) bool) *spawn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, sp := range s.order {
		if match(sp) {
			s.order = append(s.order[:i], s.order[i+1:]...)
			return sp
		}
	}
	return nil
}
