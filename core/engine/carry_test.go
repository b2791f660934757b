package engine_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// chatter is a conversation in which nothing is asked for.
func chatter(from, to int) (out []message.Message) {
	for i := from; i < to; i++ {
		out = append(out, user("item "+strconv.Itoa(i)+" is on the list"), assistant("item "+strconv.Itoa(i)+" is written down"))
	}
	return out
}

// full is a call in which recall has its say.
func full(r *core.AssembleRequest) { r.PromptMode = core.PromptFull }

// TestFirstTurnAfterAReset: it is given so many of the newest messages from before it, once, asked or not, and goes on being shown them until they leave the window.
func TestFirstTurnAfterAReset(t *testing.T) {
	system := message.New(message.System, "be brief")
	for _, tt := range []struct {
		name   string
		change func(*engine.Config)
		reset  []message.Message // what the host shows when it began anew
		want   []string
		not    string
		again  bool // restart in between
	}{
		{name: "none", change: func(c *engine.Config) { c.Recall.ResetMessages = 0 }, not: "item"},
		{name: "two", want: []string{"item 5 is on", "item 5 is written"}, not: "item 4"},
		{name: "behind the same system message", reset: []message.Message{system}, want: []string{"item 5 is on", "item 5 is written"}, not: "item 4"},
		{name: "in a new process", want: []string{"item 5 is on", "item 5 is written"}, not: "item 4", again: true},
		{name: "more than there is", change: func(c *engine.Config) { c.Recall.ResetMessages = 1000 }, want: []string{"item 0 is on", "item 5 is written"}},
		{name: "without recall", change: func(c *engine.Config) { c.Recall.Share = 0 }, not: "item"},
		{name: "taken back in part", reset: append([]message.Message{system}, chatter(0, 3)...), want: []string{"item 2 is written"}, not: "<recalled>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, func(c *engine.Config, parts *engine.Parts) {
				c.Recall.ResetMessages, parts.Retriever = 2, &asking{}
				if tt.change != nil {
					tt.change(c)
				}
			})
			before := append([]message.Message{system}, chatter(0, 6)...)
			f.assemble(4000, full, transcript("now", before...))
			f.assemble(4000, full, transcript("We go on.", tt.reset...))
			if tt.again {
				f.restart()
			}
			first := shown(f.assemble(4000, full, transcript("We go on.", tt.reset...)))
			after := append(tt.reset, user("We go on."), assistant("Gladly."))
			second := shown(f.assemble(4000, full, transcript("And on.", after...)))
			for _, got := range []string{first, second} {
				for _, want := range tt.want {
					if strings.Count(got, want) != 1 {
						t.Errorf("%q stands %d times in %s", want, strings.Count(got, want), got)
					}
				}
				if tt.not != "" && strings.Contains(got, tt.not) {
					t.Errorf("%q is shown: %s", tt.not, got)
				}
			}
		})
	}
}

// TestSummaryAfterAReset: what had left the window is carried as its newest summary.
func TestSummaryAfterAReset(t *testing.T) {
	f := newFixture(t, func(c *engine.Config, parts *engine.Parts) {
		c.Recall.ResetMessages, parts.Compactor, parts.Retriever = 1, teller{}, &asking{}
	})
	f.assemble(4000, full, transcript("now", append([]message.Message{user("my code is " + secret), assistant("noted")}, chatter(0, 4)...)...))
	if _, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 100, Force: true}); err != nil {
		t.Fatal(err)
	}
	got := shown(f.assemble(4000, full, transcript("We go on.")))
	if !strings.Contains(got, secret) || strings.Count(got, "item 3 is written down") != 1 || strings.Contains(got, "item 3 is on") {
		t.Errorf("shown: %s", got)
	}
	if n := strings.Count(got, "item 2"); n > 1 {
		t.Errorf("what the summary says is said again: %s", got)
	}
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("code is").ID}})
	if left := f.traces(); left != nil {
		t.Errorf("still there: %q", left)
	}
	if got := shown(f.assemble(4000, full, transcript("We go on."))); strings.Contains(got, secret) {
		t.Errorf("erased, and shown: %s", got)
	}
}
