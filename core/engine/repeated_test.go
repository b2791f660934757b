package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/drawn"
)

// called makes messages of words, of the role that their first letter says, which the host calls by the same name whenever it says the same.
func called(by, words string) []message.Message {
	var out []message.Message
	for w := range strings.FieldsSeq(words) {
		m := message.New(map[byte]message.Role{'u': message.User, 'a': message.Assistant, 's': message.System}[w[0]], w)
		switch by {
		case "key":
			m.Key = w
		case "id":
			m.ID = w
		case "time":
			n, _ := strconv.Atoi(w[1:])
			m.Time = time.Unix(1_800_000_000+int64(n), 0).UTC()
		}
		out = append(out, m)
	}
	return out
}

// sound fails the test when the session's view and the store's entries do not agree.
func (f *fixture) sound() {
	f.t.Helper()
	for flaw, err := range engine.Flaws(f.t.Context(), f.parts.Store) {
		f.t.Errorf("%v, error %v", flaw, err)
	}
}

// TestRepeatedMessages: a transcript that lists a message more than once, with all that its host knows it by, shows it as often, and is compacted like any other.
func TestRepeatedMessages(t *testing.T) {
	for name, lists := range map[string][]string{
		"in the midst":             {"u1 a2 u3 a4", "u1 a2 u1 u3 a4 u5 a6"},
		"at the end":               {"u1 a2 u3 a4", "u1 a2 u3 a4 u1"},
		"at the end, once more":    {"u1 a2 u3 a4", "u1 a2 u3 a4 u1", "u1 a2 u3 a4 u1 u1 a4"},
		"in front of what is new":  {"u1 a2", "u1 a2 u1 u3 a2 a4"},
		"in front":                 {"u1 a2 u3 a4", "u3 u1 a2 u3 a4"},
		"at once":                  {"u1 a2 u1 u1 a4 u5 a6"},
		"taken back, and again":    {"u1 a2 u1 u3 a4", "u1 a2", "u1 a2 u1 u3 a4"},
		"after a rewind":           {"u1 a2 u3 a4 u5 a6", "u1 a2", "u1 a2 u7 u3 a4 u1 a8"},
		"after a reset":            {"u1 a2 u1 a4", "u7 a8", "u7 u1 u1 u1 a2"},
		"a system message":         {"s0 u1 a2 u3", "s0 u1 a2 s0 u3 a4"},
		"a system message, later":  {"s0 u1 a2", "s0 u1 a2 u3 s0 u5"},
		"two new system messages":  {"u1 a2", "s0 s0 u1 a2 u3 a4 u5 a6"},
		"with another one changed": {"u1 a2 u3 a4", "u1 a2 u1 u7 a4 u5"},
	} {
		for _, by := range []string{"id", "key"} {
			for _, viewed := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s by %s, views kept %t", name, by, viewed), func(t *testing.T) {
					f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
						if !viewed {
							p.Store = viewless{p.Store}
						}
					})
					for _, list := range lists {
						f.assemble(1000, transcript("now", called(by, list)...))
					}
					last := lists[len(lists)-1]
					stored := f.stored()
					for range 2 {
						if got := shown(f.assemble(1000, transcript("now", called(by, last)...))); got != strings.Join(strings.Fields(last), " | ") {
							t.Errorf("the host shows %q, the window is %q", last, got)
						}
						if n := f.stored(); n != stored {
							t.Errorf("the same list again stores %d more", n-stored)
						}
						f.sound()
						f.restart()
					}
					if res := f.compact(1000); !res.OK || !res.Compacted {
						t.Errorf("Compact = %+v", res)
					}
				})
			}
		}
	}
}

// TestRepeatedElsewhere: the same where the host repeats nothing of what it knows to be known.
func TestRepeatedElsewhere(t *testing.T) {
	f := newFixture(t)
	list := called("id", "u1 a2 u3 a4")
	d := message.DigestOf(list)
	f.assemble(1000, transcript("now", list...))
	all := called("id", "u1 a2 u3 a4 u1 u5 a6")
	_, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 1000, Transcript: &core.Transcript{Skipped: 4, Digest: d, Messages: all[4:]}})
	if got := shown(f.assemble(1000, transcript("now", all...))); got != "u1 | a2 | u3 | a4 | u1 | u5 | a6" {
		t.Errorf("the window is %q, with what is new alone: %v", got, err)
	}
	f.sound()
}

// TestMovedMessages: what a host calls by one name is one message, also where the list that it stands in now does not show all that stood in front of it. What stands
// in front of the first message that the host shows is only not shown.
func TestMovedMessages(t *testing.T) {
	for name, c := range map[string]struct {
		lists []string
		want  string
	}{
		"behind the first one shown": {[]string{"u1 a2 u3 a4", "u3 a2 a4 u5 u6"}, "u1 u3 a2 a4 u5 u6"},
		"at the end":                 {[]string{"u1 a2 u3 a4", "u3 a4 a2 u5"}, "u1 u3 a4 a2 u5"},
		"all of them":                {[]string{"u1 a2 u3 a4", "u3 a4 a2 u1"}, "u3 a4 a2 u1"},
		"one of two that say it":     {[]string{"u1 a2 u1 u3 a4", "u3 u1 a4"}, "a2 u1 u3 u1 a4"},
		"behind the first of all":    {[]string{"u1 a2 u3 a4", "u3 a7 u1 a4"}, "a2 u3 a7 u1 a4"},
		"what stood in front":        {[]string{"u1 a2 u3 a4", "u9 u3 a4", "u3 a4 u9 u5"}, "u1 a2 u3 a4 u9 u5"},
	} {
		for _, by := range []string{"id", "key", "time"} {
			for _, whole := range []bool{false, true} {
				if whole && name == "what stood in front" {
					continue // there it replaces what was before
				}
				t.Run(fmt.Sprintf("%s by %s, whole %t", name, by, whole), func(t *testing.T) {
					f := newFixture(t)
					for _, list := range append(c.lists, c.lists[len(c.lists)-1]) {
						got := shown(f.assemble(1000, transcript("now", called(by, list)...), func(r *core.AssembleRequest) { r.Transcript.Whole = whole }))
						if list == c.lists[len(c.lists)-1] && got != strings.Join(strings.Fields(c.want), " | ") {
							t.Errorf("the host shows %q, the window is %q, want %q", list, got, c.want)
						}
						f.sound()
						f.restart()
					}
				})
			}
		}
	}
}

// TestHeadInItsOrder: what stands in front of the first message that is known is shown in the host's order, also where some of it is known from such a place, and
// where what it was put in front of moved.
func TestHeadInItsOrder(t *testing.T) {
	for name, c := range map[string]struct {
		lists []string
		want  string
	}{
		"in front of more":                                {[]string{"u1 a2 u3 a4", "u9 u3 a4", "u9 a2 u3 a4 u5"}, "u1 u9 a2 u3 a4 u5"},
		"a new one in front of it":                        {[]string{"u1 a2 u3 a4", "u9 u3 a4", "u10 u9 u3 a4"}, "u1 a2 u10 u9 u3 a4"},
		"two the other way round":                         {[]string{"u1 a2 u3 a4", "u9 u10 u3 a4", "u10 u9 u3 a4"}, "u1 a2 u10 u9 u3 a4"},
		"in front of what others passed":                  {[]string{"u1 a2 u3 a4", "u9 u3 a2 u1"}, "u9 u3 a2 u1"},
		"behind the first one those that stood elsewhere": {[]string{"u1 a2 u3 a4 u5 a6", "u1 a6 a4 u5", "u1 a6 a4 u5 u7"}, "u1 a6 a4 u5 u7"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var got string
			for _, list := range c.lists {
				got = shown(f.assemble(1000, transcript("now", called("", list)...)))
				f.sound()
				f.restart()
			}
			if got != strings.Join(strings.Fields(c.want), " | ") {
				t.Errorf("the host shows %q, the window is %q, want %q", c.lists, got, c.want)
			}
		})
	}
}

// TestDrawnTranscripts: whatever a host makes of its list, what it shows is shown in that order, nothing more often than it ever said it, and each list again
// stores nothing.
func TestDrawnTranscripts(t *testing.T) {
	r := drawn.Rand(t)
	for range 60 {
		viewed := r.IntN(2) == 0
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
			if !viewed {
				p.Store = viewless{p.Store}
			}
		})
		var host []string
		most, said := make(map[string]int), 0
		for range 12 {
			for range 1 + r.IntN(3) {
				said++
				host = reworked(r, host, []string{"u", "a"}[said%2]+strconv.Itoa(said))
			}
			count := make(map[string]int)
			for _, w := range host {
				count[w]++
				most[w] = max(most[w], count[w])
			}
			whole := r.IntN(2) == 0
			ask := func() string {
				return shown(f.assemble(10000, transcript("now", called("id", strings.Join(host, " "))...), func(q *core.AssembleRequest) { q.Transcript.Whole = whole }))
			}
			got := ask()
			times, rest := make(map[string]int), host
			for w := range strings.SplitSeq(got, " | ") {
				if times[w]++; times[w] > most[w] {
					t.Fatalf("the host shows %q (whole: %t, views: %t), the window is %q: %s too often", host, whole, viewed, got, w)
				}
				if len(rest) > 0 && rest[0] == w {
					rest = rest[1:]
				}
			}
			if len(rest) > 0 {
				t.Fatalf("the host shows %q (whole: %t, views: %t), the window is %q", host, whole, viewed, got)
			}
			f.sound()
			if viewed && r.IntN(3) == 0 { // without views a new process does not know what was taken back
				f.restart()
			}
			stored := f.stored()
			if again := ask(); again != got || f.stored() != stored {
				t.Fatalf("the host shows %q (whole: %t, views: %t), the window is %q, and then %q, with %d more stored", host, whole, viewed, got, again, f.stored()-stored)
			}
		}
	}
}

// reworked is a list of words that a host made something of: it added one, said one again, moved or deleted one, or went back.
func reworked(r *rand.Rand, host []string, word string) []string {
	if len(host) < 2 {
		return append(host, word)
	}
	at, to := r.IntN(len(host)), r.IntN(len(host))
	w := host[at]
	switch r.IntN(8) {
	case 0:
		return slices.Insert(slices.Clone(host), to, w)
	case 1:
		return slices.Insert(slices.Delete(slices.Clone(host), at, at+1), to, w)
	case 2:
		return slices.Delete(slices.Clone(host), at, at+1)
	case 3:
		return slices.Clone(host[:at+1])
	case 4:
		return slices.Insert(slices.Clone(host), to, word)
	}
	return append(slices.Clone(host), word)
}

// TestCutToWhatWasSaidTwice: a list may be what was said first as well as what was said last. The names that its host has for messages tell which.
func TestCutToWhatWasSaidTwice(t *testing.T) {
	for _, by := range []string{"id", "key", "time"} {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, whole %t", by, whole), func(t *testing.T) {
				host := called(by, "u1 a2 u3 a4 u5 a6")
				for i := range host[:2] {
					host[4+i].Parts = host[i].Parts
				}
				for _, c := range []struct {
					list []message.Message
					want string
				}{{host[4:], "u1 | a2 | u3 | a4 | u1 | a2"}, {host[:2], "u1 | a2"}} {
					f := newFixture(t)
					for _, list := range [][]message.Message{host, c.list} {
						f.restart()
						if got := shown(f.assemble(1000, transcript("now", list...), func(r *core.AssembleRequest) { r.Transcript.Whole = whole })); len(list) == 2 && got != c.want {
							t.Errorf("the host shows %+v: the window is %q, want %q", list, got, c.want)
						}
					}
				}
			})
		}
	}
}
