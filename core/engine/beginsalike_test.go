package engine_test

import (
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// After a reset the first message may say what the first one before said: "hi", or a greeting of the host. Under another name it is another one.
func TestResetBeginsAlike(t *testing.T) {
	for _, named := range []string{"id", "key", "time"} {
		for _, whole := range []bool{false, true} {
			f := newFixture(t)
			n := 0
			name := func(m message.Message) message.Message {
				n++
				return namedBy(named, n, m)
			}
			w := func(r *core.AssembleRequest) { r.Transcript.Whole = whole }
			f.assemble(1000, transcript("", name(user("hi")), name(assistant("hello")), name(user("q1")), name(assistant("a1"))), w)
			hi := name(user("hi"))
			f.assemble(1000, transcript("", hi), w)
			res := f.assemble(1000, transcript("", hi, name(assistant("welcome back")), name(user("q2"))), w)
			first := res.Messages[0]
			if got := f.stored(); got != 7 || first.ID != hi.ID || first.Key != hi.Key || !first.Time.Equal(hi.Time) {
				t.Errorf("by %s, whole %t: %d stored, want 7; the window begins with id %q key %q time %v, want %q %q %v", named, whole, got, first.ID, first.Key, first.Time, hi.ID, hi.Key, hi.Time)
			}
		}
	}
}
