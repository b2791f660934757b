package lexical_test

import (
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// TestWhoIsMeant: a question about what its writer did is answered by what they said, one about what the assistant said by that.
func TestWhoIsMeant(t *testing.T) {
	var entries []core.Entry
	for i, role := range []message.Role{message.User, message.Assistant} {
		e := entry([]string{"person", "assistant"}[i], []string{"s1", "s2"}[i], 1, "The ferry to the island leaves at noon, so the harbour café is where lunch is.")
		e.Role, e.Message.Role = role, role
		entries = append(entries, e)
	}
	x := newIndex(t, newMapStore(entries))
	for text, want := range map[string]string{
		"Where did I have lunch before the ferry?":          "person assistant",
		"Where did you recommend lunch before the ferry?":   "assistant person",
		"What was your advice about lunch before my ferry?": "assistant person",
	} {
		if got := ids(search(t, x, core.SearchQuery{Text: text})); got != want {
			t.Errorf("%q finds %s, want %s", text, got, want)
		}
	}
}

// TestRulesHold: what is wanted always is found before what merely speaks of the same.
func TestRulesHold(t *testing.T) {
	x := newIndex(t, newMapStore([]core.Entry{
		entry("talk", "s1", 1, "The release notes name the release, and what is new in the release."),
		entry("rule", "s2", 1, "Always give the date of a release in ISO form."),
	}))
	if got := ids(search(t, x, core.SearchQuery{Text: "When is the next release?"})); got != "rule talk" {
		t.Errorf("found %s, want the rule first", got)
	}
}

// TestKin: a word that begins like the one asked for is found, behind those that have it.
func TestKin(t *testing.T) {
	x := newIndex(t, newMapStore([]core.Entry{
		entry("kin", "s1", 1, "My cousin is a photographer in town."),
		entry("word", "s2", 1, "We took a photograph of the town."),
	}))
	if got := ids(search(t, x, core.SearchQuery{Text: "photographs"})); got != "word kin" {
		t.Errorf("found %s, want word kin", got)
	}
}
