package history

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// The longest id of IDsStrict and the length of every id of IDsStrict9, in bytes.
const (
	strictLen  = 40
	strict9Len = 9
)

// RewriteCallIDs makes the ids of tool calls what Policy.SanitizeCallIDs asks for, every occurrence with an id of its
// own, and lets the results of a message's calls follow. Policy.KeepNativeIDs keeps "toolu_..." ids, IDsStrict keeps
// Kimi's ("functions.read:0"); calls of OpenAI's custom kind keep theirs. A new id depends on the calls before it
// only. Run it on repaired messages. It keeps a set of the ids even where it changes nothing.
func RewriteCallIDs(msgs []message.Message, policy Policy) []message.Message {
	if policy.SanitizeCallIDs == "" {
		return msgs
	}
	w := idWriter{
		Policy: policy,
		taken:  make(map[string]bool),
		queue:  make(map[string][]string),
		tries:  make(map[string]int),
	}
	l := list{src: msgs}
	for i := range msgs {
		m := &msgs[i]
		parts := m.Parts
		switch {
		case m.Role == message.Assistant && m.HasCalls():
			if len(w.queue) > fewIDs {
				w.queue = make(map[string][]string)
			}
			clear(w.queue)
			parts = mapParts(parts, w.call)
		case m.Role == message.Tool:
			parts = mapParts(parts, w.result)
		}
		if sameParts(parts, m.Parts) {
			l.keep(i)
		} else {
			l.add(m.WithParts(parts))
		}
	}
	return l.done()
}

type idWriter struct {
	Policy
	taken map[string]bool
	// queue holds the new ids of the current message's calls by their old ones.
	queue map[string][]string
	// tries counts the replacements tried for an id: those up to it are taken.
	tries map[string]int
}

func (w *idWriter) call(p *message.Part) bool {
	if p.Kind != message.ToolCall {
		return false
	}
	id := p.CallID
	if !isCustom(p) {
		id = w.unique(p.CallID)
	}
	w.taken[id] = true
	w.queue[p.CallID] = append(w.queue[p.CallID], id)
	if id == p.CallID {
		return false
	}
	p.CallID = id
	return true
}

func (w *idWriter) result(p *message.Part) bool {
	if p.Kind != message.ToolResult {
		return false
	}
	q := w.queue[p.CallID]
	if len(q) == 0 {
		return false
	}
	id := q[0]
	if len(q) > 1 {
		w.queue[p.CallID] = q[1:]
	}
	if id == p.CallID {
		return false
	}
	p.CallID = id
	return true
}

// unique returns the id that replaces raw.
func (w *idWriter) unique(raw string) string {
	if w.native(raw) && !w.taken[raw] {
		return raw
	}
	base := alnum(raw)
	sum := sha256.Sum256([]byte(raw))
	hash := hex.EncodeToString(sum[:])
	if w.SanitizeCallIDs == IDsStrict9 {
		id := hash[:strict9Len]
		if len(base) >= strict9Len {
			id = base[:strict9Len]
		}
		for w.taken[id] {
			w.tries[raw]++
			sum = sha256.Sum256([]byte(raw + "#" + strconv.Itoa(w.tries[raw])))
			id = hex.EncodeToString(sum[:])[:strict9Len]
		}
		return id
	}
	if base == "" {
		base = "toolcall"
	}
	id := base[:min(len(base), strictLen)]
	for w.taken[id] {
		suffix := hash[:8]
		w.tries[raw]++
		if n := w.tries[raw]; n > 1 {
			suffix += "x" + strconv.Itoa(n)
		}
		id = base[:min(len(base), strictLen-len(suffix))] + suffix
	}
	return id
}

func (w *idWriter) native(id string) bool {
	if rest, ok := strings.CutPrefix(id, "toolu_"); ok && w.KeepNativeIDs {
		return rest != "" && len(id) <= 64 && alnum(strings.ReplaceAll(rest, "_", "")) == strings.ReplaceAll(rest, "_", "")
	}
	return w.SanitizeCallIDs == IDsStrict && isKimi(id)
}

// isKimi reports whether id has the form functions.<name>:<number>.
func isKimi(id string) bool {
	rest, ok := strings.CutPrefix(id, "functions.")
	name, number, found := strings.Cut(rest, ":")
	if !ok || !found || !validName(name) || number == "" {
		return false
	}
	return strings.Trim(number, "0123456789") == ""
}

// alnum returns s without everything but ASCII letters and digits.
func alnum(s string) string {
	clean := true
	for i := range len(s) {
		clean = clean && isAlnum(s[i])
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if isAlnum(s[i]) {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
