package rpc

import (
	"sync"

	"github.com/contextengine/contextengine/core"
)

// queues keep the calls of each session in the order of their arrival: only the first of a queue works.
type queues struct {
	mu sync.Mutex
	m  map[core.SessionID][]*ticket
}

// ticket is a call's place in the queue of its session.
type ticket struct {
	key   core.SessionID
	ready chan struct{}
}

// enter takes a place at the end of a session's queue.
func (q *queues) enter(key core.SessionID) *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.m == nil {
		q.m = make(map[core.SessionID][]*ticket)
	}
	t := &ticket{key: key, ready: make(chan struct{})}
	q.m[key] = append(q.m[key], t)
	if len(q.m[key]) == 1 {
		close(t.ready)
	}
	return t
}

// leave gives the place up, wherever it is. A second call does nothing.
func (q *queues) leave(t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.m[t.key]
	for i := range list {
		if list[i] != t {
			continue
		}
		copy(list[i:], list[i+1:])
		list[len(list)-1] = nil
		list = list[:len(list)-1]
		if len(list) == 0 {
			delete(q.m, t.key)
			return
		}
		q.m[t.key] = list
		if i == 0 {
			close(list[0].ready)
		}
		return
	}
}
