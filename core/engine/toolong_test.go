package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestLongTextsAreCountedOnce: what the last 64 long texts cost is known, and not counted again; where there is another one all of them are counted anew when they come.
func TestLongTextsAreCountedOnce(t *testing.T) {
	const long, most = 256 << 10, 64
	counted := 0
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
		p.Counter = func(text string) int {
			if len(text) >= long {
				counted++
			}
			return 1
		}
	})
	says := func(n int) int {
		before := counted
		f.ingest(user(strings.Repeat(string(rune('A'+n)), long)))
		return counted - before
	}
	for n := range most {
		if got := says(n); got != 1 {
			t.Errorf("text %d is counted %d times", n, got)
		}
	}
	if got := says(0); got != 0 {
		t.Errorf("the first of %d texts is counted %d times more", most, got)
	}
	if got := says(most); got != 1 {
		t.Errorf("one text more is counted %d times", got)
	}
	if again, last := says(0), says(most); again != 1 || last != 0 {
		t.Errorf("then the first is counted %d times more, and the last %d times", again, last)
	}
	short := message.Message{Role: message.User, Parts: []message.Part{{Kind: message.Text, Text: strings.Repeat("x", long-1)}}}
	if f.ingest(short); counted != most+2 {
		t.Error("a text that is no long one is taken for one")
	}
}

// TestCounterThatPanics: what a counter panics with, over a long text, is what whoever asked is told, and nothing is remembered of it: the next one counts.
func TestCounterThatPanics(t *testing.T) {
	const long = 256 << 10
	broken := true
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
		p.Counter = func(text string) int {
			if broken && len(text) >= long {
				panic("no such token")
			}
			return 1
		}
	})
	said := user(strings.Repeat("x", long))
	tells := func(session string) (told any) {
		defer func() { told = recover() }()
		f.say(core.SessionID{Agent: "main", Session: session}, false, said)
		return nil
	}
	for _, session := range []string{"one", "two"} {
		if told := tells(session); told != "no such token" {
			t.Errorf("session %s: %v, want what the counter panicked with", session, told)
		}
	}
	broken = false
	if told := tells("three"); told != nil {
		t.Errorf("when it counts again: %v", told)
	}
}

// TestCostsAreKeptInBounds: what texts cost is remembered of so many in a session, and counted again behind that.
func TestCostsAreKeptInBounds(t *testing.T) {
	const most = 4096
	p, openings := &proposer{}, 0
	f := newFixture(t, func(c *engine.Config, parts *engine.Parts) {
		c.Recall.AcrossSessions, c.Recall.Gate, parts.Retriever = true, false, p
		parts.Counter = func(text string) int {
			if strings.HasPrefix(text, "<recalled>") {
				openings++
			}
			return wordCounter(text)
		}
	})
	f.ingest(user("hi"), assistant("hello"))
	elsewhere := core.SessionID{Agent: "main", Session: "elsewhere"}
	batch := make([]message.Message, most+100)
	for i := range batch {
		batch[i] = user(fmt.Sprint("number", i))
		batch[i].Time = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	asks := func(n int, prompt string) int {
		before := openings
		p.candidates = nil
		for entry, err := range core.All(t.Context(), f.store, elsewhere.Scope(), false) {
			if err != nil {
				t.Fatal(err)
			}
			if len(p.candidates) < n {
				p.candidates = append(p.candidates, core.Candidate{Entry: entry, Score: 1, Source: "proposer"})
			}
		}
		f.assemble(400_000, full, func(r *core.AssembleRequest) { r.Prompt = prompt })
		return openings - before
	}
	f.say(elsewhere, false, batch...)
	if got := asks(10, "one"); got != 1 {
		t.Errorf("what a block begins with is counted %d times at first", got)
	}
	if got := asks(3000, "two"); got != 0 {
		t.Errorf("it is counted %d times more within the bound", got)
	}
	if more := asks(len(batch), "three") + asks(10, "four"); more < 1 {
		t.Error("it is not counted again behind the bound")
	}
}

// TestNotesOfOneMessageInOrder: what is shortened of a message is listed in the order in which it stands there.
func TestNotesOfOneMessageInOrder(t *testing.T) {
	f := newFixture(t)
	calls := message.Message{Role: message.Assistant}
	results := message.Message{Role: message.Tool}
	var want []string
	for n := range 9 {
		id := fmt.Sprint("c", n)
		calls.Parts = append(calls.Parts, message.Part{Kind: message.ToolCall, CallID: id, Name: "look", Args: "{}"})
		results.Parts = append(results.Parts, message.Part{Kind: message.ToolResult, CallID: id, Name: "look", Text: strings.Repeat("word ", 200+n)})
		want = append(want, fmt.Sprint(201+n))
	}
	f.ingest(user("go"), calls, results, assistant("done"))
	f.assemble(1000)
	d, err := f.engine.Describe(t.Context(), engine.DescribeRequest{Session: f.id})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(d.Text) {
		for word := range strings.FieldsSeq(line) {
			if strings.HasPrefix(line, "> [") && len(word) == 3 && word[0] == '2' {
				got = append(got, word)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed: %v, want %v: %s", got, want, d.Text)
	}
}
