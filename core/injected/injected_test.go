package injected_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core/injected"
)

const reminder = "<system-reminder>\nThe todo list is empty. 81234 tokens left; do not mention this.\n</system-reminder>"

func TestKnownClients(t *testing.T) {
	rows := []struct {
		name string
		in   injected.Place
		text string
		want string
	}{
		{"nothing", injected.User, "What did step 3 print?", "What did step 3 print?"},
		{"in front", injected.User, reminder + "\nWhat did step 3 print?", "What did step 3 print?"},
		{"behind", injected.User, "What did step 3 print?\n" + reminder + "\n", "What did step 3 print?"},
		{"several in a line", injected.User, "<command-name>/run</command-name> <command-args>kestrel</command-args>", "kestrel"},
		{"alone", injected.User, "  " + reminder, ""},
		{"behind output", injected.Tool, "kestrel: 41 ok\n\n" + reminder, "kestrel: 41 ok"},
		{"spoken of", injected.User, "what is a <system-reminder> for?", "what is a <system-reminder> for?"},
		{"not closed", injected.User, "<system-reminder>\nwhat is this", "<system-reminder>\nwhat is this"},
		{"wrapper is taken off", injected.User, "<user_input mode=\"act\">mend the parser</user_input>\n<environment_details>\n# Time\n10:00\n</environment_details>", "mend the parser"},
		{"nested", injected.User, "<task>\nmend it\n<system-reminder>be brief</system-reminder>\n</task>", "mend it"},
		{"name with a blank", injected.User, "<permissions instructions>\nread only\n</permissions instructions>\nlist the files", "list the files"},
		{"heading and element", injected.User, "# AGENTS.md instructions for /src\n\n<INSTRUCTIONS>\nuse tabs\n</INSTRUCTIONS>", ""},
		{"head of output", injected.Tool, "Chunk ID: a81\nWall time: 0.05 seconds\nProcess exited with code 0\nOriginal token count: 4\nOutput:\nkestrel: 41 ok", "kestrel: 41 ok"},
		{"only the head", injected.Tool, "run 1\nWall time: 3 s\nOutput:\nx", "run 1\nWall time: 3 s\nOutput:\nx"},
		{"not what people say", injected.User, "Wall time: 3 s, why?", "Wall time: 3 s, why?"},
		{"longest name", injected.User, "<task " + strings.Repeat("a", 504) + "=>mend it</task>", "mend it"},
		{"name too long", injected.User, "<task " + strings.Repeat("a", 505) + "=>mend it</task>", "<task " + strings.Repeat("a", 505) + "=>mend it</task>"},
		{"closes itself", injected.User, "<system-reminder/>\nmend it</system-reminder/>", "<system-reminder/>\nmend it</system-reminder/>"},
		{"tag on two lines", injected.User, "<system-reminder a=1\n>rain</system-reminder>", "<system-reminder a=1\n>rain</system-reminder>"},
		{"empty tag", injected.User, "<> mend it", "<> mend it"},
		{"closed by its first word", injected.User, "<permissions instructions>\nread only\n</permissions>\nlist the files", "list the files"},
		{"words on its line", injected.User, "<system-reminder>rain</system-reminder>mend it", "mend it"},
		{"behind a wrapper on its line", injected.User, "<task>mend it</task><system-reminder>be brief</system-reminder>", "mend it"},
		{"behind a wrapper that ends further down", injected.User, "<task>\nmend it\n</task> <system-reminder>be brief</system-reminder>\nnow", "mend it\n\nnow"},
		{"two wrappers on a line", injected.User, "<command-args>kestrel</command-args><local-command-stdout>41 ok</local-command-stdout>", "kestrel 41 ok"},
		{"wrapper in a wrapper", injected.User, "<task><feedback>mend it</feedback><system-reminder>be brief</system-reminder></task><task_progress>1 of 2</task_progress>", "mend it"},
		{"said between two", injected.User, "<task>mend it</task> or see <system-reminder>be brief</system-reminder>", "mend it  or see <system-reminder>be brief</system-reminder>"},
		{"head behind a wrapper", injected.Tool, "<content>kestrel</content>Wall time: 3 s", "kestrel Wall time: 3 s"},
		{"head behind an empty wrapper", injected.Tool, "<content></content>Wall time: 3 s\nkestrel", "kestrel"},
		{"metadata", injected.User, "Sender (untrusted metadata):\n```json\n{\"id\": \"7\"}\n```\n\nmove the meeting", "move the meeting"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := injected.Without(r.text, injected.Known().Spans(r.in, r.text)); got != r.want {
				t.Errorf("left of %q: %q, want %q", r.text, got, r.want)
			}
		})
	}
}

func TestOwnRulesGoFirst(t *testing.T) {
	c, err := injected.New(append([]injected.Rule{
		{Tag: "system-reminder", Keep: true}, {Begin: "Note of the day:", End: "\n\n", In: injected.User},
	}, injected.Builtin()...))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"Note of the day: be\nkind\n\n<system-reminder>rain</system-reminder>": "rain",
		"Note of the day: no end\nmend it":                                     "Note of the day: no end\nmend it",
	} {
		if got := injected.Without(text, c.Spans(injected.User, text)); got != want {
			t.Errorf("left of %q: %q, want %q", text, got, want)
		}
	}
}

func TestRulesOfNoUse(t *testing.T) {
	for field, r := range map[string]injected.Rule{
		"tag": {}, "end": {Tag: "a", End: "b"}, "keep": {Begin: "a", Keep: true}, "begin": {Begin: " a"}, "in": {Tag: "a", In: "assistant"},
	} {
		_, err := injected.New([]injected.Rule{{Tag: "good"}, r})
		var wrong *injected.RuleError
		if !errors.As(err, &wrong) || wrong.Index != 1 || wrong.Field != field || !strings.HasPrefix(err.Error(), "injected: rules[1]."+field+": ") {
			t.Errorf("%+v: %v, want a mistake in rules[1].%s", r, err, field)
		}
	}
	if _, err := injected.New(injected.Builtin()); err != nil {
		t.Errorf("known clients: %v", err)
	}
}

func TestLineWithoutEnd(t *testing.T) {
	c, err := injected.New([]injected.Rule{{Begin: "Today is"}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"Today is Friday": "", "Today is Friday\nmend it": "mend it", "mend it\nToday is Friday": "mend it"} {
		if got := injected.Without(text, c.Spans(injected.User, text)); got != want {
			t.Errorf("left of %q: %q, want %q", text, got, want)
		}
	}
}

// TestNothingToTakeOut: without rules nothing is taken out, and spans that are not of a text take nothing out of it.
func TestNothingToTakeOut(t *testing.T) {
	const text = "<task>mend it</task>"
	var none *injected.Cutter
	if got := none.Spans(injected.User, text); got != nil {
		t.Errorf("no rules take out %v", got)
	}
	for _, spans := range [][]injected.Span{{{From: 3, To: 2}}, {{From: 0, To: len(text) + 1}}, {{From: 2, To: 4}, {From: 3, To: 5}}} {
		if got := injected.Without(text, spans); got != text {
			t.Errorf("without %v: %q", spans, got)
		}
	}
	for want, spans := range map[string][]injected.Span{
		"<t":                {{From: 2, To: 4}, {From: 4, To: len(text)}},
		"<task>mend task>":  {{From: 10, To: 15}},
		"it</task>":         {{From: 0, To: 11}},
		"<task>mend it</ta": {{From: 17, To: 20}},
	} {
		if got := injected.Without(text, spans); got != want {
			t.Errorf("without %v: %q, want %q", spans, got, want)
		}
	}
}

// TestParse: what Format wrote is read again for the same text alone.
func TestParse(t *testing.T) {
	const text = "<task>mend it</task>"
	spans := []injected.Span{{From: 0, To: 6}, {From: 13, To: 20}}
	meta := injected.Format(spans, text)
	if got, ok := injected.Parse(meta, text); !ok || !slices.Equal(got, spans) {
		t.Errorf("Parse(%q) = %v, %v", meta, got, ok)
	}
	if got, ok := injected.Parse(injected.Format(nil, text), text); !ok || got != nil {
		t.Errorf("Parse of no spans = %v, %v", got, ok)
	}
	for _, wrong := range []string{"", meta + " 3-x", meta + " x-3", meta + " 3"} {
		if got, ok := injected.Parse(wrong, text); ok || got != nil {
			t.Errorf("Parse(%q) = %v, %v", wrong, got, ok)
		}
	}
	if got, ok := injected.Parse(meta, text+" "); ok || got != nil {
		t.Errorf("Parse for another text = %v, %v", got, ok)
	}
}

func TestRepeatedBlocks(t *testing.T) {
	var m injected.Memory
	said := func(in injected.Place, text string) string {
		left := injected.Without(text, m.Repeated(in, text))
		m.Note(text)
		return left
	}
	advice := "Answer in the style of the house, without lists, and name the file that you speak of."
	for i, left := range []string{"81234", "70311", "6120"} {
		text := "<my-budget>\n" + left + " tokens left\n</my-budget>\n\nquestion " + left + "\n\n" + advice
		want := text
		if i == 2 {
			want = "question " + left
		}
		if got := said(injected.User, text); got != want {
			t.Errorf("message %d says %q, want %q", i, got, want)
		}
	}
	if got := said(injected.User, advice); got != advice {
		t.Errorf("who says it again says %q", got)
	}
	if got := said(injected.User, "<my-budget>\n9 tokens left\n</my-budget>"); got != "" {
		t.Errorf("a message of nothing else says %q", got)
	}
	output := "<row id=\"1\">\n</row>\nall of the forty-one tests of the package kestrel have passed in 3 seconds\n\nend\n<my-budget>\n1 tokens left\n</my-budget>"
	for range 4 {
		if got := said(injected.Tool, output); strings.Contains(got, "my-budget") || !strings.Contains(got, "have passed") {
			t.Errorf("a tool printed %q", got)
		}
	}
}

// TestMemoryOfTheNewest: what is repeated depends on the newest messages alone, however many were noted before them.
func TestMemoryOfTheNewest(t *testing.T) {
	block := func(n int) string {
		return strings.Repeat("paragraph "+string(rune('a'+n%26)), 6) + strings.Repeat("!", n/26)
	}
	for name, most := range map[string]int{"few blocks each": 1, "many blocks each": 60} {
		t.Run(name, func(t *testing.T) {
			var messages [][]string
			for n := range 700 {
				var texts []string
				for k := range most {
					texts = append(texts, block(n*most+k), block((n*7+k)%90))
				}
				messages = append(messages, texts)
			}
			var all, newest injected.Memory
			for i, texts := range messages {
				all.Note(texts...)
				if i >= len(messages)-injected.Remembered {
					newest.Note(texts...)
				}
			}
			repeats := 0
			for n := range 700 * most {
				text := "What is it?\n\n" + block(n)
				got, want := all.Repeated(injected.User, text), newest.Repeated(injected.User, text)
				if !slices.Equal(got, want) {
					t.Fatalf("block %d: %v of who noted all, %v of who noted the newest", n, got, want)
				}
				repeats += len(got)
			}
			if repeats == 0 {
				t.Error("nothing is repeated: nothing is tested")
			}
		})
	}
}

func FuzzSpans(f *testing.F) {
	f.Add("<task>a</task>")
	f.Add(reminder + "\n" + reminder)
	f.Add("Output:\nx\n\n<a>\n</a>")
	f.Fuzz(func(t *testing.T, text string) {
		var m injected.Memory
		for range 3 {
			m.Note(text)
		}
		for _, in := range []injected.Place{injected.User, injected.Tool} {
			spans := injected.Both(injected.Known().Spans(in, text), m.Repeated(in, text))
			last := -1
			for _, s := range spans {
				if s.From <= last || s.To <= s.From || s.To > len(text) {
					t.Fatalf("spans %v of %d bytes", spans, len(text))
				}
				last = s.To
			}
		}
	})
}
