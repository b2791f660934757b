package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/drawn"
)

// Results are named by the bytes of their messages, however many of those were known from the result before.
func TestResultsAreNamedByTheirBytes(t *testing.T) {
	id := core.SessionID{Agent: "a", Session: "s"}
	r := drawn.Rand(t)
	known := newTranscripts(10_000)
	var raw []json.RawMessage
	for round := range 300 {
		switch at := r.IntN(len(raw) + 1); r.IntN(6) {
		case 0: // a step: the front leaves
			raw = slices.Clone(raw[at/2:])
		case 1: // the same text, other bytes
			for i := range raw[at:] {
				raw[at+i] = bytes.Clone(raw[at+i])
			}
		case 2: // another text of the same length in its place
			if at < len(raw) {
				b := bytes.Clone(raw[at])
				b[len(b)-2] ^= 1
				raw = slices.Clone(raw)
				raw[at] = b
			}
		default:
			raw = append(slices.Clone(raw), json.RawMessage(fmt.Sprintf(`"%d"`, round)), json.RawMessage(`"twice"`))
		}
		got := known.hashes(id, raw)
		for i := range raw {
			if got[i] != hashOf(raw[i]) {
				t.Fatalf("round %d: message %d has another's hash", round, i)
			}
		}
		messages := make([]message.Message, len(raw))
		for i := range raw {
			messages[i] = message.New(message.User, string(raw[i]))
		}
		name := known.output(id, got, raw, messages)
		if fresh := newTranscripts(10_000).output(id, got, raw, make([]message.Message, len(raw))); name != fresh {
			t.Fatalf("round %d: %s, and %s where nothing is known", round, name, fresh)
		}
		if round%3 == 0 { // handed back
			if digest, ok := known.begin(id, len(raw), name); !ok || digest != message.DigestOf(messages) {
				t.Fatalf("round %d: the digest of what is handed back is %q, %t, want %q", round, digest, ok, message.DigestOf(messages))
			}
		}
	}
	if _, _, same := known.unchanged(id, raw); slices.Contains(same, false) {
		t.Error("a result that is given again is hashed again")
	}
	if _, _, same := known.unchanged(core.SessionID{Agent: "a", Session: "other"}, raw); slices.Contains(same, true) {
		t.Error("another session has its messages")
	}
}

// The bytes of no more than maxResults results are held.
func TestHeldResultsAreBounded(t *testing.T) {
	known := newTranscripts(10_000)
	raw := []json.RawMessage{json.RawMessage(`"m"`)}
	for i := range 2 * maxResults {
		id := core.SessionID{Agent: "a", Session: fmt.Sprint(i)}
		known.output(id, known.hashes(id, raw), raw, make([]message.Message, 1))
	}
	held := 0
	for e := known.recent.Front(); e != nil; e = e.Next() {
		for _, k := range e.Value.(*remembered).lists {
			if k.raw != nil {
				held++
			}
		}
	}
	if held != maxResults {
		t.Errorf("%d results are held, want %d", held, maxResults)
	}
}

// A message is found at the place behind the last one, else where it stands first, also after the list changed.
func TestPlaces(t *testing.T) {
	h := func(text string) hash { return hashOf([]byte(text)) }
	list := func(texts ...string) []hash {
		var out []hash
		for _, text := range texts {
			out = append(out, h(text))
		}
		return out
	}
	k := &known{}
	k.follow(0, list("a", "b", "a", "c"))
	check := func(text string, after, total, want int) {
		t.Helper()
		if got := k.place(h(text), after, total); got != want {
			t.Errorf("place(%q, %d, %d) = %d, want %d", text, after, total, got, want)
		}
	}
	check("a", -1, 4, 0)
	check("a", 1, 4, 2)
	check("a", 2, 4, 0)
	check("c", -1, 3, -1)
	check("c", -1, 4, 3)
	k.follow(1, list("c", "b"))
	check("c", -1, 4, 1)
	check("b", 0, 4, 2)
	check("b", -1, 4, 2)
	k.follow(3, list("d"))
	check("d", -1, 4, 3)
	check("x", -1, 4, -1)
}
