package lexical

import (
	"slices"
	"strings"
	"testing"
)

func TestSides(t *testing.T) {
	for _, row := range []struct {
		text        string
		mine, yours bool
	}{
		{"when did i buy the boat?", true, false},
		{"what’s the colour of the car i’ve ordered?", true, false},
		{"is it my turn", true, false},
		{"where does tim live?", false, false},
		{"what is in the index?", false, false},
		{"which library did you recommend for my project?", false, true},
		{"how did your suggestion turn out?", false, true},
		{"can you describe the yourself module?", false, false},
	} {
		if mine, yours := sides(row.text); mine != row.mine || yours != row.yours {
			t.Errorf("%q: mine %v, yours %v, want %v, %v", row.text, mine, yours, row.mine, row.yours)
		}
	}
}

func TestWants(t *testing.T) {
	for _, row := range []struct {
		text  string
		alone bool
		want  meta
	}{
		{"Always use tabs.", true, ruling},
		{" please never push to main", true, ruling},
		{"From now on, answer in German.", true, ruling},
		{"Always use tabs.", false, 0}, // the beginning of something long
		{"I always use tabs.", true, 0},
		{"alwaysOn = true", true, 0},
		{"never", true, 0},
		{"", true, 0},
		{"Always prefer tabs.", true, ruling | wishing},
		{"I'd prefer a window seat, of course.", false, wishing},
		{"My preferences: aisle.", true, 0 | wishing},
	} {
		if got := wantsOf(row.text, row.alone); got != row.want {
			t.Errorf("%q: %b, want %b", row.text, got, row.want)
		}
	}
}

func TestBare(t *testing.T) {
	for text, want := range map[string]string{
		"Can you list the order in which I brought up boats throughout our conversations, in order? Mention ONLY and ONLY five items.": "boats , .",
		"Where did I say the boat is?":                         "Where did the boat is?",
		"What is in order 4711?":                               "What is in order 4711?",
		"Which session keeps the list of messages?":            "Which session keeps the list of messages?",
		"Give me a brief summary of the boat trip":             "the boat trip",
		"What did Tim say about different kinds?":              "What did Tim say about different kinds?",
		"list.go fails: show me the error it prints":           "list.go fails: show me the error it prints",
		"Can you tell me about different aspects of the boat?": "about the boat?",
	} {
		if got := bare(text); !slices.Equal(strings.Fields(got), strings.Fields(want)) {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
