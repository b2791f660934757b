package engine

import (
	"strconv"
	"sync"

	"github.com/contextengine/contextengine/core/message"
)

// workspace is the room that an Assemble works in, as large as its window: half a megabyte for a thousand messages. It is kept for the calls that
// follow, whatever their session. One call has it at a time, and nothing in it outlives the call: what is returned or published is a copy, and a retriever
// is given none of it.
type workspace struct {
	// names are the numbers from 0 on, as text.
	names []string
	// visible, msgs, costs and shown are the frame's.
	visible []int
	msgs    []message.Message
	costs   []int
	shown   ownership
	// slots are the messages of the result before the last run of the rules, sent says what became of them.
	slots []slot
	sent  ownership
}

// workspaces are those that no call has: about one for each processor, and none after a while without calls.
type workspaces struct{ pool sync.Pool }

// get returns room that no other call has.
func (w *workspaces) get() *workspace {
	if ws, ok := w.pool.Get().(*workspace); ok {
		return ws
	}
	return new(workspace)
}

// put takes the room back. What stands in it stays until another call or the garbage collector takes it.
func (w *workspaces) put(ws *workspace) { w.pool.Put(ws) }

// kept returns now, which takes the place of before. What before had more is let go.
func kept[T any](now, before []T) []T {
	clear(before[min(len(now), len(before)):])
	return now
}

// numbers returns the first n numbers as text.
func (ws *workspace) numbers(n int) []string {
	for len(ws.names) < n {
		ws.names = append(ws.names, strconv.Itoa(len(ws.names)))
	}
	return ws.names[:n]
}
