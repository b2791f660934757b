package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestJoinedNeighbours: a host that merges what stands next to each other has said nothing new, and nothing is out of force.
func TestJoinedNeighbours(t *testing.T) {
	call := message.Message{Role: message.Assistant, Parts: []message.Part{
		{Kind: message.Text, Text: "looking"}, {Kind: message.ToolCall, CallID: "c1", Name: "read", Args: `{"path":"a"}`}}}
	result := message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: "c1", Name: "read", Text: "found"}}}
	for name, c := range map[string]struct {
		known, host []message.Message
		stored      int
		want        string
	}{
		"a failed turn's question": {
			known:  []message.Message{user("first try"), user("second try"), assistant("answer")},
			host:   []message.Message{user("first try\n\nsecond try"), assistant("answer")},
			stored: 3, want: "first try | second try | answer",
		},
		"blocks": {
			known: []message.Message{user("one"), user("two"), user("three"), assistant("answer")},
			host: []message.Message{
				{Role: message.User, Parts: []message.Part{{Kind: message.Text, Text: "one"}, {Kind: message.Text, Text: "two\nthree"}}}, assistant("answer")},
			stored: 4, want: "one | two | three | answer",
		},
		"an announced answer": {
			known:  []message.Message{user("go"), assistant("started"), call, result, assistant("done")},
			host:   []message.Message{user("go"), {Role: message.Assistant, Parts: append([]message.Part{{Kind: message.Text, Text: "started"}}, call.Parts...)}, result, assistant("done")},
			stored: 5, want: "go | started | looking | found | done",
		},
		"something else": {
			known:  []message.Message{user("one"), user("two"), assistant("answer")},
			host:   []message.Message{user("one\ntwo three"), assistant("answer")},
			stored: 4, want: "one | two | one\ntwo three | answer",
		},
		"a new question behind it": {
			known:  []message.Message{user("one"), user("two"), assistant("answer")},
			host:   []message.Message{user("one\ntwo"), assistant("answer"), user("next")},
			stored: 4, want: "one | two | answer | next",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.ingest(c.known...)
			for range 2 {
				res := f.assemble(1000, transcript("", c.host...))
				if got := shown(res); got != c.want {
					t.Errorf("shown %q, want %q", got, c.want)
				}
				if n := f.stored(); n != c.stored {
					t.Errorf("%d messages stored, want %d", n, c.stored)
				}
				f.restart()
			}
		})
	}
}

// TestJoinedWithErased: what was erased does not come back with the neighbour that a host merges it with.
func TestJoinedWithErased(t *testing.T) {
	code := "my code is " + secret
	block := func(texts ...string) message.Message {
		m := message.Message{Role: message.User}
		for _, text := range texts {
			m.Parts = append(m.Parts, message.Part{Kind: message.Text, Text: text})
		}
		return m
	}
	for name, c := range map[string]struct {
		known, host []message.Message
		want        string
	}{
		"first":         {[]message.Message{user(code), user("two"), assistant("three")}, []message.Message{user(code + "\n\ntwo"), assistant("three")}, "two | three"},
		"last":          {[]message.Message{user("one"), user(code), assistant("three")}, []message.Message{user("one\n" + code), assistant("three")}, "one | three"},
		"between":       {[]message.Message{user("one"), user(code), user("two")}, []message.Message{user("one\n" + code + "\ntwo")}, "one | two"},
		"several lines": {[]message.Message{user("one\n" + code), user("two\nthree")}, []message.Message{user("one\n" + code + "\ntwo\nthree")}, "two\nthree"},
		"blocks":        {[]message.Message{user(code), user("two"), assistant("three")}, []message.Message{block(code, "two"), assistant("three")}, "two | three"},
		"a growing one": {[]message.Message{user("one"), user(code), assistant("three")}, []message.Message{block("one", code), assistant("three"), user("four")}, "one | three | four"},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/restart %v", name, restart), func(t *testing.T) {
				f := newFixture(t)
				f.ingest(c.known...)
				f.assemble(1000, transcript("", c.known...))
				f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
				for range 2 {
					if restart {
						f.restart()
					}
					if got := shown(f.assemble(1000, transcript("", c.host...))); got != c.want {
						t.Errorf("shown %q, want %q", got, c.want)
					}
				}
				if got := f.traces(); got != nil {
					t.Errorf("stored again: %q", got)
				}
			})
		}
	}
}

// TestNeighboursAreReadTogether: what a host's merged message is compared with takes as many reads for many messages as for few, erased ones whose key is gone among them.
func TestNeighboursAreReadTogether(t *testing.T) {
	reads := func(n int) (scans, gets int64) {
		store := &countedStore{Store: memory.New()}
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
		f.store = store.Store
		var said []message.Message
		var text []string
		for i := range n {
			text = append(text, fmt.Sprint("message ", i))
			said = append(said, user(text[i]))
		}
		res := f.ingest(append(said, assistant("yes"))...)
		f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: res.IDs[:n/2]})
		secrets := core.Scope{Agent: f.id.Agent, Session: "contextengine-secrets"}
		page, err := store.Scan(t.Context(), core.ScanQuery{Scope: secrets, Limit: 2})
		if err != nil || len(page.Entries) != 1 {
			t.Fatalf("keys: %v, %v", page.Entries, err)
		}
		if _, err := store.Delete(t.Context(), secrets, []string{page.Entries[0].ID}); err != nil { // an export leaves it out
			t.Fatal(err)
		}
		f.restart()
		store.reset()
		f.assemble(10_000, transcript("", user(strings.Join(text, "\n")), assistant("yes")))
		return store.scans.Load(), store.gets.Load()
	}
	fewScans, fewGets := reads(4)
	scans, gets := reads(60)
	if scans != fewScans || gets != fewGets {
		t.Errorf("60 messages take %d scans and %d gets, 4 take %d and %d", scans, gets, fewScans, fewGets)
	}
}
