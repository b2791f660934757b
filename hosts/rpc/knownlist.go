package rpc

import (
	"encoding/json"
	"slices"

	"github.com/contextengine/contextengine/core/message"
)

// known is one list.
type known struct {
	// output says that it is an engine's result, not a transcript of the host's.
	output bool
	hashes []hash
	// at finds a place of each message. It is made when somebody asks: most outputs are never handed back.
	at    map[hash]int32
	marks []mark // by count
	// version changes with hashes.
	version int
	// raw are the messages of an output that hashes are of, as long as they are held, and prints their fingerprints as far as they were computed.
	raw    []json.RawMessage
	prints []string
}

// mark is a place in a list: the digests of the messages before it.
type mark struct {
	count  int
	digest string
	core   message.Digest
	// later are the messages that core is still to be computed of: most results are never handed back.
	later []message.Message
	// prints are the fingerprints of later as far as they are known.
	prints []string
}

// settle computes what was put off. Most messages of a result stood in the one before, and had their fingerprints computed then.
func (m *mark) settle() {
	if m.later == nil {
		return
	}
	m.core = ""
	for i := range m.later {
		if m.prints[i] == "" {
			m.prints[i] = message.Fingerprint(m.later[i])
		}
		m.core = m.core.Add(m.prints[i])
	}
	m.later = nil
}

// find returns the list and the mark that a client's count and digest name.
func (r *remembered) find(count int, digest string) (*known, *mark) {
	for _, k := range r.lists {
		for i := range k.marks {
			if m := &k.marks[i]; m.count == count && m.digest == digest {
				return k, m
			}
		}
	}
	return nil, nil
}

// listFor returns the list that a claim is about: the one it continues, one that it repeats or that begins with it, or a new one.
func (r *remembered) listFor(c claim) *known {
	if c.skipped > 0 {
		k, m := r.find(c.skipped, c.prefix)
		if m == nil || m.core != c.start {
			return nil // forgotten meanwhile
		}
		return k
	}
	for _, k := range r.lists {
		if n := min(len(k.hashes), len(c.tail)); n > 0 && k.output == c.output && slices.Equal(k.hashes[:n], c.tail[:n]) {
			return k
		}
	}
	return &known{output: c.output}
}

// use puts a list in front, drops those beyond the bounds and returns how many messages they had.
func (r *remembered) use(k *known) int {
	r.lists = slices.DeleteFunc(r.lists, func(o *known) bool { return o == k })
	r.lists = slices.Insert(r.lists, 0, k)
	gone, of := 0, map[bool]int{}
	r.lists = slices.DeleteFunc(r.lists, func(o *known) bool {
		of[o.output]++
		if o.output && of[true] <= maxOutputs || !o.output && of[false] <= maxTranscripts {
			return false
		}
		gone += len(o.hashes)
		return true
	})
	return gone
}

// follow makes tail the messages from skipped on. What the list has beyond the tail stays as long as nothing contradicts it.
func (k *known) follow(skipped int, tail []hash) {
	same := 0
	for same < len(tail) && skipped+same < len(k.hashes) && k.hashes[skipped+same] == tail[same] {
		same++
	}
	if same == len(tail) {
		return
	}
	k.version++
	k.cut(skipped + same)
	from := len(k.hashes)
	k.hashes = append(k.hashes, tail[same:]...)
	if k.at != nil {
		k.index(from)
	}
}

// index records the places of the messages from an index on. The first place of a message counts.
func (k *known) index(from int) {
	for i, h := range k.hashes[from:] {
		if _, ok := k.at[h]; !ok {
			k.at[h] = int32(from + i) //nolint:gosec // bounded by Config.MaxTranscript
		}
	}
}

// place finds a message among the first total, best behind the one at after; -1 when it is not there.
func (k *known) place(h hash, after, total int) int {
	if after+1 < total && k.hashes[after+1] == h {
		return after + 1
	}
	if k.at == nil {
		k.at = make(map[hash]int32, len(k.hashes))
		k.index(0)
	}
	if at, ok := k.at[h]; ok && int(at) < total {
		return int(at)
	}
	return -1
}

// cut shortens the list to its first n messages.
func (k *known) cut(n int) {
	if n < len(k.raw) {
		k.raw, k.prints = nil, nil
	}
	for i, h := range k.hashes[n:] {
		if k.at[h] == int32(n+i) { //nolint:gosec // bounded by Config.MaxTranscript
			delete(k.at, h)
		}
	}
	k.hashes = k.hashes[:n]
	k.marks = slices.DeleteFunc(k.marks, func(m mark) bool { return m.count > n })
}

// mark records a checkpoint; the shortest are dropped beyond the bound. Only the newest holds messages.
func (k *known) mark(m mark) {
	if m.later != nil {
		k.marks = slices.DeleteFunc(k.marks, func(o mark) bool { return o.later != nil })
	}
	k.marks = slices.DeleteFunc(k.marks, func(o mark) bool { return o.count == m.count && o.digest == m.digest })
	k.marks = append(k.marks, m)
	slices.SortStableFunc(k.marks, func(a, b mark) int { return a.count - b.count })
	if n := len(k.marks); n > maxCheckpoints {
		k.marks = slices.Delete(k.marks, 0, n-maxCheckpoints)
	}
}
