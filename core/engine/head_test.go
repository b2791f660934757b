package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

func system(text string) message.Message { return message.New(message.System, text) }

func filler(role message.Role, text string) message.Message {
	m := message.New(role, text)
	m.Type = message.Filler
	return m
}

// turns returns n turns whose messages are numbered.
func turns(n int) []message.Message {
	var out []message.Message
	for i := range n {
		out = append(out, user(fmt.Sprintf("question%d with a few more words in it", i)), assistant(fmt.Sprintf("answer%d in as many words as that", i)))
	}
	return out
}

// known returns the number of entries in force.
func (f *fixture) known() int {
	f.t.Helper()
	res, err := f.engine.Bootstrap(f.t.Context(), core.BootstrapRequest{Session: f.id})
	if err != nil {
		f.t.Fatal(err)
	}
	return res.Known
}

// finds reports whether searching finds a message that says a word.
func (f *fixture) finds(word string) bool {
	f.t.Helper()
	res, err := f.engine.Search(f.t.Context(), engine.SearchRequest{Session: f.id, Query: word})
	if err != nil {
		f.t.Fatal(err)
	}
	return slices.ContainsFunc(res.Found, func(e engine.Found) bool { return strings.Contains(e.Excerpt, word) })
}

func join(lists ...[]message.Message) []message.Message { return slices.Concat(lists...) }

func one(m ...message.Message) []message.Message { return m }

// What stands at the head of a transcript, and what becomes of what was known before.
func TestHeadOfATranscript(t *testing.T) {
	base := []message.Message{user("q1"), assistant("a1"), user("q2"), assistant("a2"), user("q3"), assistant("a3")}
	withSystem := join(one(system("s1")), base)
	for _, tc := range []struct {
		name  string
		known []message.Message
		lists [][]message.Message
		whole bool
		want  string
		gone  []string
	}{
		{"a known message", base, [][]message.Message{base[3:]}, false, "q1 | a1 | q2 | a2 | q3 | a3", nil},
		{"a known message of a whole list", base, [][]message.Message{base[3:]}, true, "q1 | a1 | q2 | a2 | q3 | a3", nil},
		{"a filler that is known", base, [][]message.Message{
			join(one(filler(message.User, "go on")), base[1:]), join(one(filler(message.User, "go on")), base[3:]),
		}, false, "q1 | a1 | q2 | a2 | q3 | a3", nil},
		{"a line nobody knows, ever the same", base, [][]message.Message{
			join(one(user("(begin)")), base[1:]), join(one(user("(begin)")), base[3:]), base[4:],
		}, false, "q1 | (begin) | a1 | q2 | a2 | q3 | a3", nil},
		{"a line nobody knows, ever new", base, [][]message.Message{
			join(one(user("(at 12)")), base[1:]), join(one(user("(at 13)")), base[3:]), base[4:],
		}, false, "q1 | (at 12) | a1 | q2 | (at 13) | a2 | q3 | a3", nil},
		{"a line nobody knows, and then none", base, [][]message.Message{
			join(one(user("(begin)")), base[1:]), base,
		}, false, "q1 | a1 | q2 | a2 | q3 | a3", []string{"(begin)"}},
		{"a line nobody knows in front of all, and later of the end", nil, [][]message.Message{
			join(one(user("(begin)")), base[1:]), join(one(user("(begin)")), base[3:]),
		}, false, "(begin) | a1 | q2 | a2 | q3 | a3", nil},
		{"the first message, a line, and the end", base, [][]message.Message{join(base[:1], one(user("(cut)")), base[4:])}, false, "q1 | a1 | q2 | a2 | (cut) | q3 | a3", nil},
		{"another first message", base, [][]message.Message{join(one(user("Q1")), base[1:])}, false, "q1 | Q1 | a1 | q2 | a2 | q3 | a3", nil},
		{"another first message of a whole list", base, [][]message.Message{join(one(user("Q1")), base[1:])}, true, "Q1 | a1 | q2 | a2 | q3 | a3", []string{"q1"}},
		{"another second message", base, [][]message.Message{join(base[:1], one(assistant("A1")), base[2:])}, false, "q1 | A1 | q2 | a2 | q3 | a3", []string{"a1"}},
		{"earlier messages that were never seen", base[2:], [][]message.Message{base}, false, "q1 | a1 | q2 | a2 | q3 | a3", nil},
		{"another system message", withSystem, [][]message.Message{
			join(one(system("s2")), base), join(one(system("s3"), system("s4")), base), join(one(system("s5"), system("s4")), base[3:]),
		}, false, "s5 | s4 | q1 | a1 | q2 | a2 | q3 | a3", nil},
		{"the first system message again", withSystem, [][]message.Message{join(one(system("s2")), base), withSystem}, false, "s1 | q1 | a1 | q2 | a2 | q3 | a3", nil},
		{"a system message where there was none", base, [][]message.Message{withSystem, join(one(system("s2")), base[5:])}, false, "s2 | q1 | a1 | q2 | a2 | q3 | a3", nil},
		{"no system message in a list that was cut", withSystem, [][]message.Message{base[2:]}, false, "s1 | q1 | a1 | q2 | a2 | q3 | a3", nil},
		{"a system message from the midst", join(one(system("s1")), base[:2], one(system("mid")), base[2:]), [][]message.Message{
			join(one(system("mid")), base[2:]),
		}, false, "s1 | q1 | a1 | mid | q2 | a2 | q3 | a3", nil},
		{"a system message and a rewind", withSystem, [][]message.Message{join(one(system("s2")), base[:2], one(user("other")))}, false, "s2 | q1 | a1 | other", []string{"q2", "a2", "q3", "a3"}},
		{"a system message and a reset", withSystem, [][]message.Message{one(system("s2"), user("new")), one(system("s3"), user("new"))}, false, "s3 | new", []string{"q1", "a1", "q2", "a2", "q3", "a3"}},
		{"the same said again behind a cut", join(base[:1], one(assistant("ok")), base[2:5]), [][]message.Message{join(base[4:5], one(assistant("ok")))}, false, "q1 | ok | q2 | a2 | q3 | ok", nil},
		{"the same said again behind the first message, a line, and the end", join(base[:1], one(assistant("ok")), base[2:5]), [][]message.Message{
			join(base[:1], one(user("(cut)")), base[4:5], one(assistant("ok"))),
		}, false, "q1 | ok | q2 | a2 | (cut) | q3 | ok", nil},
		{"the first message, and what was said behind it: a rewind", join(base[:1], one(assistant("ok")), base[2:5]), [][]message.Message{
			join(base[:1], one(assistant("ok"))),
		}, false, "q1 | ok", []string{"q2", "a2", "q3"}},
		{"the first message, a filler, and what was said behind it: a rewind", join(base[:1], one(assistant("ok")), base[2:5]), [][]message.Message{
			join(base[:1], one(filler(message.User, "note")), one(assistant("ok"))),
		}, false, "q1 | ok", []string{"q2", "a2", "q3"}},
		{"the first message, a line, and what was said behind it: a rewind", join(base[:1], one(assistant("ok")), base[2:5]), [][]message.Message{
			join(base[:1], one(user("(cut)")), one(assistant("ok"))),
		}, false, "q1 | (cut) | ok", []string{"q2", "a2", "q3"}},
		{"a rewind to a beginning that was said twice", join(base[:4], base[:2]), [][]message.Message{base[:2]}, false, "q1 | a1", []string{"q2", "a2"}},
		{"a rewind to a beginning that was said twice, behind a system message", join(withSystem[:5], base[:1]), [][]message.Message{join(withSystem[:2], one(user("new")))}, true,
			"s1 | q1 | new", []string{"a1", "q2", "a2"}},
		{"a list that was cut to what was said twice, and said on", join(base[:4], base[:1]), [][]message.Message{join(base[:1], one(user("new")))}, false,
			"q1 | a1 | q2 | a2 | q1 | new", nil},
		{"a line nobody knows, and a rewind to what was said twice", join(base[:2], base[2:3], base[1:2], base[4:]), [][]message.Message{
			join(one(user("(begin)")), base[1:2], base[2:3], base[1:2], base[4:]), join(base[:2], one(user("new"))),
		}, false, "q1 | a1 | new", []string{"(begin)", "q2", "q3", "a3"}},
		{"a system message where there was none, and a reset", base, [][]message.Message{join(one(system("s2")), base), one(system("s2"), user("new"))}, false, "s2 | new", []string{"q1", "a1", "q2", "a2", "q3", "a3"}},
		{"a filler in the midst", base, [][]message.Message{join(base[:3], one(filler(message.Assistant, "left out")), base[4:])}, false, "q1 | a1 | q2 | a2 | q3 | a3", nil},
		{"a filler at the end", base, [][]message.Message{join(base[:5], one(filler(message.Assistant, "left out")), one(user("q4")))}, false, "q1 | a1 | q2 | a2 | q3 | a3 | q4", nil},
		{"a filler at the end, and a rewind", base, [][]message.Message{join(base[:3], one(filler(message.Assistant, "left out")), one(user("q4")))}, false, "q1 | a1 | q2 | a2 | q4", []string{"q3", "a3"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			if len(tc.known) > 0 {
				f.assemble(1000, transcript("now", tc.known...))
			}
			tell := func(list []message.Message) string {
				return shown(f.assemble(1000, transcript("now", list...), func(r *core.AssembleRequest) { r.Transcript.Whole = tc.whole }))
			}
			for _, list := range tc.lists {
				tell(list)
				f.restart()
			}
			last := tc.lists[len(tc.lists)-1]
			stored := f.stored()
			if got := tell(last); got != tc.want {
				t.Errorf("window = %q, want %q", got, tc.want)
			}
			if n := f.stored(); n != stored {
				t.Errorf("the same list again stores %d more", n-stored)
			}
			for _, m := range slices.Concat(append(tc.lists, tc.known)...) {
				if found := f.finds(m.Text()); m.Type != message.Filler && found == slices.Contains(tc.gone, m.Text()) {
					t.Errorf("search finds %q: %t", m.Text(), found)
				}
			}
		})
	}
}

// A host's own line in front of results whose call it cut off is taken for the line that it is, and not for all that was shown of what stood there before.
func TestLineInTheLoopInFrontOfLooseResults(t *testing.T) {
	f := newFixture(t)
	line := assistant("(earlier messages were cut)")
	call := calling("c1")
	call.Parts[0].Args = `{"of": "` + strings.Repeat("much ", 100) + `"}`
	begin := one(user("one"), call, resulting("c1", "two"), assistant("three"))
	more := one(calling("c2"), resulting("c2", "four"), assistant("five"))
	f.assemble(1000, transcript("", begin...))
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("one").ID}})
	if got, want := shown(f.assemble(100, transcript("", join(one(line), begin[2:], more)...))), "[2 earlier messages are stored but not shown.] | "+line.Text()+" | three |  | four | five"; got != want {
		t.Fatalf("window = %q, want %q: nothing is tested", got, want)
	}
	f.assemble(100, transcript("now", join(one(line), more[1:], one(assistant("six")))...), inLoop)
	for _, word := range []string{"two", "three", "four", "five", "six"} {
		if !f.finds(word) {
			t.Errorf("%q is not in force any more", word)
		}
	}
}

// A host's own line in front of a list that was cut stands no more where the host shows all, also inside a turn, in whose course all of it was returned before.
func TestLineGoesOnceAllIsShown(t *testing.T) {
	for name, want := range map[string]string{"": "one | two", "behind it": "one", "in front of it": "two"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			all := one(user("one"), user("two"))
			f.assemble(1000, transcript("now", all...), inLoop)
			if got := shown(f.assemble(1000, transcript("now", user("(earlier messages were cut)"), all[1]), inLoop)); got != "one | (earlier messages were cut) | two" {
				t.Fatalf("window = %q: nothing is tested", got)
			}
			for _, m := range all {
				if !strings.Contains(want, m.Text()) {
					f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(m.Text()).ID}})
				}
			}
			if got := shown(f.assemble(1000, transcript("now", all...), inLoop)); got != want {
				t.Errorf("window = %q, want %q", got, want)
			}
		})
	}
}

// A system message that comes with a cut in the path is not all that a small window has room for.
func TestSystemMessageBehindALongAnswer(t *testing.T) {
	f := newFixture(t)
	f.assemble(5000, transcript("now", system("s1"), user("q1"), assistant("a1")))
	long := assistant("long " + strings.Repeat("word ", 400))
	if got := shown(f.assemble(100, transcript("now", system("s2"), user("q1"), long), inLoop)); !strings.Contains(got, "long") || !strings.HasPrefix(got, "s2") {
		t.Errorf("window = %q, want the newest message", got)
	}
}

// What came in the midst of what was known is found there when the view that says so could not be published.
func TestMiddleOfATranscriptOverACrash(t *testing.T) {
	disk := &fullDisk{Store: memory.New()}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = disk })
	f.store = disk.Store
	f.ingest(user("q1"), assistant("a1"), user("q2"))
	all := one(user("q1"), assistant("a1"), assistant("by the way"), user("well"), user("q2"), assistant("a2"))
	disk.noViews = true
	_, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 1000, Transcript: &core.Transcript{Messages: all, Whole: true}})
	if disk.noViews = false; err != nil || f.stored() != len(all) {
		t.Fatalf("%d stored: nothing is tested", f.stored())
	}
	f.restart()
	const want = "q1 | a1 | by the way | well | q2 | a2"
	for range 2 {
		if got := shown(f.assemble(1000)); got != want {
			t.Errorf("window = %q, want %q", got, want)
		}
		f.assemble(1000, transcript("", join(one(filler(message.User, "go on")), all[3:])...))
	}
	if n := f.stored(); n != len(all) {
		t.Errorf("%d stored, want %d", n, len(all))
	}
}

// A system prompt with a clock in it costs no more with every turn.
func TestSystemMessageThatChangesEveryTurn(t *testing.T) {
	f := newFixture(t)
	const budget, many = 8000, 120
	for turn := range many {
		prompt := system(fmt.Sprintf("clock%d %s", turn, strings.Repeat("rule ", 298)))
		if turn%20 == 10 {
			f.restart()
		}
		res := f.assemble(budget, transcript("now", join(one(prompt), turns(turn))...))
		n := 0
		for i, m := range res.Messages {
			if m.Role == message.System {
				n++
				if i != 0 || !strings.HasPrefix(m.Text(), fmt.Sprintf("clock%d ", turn)) {
					t.Fatalf("turn %d: message %d is the system message %.20q", turn, i, m.Text())
				}
			}
		}
		if n != 1 {
			t.Fatalf("turn %d: %d system messages", turn, n)
		}
	}
	for _, word := range []string{"clock0", "clock60", "question0", "answer60"} {
		if !f.finds(word) {
			t.Errorf("search does not find %q", word)
		}
	}
	v, err := f.store.LoadView(t.Context(), f.id)
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Path) > 2 {
		t.Errorf("the path has %d spans", len(v.Path))
	}
}

// What a host shows of a long session moves nothing: neither what is in force, nor the window, nor the note in front of it.
func TestHeadOfALongSession(t *testing.T) {
	for _, line := range []func(i int) message.Message{
		func(int) message.Message { return filler(message.User, "(begin)") },
		func(int) message.Message { return user("(begin)") },
		func(i int) message.Message { return user(fmt.Sprintf("(begin at %d)", i)) },
		func(i int) message.Message {
			return message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: fmt.Sprint(i), Text: fmt.Sprint("nothing ", i)}}}
		},
	} {
		f := newFixture(t)
		all := turns(60)
		f.ingest(all...)
		before := shown(f.assemble(300, transcript("now", all...)))
		if !strings.Contains(before, "earlier messages") || f.known() != len(all) {
			t.Fatalf("window = %q, %d known", before, f.known())
		}
		for i, from := range []int{3, 41, 42, 61, 79, 80} {
			if got := shown(f.assemble(300, transcript("now", join(one(line(i)), all[from:])...))); got != before {
				t.Errorf("head %q, list from %d on: window\n%q, want\n%q", line(i).Text(), from, got, before)
			}
			if i%2 == 0 {
				f.restart()
			}
		}
		if n := f.known(); n < len(all) {
			t.Errorf("head %q: %d known, want %d", line(0).Text(), n, len(all))
		}
		for i := range 60 {
			if !f.finds(fmt.Sprintf("question%d", i)) || !f.finds(fmt.Sprintf("answer%d", i)) {
				t.Errorf("head %q: turn %d is not found", line(0).Text(), i)
			}
		}
	}
}

// TestSystemMessageOfAnEmptySession: a system message that comes after somebody asked for the window of an empty session stands in front like any other.
func TestSystemMessageOfAnEmptySession(t *testing.T) {
	said := []message.Message{message.New(message.System, "be brief"), user("hello")}
	for name, comes := range map[string]func(f *fixture) core.AssembleResult{
		"ingested": func(f *fixture) core.AssembleResult {
			f.ingest(said...)
			return f.assemble(1000)
		},
		"in a transcript": func(f *fixture) core.AssembleResult { return f.assemble(1000, transcript("", said...)) },
		"inside a turn":   func(f *fixture) core.AssembleResult { return f.assemble(1000, transcript("", said...), inLoop) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.assemble(1000)
			if got := shown(comes(f)); got != "be brief | hello" {
				t.Errorf("shown: %s", got)
			}
		})
	}
}

// TestSystemMessageOverACrash: a system message that took the place of another one does so also when the view that says so could not be published.
func TestSystemMessageOverACrash(t *testing.T) {
	disk := &fullDisk{Store: memory.New()}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = disk })
	f.store = disk.Store
	f.assemble(1000, transcript("now", system("s1"), user("q1")))
	disk.noViews = true
	host := one(system("s2"), system("s3"), user("q1"), assistant("a1"))
	_, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 1000, Transcript: &core.Transcript{Messages: host}})
	if disk.noViews = false; err != nil || f.stored() != 5 {
		t.Fatalf("%d stored, error %v: nothing is tested", f.stored(), err)
	}
	f.restart()
	if got, want := shown(f.assemble(1000)), "s2 | s3 | q1 | a1"; got != want {
		t.Errorf("shown: %q, want %q", got, want)
	}
}

// TestSystemMessageBehindATimer: where all that was said is a timer's, which no window shows, a system message that comes inside a turn stands in front like any
// other, and another one takes its place.
func TestSystemMessageBehindATimer(t *testing.T) {
	f := newFixture(t)
	if err := tick(f); err != nil {
		t.Fatal(err)
	}
	f.assemble(1000)
	for _, text := range []string{"s1", "s2"} {
		if got, want := shown(f.assemble(1000, transcript("", system(text), user("q1")), inLoop)), text+" | q1"; got != want {
			t.Errorf("shown: %q, want %q", got, want)
		}
	}
}

// TestLineAmongWhatASummaryStandsFor: what comes late among messages that a summary stands for is behind it too, and nothing else comes out from behind it, also where
// the window is about to be sought. The note counts it from then on.
func TestLineAmongWhatASummaryStandsFor(t *testing.T) {
	for name, sought := range map[string]bool{"the window stays": false, "the window is sought": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			base := turns(6)
			f.assemble(1000, transcript("now", base...))
			if res := f.compact(1000); !res.Compacted {
				t.Fatalf("Compact = %+v", res)
			}
			want, front := shown(core.AssembleResult{Messages: base[10:]}), 1
			if sought {
				want, front = window.NotShown(1)+" | "+want, 2
				f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(base[1].Text()).ID}})
			}
			for range 2 {
				res := f.assemble(1000, transcript("now", join(one(user("(begin)")), base[3:])...))
				if got := shown(res); len(res.Messages) != front+2 || !strings.HasSuffix(got, want) {
					t.Errorf("window = %q, want %q behind a summary", got, want)
				}
				f.restart()
			}
		})
	}
}

// TestErasedSystemMessagesComeAgain: system messages that led, were erased and are said again still lead, and show nothing: neither moves what stands on the path.
func TestErasedSystemMessagesComeAgain(t *testing.T) {
	for _, restart := range []bool{false, true} {
		for _, viewed := range []bool{true, false} {
			t.Run(fmt.Sprintf("restart %t, views kept %t", restart, viewed), func(t *testing.T) {
				f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
					if !viewed {
						p.Store = viewless{p.Store}
					}
				})
				turn := func(prompt string, n int) {
					said := turns(n)
					if restart {
						f.restart()
					}
					all := said
					if prompt != "" {
						all = join(one(system(prompt)), said)
					}
					want := strings.Join(textsOf(said), " | ")
					if got := shown(f.assemble(100_000, transcript("now", all...))); !strings.HasSuffix(got, want) {
						t.Errorf("with %q shown: %q, want %q behind it", prompt, got, want)
					}
					f.sound()
				}
				turn("", 1)
				turn("red", 2)
				turn("", 3)
				turn("blue", 4)
				for _, word := range []string{"red", "blue"} {
					f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(word).ID}})
				}
				stored := f.stored()
				for n := range 6 {
					turn([]string{"blue", "red", "red", ""}[n%4], 5+n)
				}
				if n := f.stored() - stored; n != 12 {
					t.Errorf("%d entries stored since, want 12", n)
				}
				f.compact(60)
				f.sound()
			})
		}
	}
}

// TestErasedSystemMessageInTheMidstAndInFront: what was erased in front, is said again in the conversation, and then in front and in the conversation, stands in each place once.
func TestErasedSystemMessageInTheMidstAndInFront(t *testing.T) {
	f := newFixture(t)
	red, blue, green := system("red"), system("blue"), system("green")
	show := func(want string, said ...message.Message) {
		t.Helper()
		if got := shown(f.assemble(100_000, transcript("", said...))); got != want {
			t.Errorf("shown: %q, want %q", got, want)
		}
		f.sound()
	}
	show("red | blue | u1", red, blue, user("u1"))
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("red").ID}})
	show("u2", user("u2"))
	f.commit("k1", red)
	show("blue | u3 | u2 | a4", red, blue, user("u3"), user("u2"), assistant("a4"))
	f.commit("k2", red)
	for range 2 {
		show("green | u1 | u3 | u2 | a4 | a5 | u6", red, green, user("u1"), user("u3"), user("u2"), assistant("a4"), assistant("a5"), red, user("u6"))
		f.restart()
	}
	stored := f.stored()
	show("blue | u1 | u3 | u2 | a4 | a5 | u6", red, blue, user("u1"), user("u3"), user("u2"), assistant("a4"), assistant("a5"), red, user("u6"))
	if n := f.stored(); n != stored {
		t.Errorf("%d entries more are stored: they were known", n-stored)
	}
}

// TestWholeAfterTheSame: a list that is said to be whole is believed, also where it was handed over before without that.
func TestWholeAfterTheSame(t *testing.T) {
	known, list := one(user("A"), user("B"), user("C"), user("D")), one(user("A"), user("C"), user("D"), user("E"))
	whole := func(r *core.AssembleRequest) { r.Transcript.Whole = true }
	for how, first := range map[string]func(f *fixture){
		"by nobody":           func(*fixture) {},
		"without saying so":   func(f *fixture) { f.assemble(1000, transcript("now", list...)) },
		"shorter, not saying": func(f *fixture) { f.assemble(1000, transcript("now", list[:3]...)) },
		"by bootstrap": func(f *fixture) {
			if _, err := f.engine.Bootstrap(t.Context(), core.BootstrapRequest{Session: f.id, Transcript: &core.Transcript{Messages: list}}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %t", how, restart), func(t *testing.T) {
				f := newFixture(t)
				f.assemble(1000, transcript("now", known...), whole)
				first(f)
				if restart {
					f.restart()
				}
				for range 2 {
					if got := shown(f.assemble(1000, transcript("now", list...), whole)); got != "A | C | D | E" {
						t.Errorf("shown: %q", got)
					}
				}
			})
		}
	}
}

// TestWholeIsSaidOnce: what was whole and grew is known to be, so that a host may go on leaving out what did not change.
func TestWholeIsSaidOnce(t *testing.T) {
	f := newFixture(t)
	list := one(user("A"), assistant("B"))
	f.assemble(1000, transcript("now", list...), func(r *core.AssembleRequest) { r.Transcript.Whole = true })
	for n := range 3 {
		if n == 1 {
			f.restart()
		}
		f.commit(fmt.Sprint("turn ", n), user("now"), assistant("done"))
		list = append(list, user("now"), assistant("done"))
		f.assemble(1000, transcript("next"), func(r *core.AssembleRequest) {
			r.Transcript = &core.Transcript{Skipped: len(list), Digest: message.DigestOf(list), Whole: true}
		})
	}
}
