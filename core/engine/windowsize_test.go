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

// TestWhatAWindowTakesInMemory: everything that a message consists of counts where windows are held to a bound: of two sessions with half of it each and a little more, the one
// used last is in memory. Short ones are all there.
func TestWhatAWindowTakesInMemory(t *testing.T) {
	long := strings.Repeat("x", 600<<10)
	part := func(p message.Part) message.Message {
		return message.Message{Role: message.User, Parts: []message.Part{p}}
	}
	for name, c := range map[string]struct {
		said  func(n int) []message.Message
		reads bool
	}{
		"short":          {func(n int) []message.Message { return one(user(fmt.Sprint(n))) }, false},
		"a text":         {func(n int) []message.Message { return one(user(long)) }, true},
		"original bytes": {func(n int) []message.Message { m := user(fmt.Sprint(n)); m.Raw = []byte(long); return one(m) }, true},
		"bytes of a part": {func(n int) []message.Message {
			return one(part(message.Part{Kind: message.Text, Text: "hi", Raw: []byte(long)}))
		}, true},
		"an image": {func(n int) []message.Message { return one(part(message.Part{Kind: message.Image, Raw: []byte(long)})) }, true},
		"arguments": {func(n int) []message.Message {
			c := calling("c")
			c.Parts[0].Args = `"` + long + `"`
			return one(user("hi"), c, resulting("c", "ok"))
		}, true},
		"a result":         {func(n int) []message.Message { return one(user("hi"), calling("c"), resulting("c", long)) }, true},
		"more than all":    {func(n int) []message.Message { return one(user(long), assistant(long)) }, true},
		"many short ones":  {func(n int) []message.Message { return turns(250) }, true},
		"fewer short ones": {func(n int) []message.Message { return turns(150) }, false},
	} {
		store := &countedStore{Store: memory.New()}
		f := newFixture(t, func(cfg *engine.Config, p *engine.Parts) { cfg.Window.Memory, p.Store = 1, store })
		shows := func(n int) {
			f.assemble(1e6, func(r *core.AssembleRequest) { r.Session.Session = fmt.Sprint(n) })
		}
		for n := range 2 {
			f.say(core.SessionID{Agent: "main", Session: fmt.Sprint(n)}, false, c.said(n)...)
			shows(n)
		}
		store.reset()
		shows(1)
		if n := store.scans.Load(); n != 0 {
			t.Errorf("%s: the session used last is read %d times", name, n)
		}
		if shows(0); (store.scans.Load() > 0) != c.reads {
			t.Errorf("%s: the session used before is read anew: %t, want %t", name, !c.reads, c.reads)
		}
	}
}

// TestSessionUsedLast: of the sessions in memory it is the one that was used longest ago that leaves, not the one that came first.
func TestSessionUsedLast(t *testing.T) {
	store := &countedStore{Store: memory.New()}
	f := newFixture(t, func(cfg *engine.Config, p *engine.Parts) { cfg.Window.Memory, p.Store = 1, store })
	shows := func(n int) bool {
		store.reset()
		f.assemble(1e6, func(r *core.AssembleRequest) { r.Session.Session = fmt.Sprint(n) })
		return store.scans.Load() > 0
	}
	for n := range 3 {
		f.say(core.SessionID{Agent: "main", Session: fmt.Sprint(n)}, false, user(strings.Repeat("x", 400<<10)))
	}
	shows(0)
	shows(1)
	shows(0)
	shows(2)
	if shows(0) || !shows(1) {
		t.Error("the session that came first has left, or the one used longest ago has not")
	}
}

// TestSessionsInMemoryAreBounded: of more sessions than are kept in memory, the one used longest ago is read anew, and no other.
func TestSessionsInMemoryAreBounded(t *testing.T) {
	const most = 4096
	store := &countedStore{Store: memory.New()}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
	reads := func(n int) bool {
		store.reset()
		if _, err := f.engine.Bootstrap(t.Context(), core.BootstrapRequest{Session: core.SessionID{Agent: "main", Session: fmt.Sprint(n)}}); err != nil {
			t.Fatal(err)
		}
		return store.loads.Load() > 0
	}
	for n := range most {
		reads(n)
	}
	if reads(0) || reads(1) {
		t.Error("a session that was used is read anew within the bound")
	}
	if !reads(most) || reads(0) || reads(1) || reads(3) || !reads(2) {
		t.Error("with one session more it is not the one used longest ago, and that alone, that is read anew")
	}
}
