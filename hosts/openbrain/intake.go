package openbrain

import (
	"cmp"
	"sync"
	"time"
)

// standstill is how long nothing must have come of a body before it makes room for another one of its key.
const standstill = time.Second

// intake bounds what bodies hold in memory, all requests together, and another one what answers hold on their way to their clients. When room is short, whoever holds much makes it: the key that holds most loses the body
// of which least came lately. A key that holds most itself loses one that stands still, else what it sends further is refused.
type intake struct {
	bound int64

	mu sync.Mutex
	// held is what all of them hold, in bytes.
	held   int64
	bodies map[*arrival]bool
}

// arrival is one body, from its first byte until its request is answered, or one answer.
type arrival struct {
	key string
	// cut ends the reading of the body, or the writing of the answer.
	cut  func()
	held int64
	// last is when something of it came, or was taken, last.
	last time.Time
	// whole says that it has come to its end, dropped that it made room.
	whole, dropped bool
}

func newIntake(bound int64) *intake { return &intake{bound: bound, bodies: make(map[*arrival]bool)} }

// begin notes a body of a key. cut is not called any more once end was.
func (in *intake) begin(key string, cut func()) *arrival {
	a := &arrival{key: key, cut: cut, last: time.Now()}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.bodies[a] = true
	return a
}

// grow counts n bytes more, or less, and reports whether there is room for them; where there is none they are not counted. whole says that they are the last.
func (in *intake) grow(a *arrival, n int, whole bool) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if a.dropped {
		return false
	}
	a.held, a.last, a.whole = a.held+int64(n), time.Now(), whole
	for in.held += int64(n); in.held > in.bound; {
		out := in.slowest(a)
		if out == a {
			a.held, in.held = a.held-int64(n), in.held-int64(n)
			return false
		}
		in.drop(out)
		out.cut()
	}
	return true
}

// moves notes that something goes on and calls f, unless a has made room: then it returns false. cut is not called while f is.
func (in *intake) moves(a *arrival, f func()) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if a.dropped {
		return false
	}
	a.last = time.Now()
	f()
	return true
}

// end forgets a body.
func (in *intake) end(a *arrival) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.drop(a)
}

func (in *intake) drop(a *arrival) {
	if in.bodies[a] {
		delete(in.bodies, a)
		in.held -= a.held
		a.dropped = true
	}
}

// slowest returns the body that makes room for more of one, which may be that one.
func (in *intake) slowest(of *arrival) *arrival {
	held := make(map[string]int64)
	for b := range in.bodies {
		held[b.key] += b.held
	}
	out := of
	for b := range in.bodies {
		more := held[b.key] > held[of.key] || b.key == of.key && of.last.Sub(b.last) >= standstill
		if b.whole || b.held == 0 || !more {
			continue
		}
		if out == of || cmp.Or(cmp.Compare(held[out.key], held[b.key]), b.last.Compare(out.last)) < 0 {
			out = b
		}
	}
	return out
}
