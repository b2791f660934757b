package rpc

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// transcripts remember, for each session, the lists of messages that client and server both know: a hash of every message, and at some
// places the client's digest with the engine's. The least recently used session is forgotten first.
type transcripts struct {
	// most bounds the messages remembered in all.
	most int

	mu       sync.Mutex
	sessions map[core.SessionID]*list.Element // of *remembered
	recent   list.List
	size     int
	// results are the lists whose mark holds messages, the oldest first.
	results []*known
}

// remembered are the lists of a session, the most recently used first.
type remembered struct {
	id    core.SessionID
	lists []*known
}

// The bounds of what is remembered of a session.
const (
	maxSessions    = 4096
	maxTranscripts = 3
	maxOutputs     = 2
	maxCheckpoints = 32
	// maxResults bounds, for all sessions, the results whose messages are held.
	maxResults = 32
)

// hash identifies the bytes of a message.
type hash [16]byte

func hashOf(raw []byte) hash {
	sum := sha256.Sum256(raw)
	return hash(sum[:16])
}

func hashes(raw []json.RawMessage) []hash {
	out := make([]hash, len(raw))
	for i := range raw {
		out[i] = hashOf(raw[i])
	}
	return out
}

// claim is what a call says about a list: what follows from it is remembered when the call has succeeded.
type claim struct {
	session core.SessionID
	output  bool
	skipped int
	prefix  string
	// start is the engine's digest of what is skipped.
	start  message.Digest
	tail   []hash
	digest string
	// end is the engine's digest of all; when it is still to be computed, all are the messages.
	end    message.Digest
	all    []message.Message
	raw    []json.RawMessage // as the client gets them
	prints []string          // of all, as far as they are known
}

func newTranscripts(most int) *transcripts {
	return &transcripts{most: most, sessions: make(map[core.SessionID]*list.Element)}
}

// begin looks up the messages that a transcript does not repeat. It reports false when it does not know them.
func (t *transcripts) begin(id core.SessionID, skipped int, prefix string) (message.Digest, bool) {
	if skipped == 0 {
		return "", true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.touch(id, false); r != nil {
		if _, m := r.find(skipped, prefix); m != nil {
			m.settle()
			return m.core, true
		}
	}
	return "", false
}

// checkpoints lists what is known of a session's transcripts, the longest first.
func (t *transcripts) checkpoints(id core.SessionID) []Checkpoint {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []Checkpoint{}
	r := t.touch(id, false)
	if r == nil {
		return out
	}
	for _, k := range r.lists {
		if k.output {
			continue
		}
		for _, m := range k.marks {
			if c := (Checkpoint{Count: m.count, Digest: m.digest}); !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Checkpoint) int { return b.Count - a.Count })
	return out[:min(len(out), maxCheckpoints)]
}

// keep remembers what a call that succeeded said. It returns a function that finds the place of a message in the client's list, until another
// call changes that list; nil when the list is not known any more.
func (t *transcripts) keep(c claim) (place func(h hash, after int) int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	total := c.skipped + len(c.tail)
	if total > t.most {
		return nil
	}
	r := t.touch(c.session, true)
	k := r.listFor(c)
	if k == nil {
		return nil
	}
	t.size -= len(k.hashes)
	k.follow(c.skipped, c.tail)
	t.size += len(k.hashes)
	if c.digest != "" && total > 0 {
		k.mark(mark{count: total, digest: c.digest, core: c.end, later: c.all, prints: c.prints})
		if c.all != nil {
			k.raw, k.prints = c.raw, c.prints
			t.hold(k)
		}
	}
	t.size -= r.use(k)
	t.shrink(c.session)
	version := k.version
	return func(h hash, after int) int {
		t.mu.Lock()
		defer t.mu.Unlock()
		if k.version != version {
			return -1
		}
		return k.place(h, after, total)
	}
}

// hashes returns the hashes of an engine's result. Most of its messages stand where they stood in the result before, as the very same bytes, and
// need not be hashed again.
func (t *transcripts) hashes(id core.SessionID, raw []json.RawMessage) []hash {
	out, _, known := t.unchanged(id, raw)
	for i := range raw {
		if !known[i] {
			out[i] = hashOf(raw[i])
		}
	}
	return out
}

// unchanged returns the hashes of those messages that stand in the newest result whose messages are held, their fingerprints where they were computed,
// and which they are.
func (t *transcripts) unchanged(id core.SessionID, raw []json.RawMessage) (out []hash, prints []string, known []bool) {
	out, prints, known = make([]hash, len(raw)), make([]string, len(raw)), make([]bool, len(raw))
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.touch(id, false)
	if r == nil {
		return out, prints, known
	}
	for _, k := range r.lists {
		if k.raw == nil {
			continue
		}
		for i := range min(len(raw), len(k.raw)) {
			if known[i] = sameBytes(raw[i], k.raw[i]); known[i] {
				out[i], prints[i] = k.hashes[i], k.prints[i]
			}
		}
		break
	}
	return out, prints, known
}

// sameBytes reports whether a and b are the same bytes in memory, which nobody writes to.
func sameBytes(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// output remembers an engine's result and returns its name.
func (t *transcripts) output(id core.SessionID, ids []hash, raw []json.RawMessage, messages []message.Message) string {
	h := sha256.New()
	for i := range ids {
		h.Write(ids[i][:])
	}
	name := "out:" + hex.EncodeToString(h.Sum(nil)[:16])
	_, prints, _ := t.unchanged(id, raw)
	t.keep(claim{session: id, output: true, tail: ids, digest: name, all: messages, raw: raw, prints: prints})
	return name
}

// hold bounds how many results keep messages alive. Those that are given up are not known any more.
func (t *transcripts) hold(k *known) {
	t.results = append(slices.DeleteFunc(t.results, func(o *known) bool { return o == k }), k)
	if len(t.results) <= maxResults {
		return
	}
	t.results[0].raw, t.results[0].prints = nil, nil
	t.results[0].marks = slices.DeleteFunc(t.results[0].marks, func(m mark) bool { return m.later != nil })
	t.results = slices.Delete(t.results, 0, 1)
}

// forget drops what is known about a session.
func (t *transcripts) forget(id core.SessionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(t.sessions[id])
}

// count returns the number of sessions that something is known about.
func (t *transcripts) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.sessions)
}

// touch finds a session, or makes it, as the most recently used.
func (t *transcripts) touch(id core.SessionID, create bool) *remembered {
	if e := t.sessions[id]; e != nil {
		t.recent.MoveToFront(e)
		return e.Value.(*remembered)
	}
	if !create {
		return nil
	}
	r := &remembered{id: id}
	t.sessions[id] = t.recent.PushFront(r)
	return r
}

// shrink forgets sessions until the bounds hold; the one that is in use comes last.
func (t *transcripts) shrink(using core.SessionID) {
	for t.size > t.most || len(t.sessions) > maxSessions {
		oldest := t.recent.Back()
		if oldest.Value.(*remembered).id == using {
			r := oldest.Value.(*remembered)
			if len(r.lists) < 2 {
				return
			}
			t.size -= len(r.lists[len(r.lists)-1].hashes)
			r.lists = r.lists[:len(r.lists)-1]
			continue
		}
		t.drop(oldest)
	}
}

func (t *transcripts) drop(e *list.Element) {
	if e == nil {
		return
	}
	r := e.Value.(*remembered)
	for _, k := range r.lists {
		t.size -= len(k.hashes)
	}
	delete(t.sessions, r.id)
	t.recent.Remove(e)
}
