package lexical_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
)

// TestIdentifiers finds each identifier by its exact form and by parts of it, first of many entries.
func TestIdentifiers(t *testing.T) {
	rows := []struct {
		name, text string
		queries    []string
	}{
		{"version", "We pinned the parser to v1.2.3 after the regression", []string{"v1.2.3", "v1.2", "what was wrong with v1.2.3?", "1.2.3"}},
		{"snake case", "the culprit is max_retry_backoff in the settings", []string{"max_retry_backoff", "retry_backoff", "max_retry", "retry backoff"}},
		{"camel case", "rename loadUserProfile everywhere", []string{"loadUserProfile", "loaduserprofile", "user profile", "loadUser"}},
		{"path", "see core/window/packing_rules.go:88 for that", []string{
			"core/window/packing_rules.go:88", "packing_rules.go", "core/window/packing_rules.go", "window/packing_rules.go", "packing_rules",
		}},
		{"windows path", `it lies in C:\Users\ann\report_final.docx now`, []string{`C:\Users\ann\report_final.docx`, "report_final.docx", "report_final"}},
		{"uuid", "request 3f2a9c1e-77b0-4d5e-9a6f-0c1d2e3f4a5b timed out", []string{
			"3f2a9c1e-77b0-4d5e-9a6f-0c1d2e3f4a5b", "3f2a9c1e", "3f2a9c1e-77b0", "0c1d2e3f4a5b", "3F2A9C1E",
		}},
		{"commit", "it broke in 9f8e7d6c5b4a39281706f5e4d3c2b1a098765432", []string{"9f8e7d6c5b4a39281706f5e4d3c2b1a098765432", "9f8e7d6", "commit 9f8e7d6c5b"}},
		{"error code", "the driver says ERR_CONN_REFUSED again", []string{"ERR_CONN_REFUSED", "CONN_REFUSED", "conn refused"}},
		{"numbered code", "that is ORA-12541 from the listener", []string{"ORA-12541", "12541", "ora 12541"}},
		{"code in one piece", "valve shows E1042 since monday", []string{"E1042", "1042", "error e1042"}},
		{"url", "docs at https://example.com/guides/setup-guide?lang=de are old", []string{"example.com/guides/setup-guide", "setup-guide"}},
		{"mail", "ask jo.miller@example.com about it", []string{"jo.miller@example.com", "jo.miller"}},
	}
	store := &listStore{}
	for i, r := range rows {
		store.entries = append(store.entries, entry(fmt.Sprintf("x%d", i), fmt.Sprintf("s%d", i), 0, r.text))
	}
	for i := range 200 { // near misses and noise
		store.entries = append(store.entries, entry(fmt.Sprintf("n%d", i), fmt.Sprintf("n%d", i/4), int64(i), fmt.Sprintf(
			"version v%d.%d.%d of module_%d in src/part%d/file_%d.go gave code E%d and id %x-%x", i%7, i%5, i, i, i, i, 2000+i, i*7919, i*104729)))
	}
	x := newIndex(t, store)
	for i, r := range rows {
		for _, q := range r.queries {
			t.Run(r.name+" by "+strings.ReplaceAll(q, "/", "|"), func(t *testing.T) {
				hits := search(t, x, core.SearchQuery{Text: q, Limit: 3})
				if len(hits) == 0 || hits[0].Entry.ID != fmt.Sprintf("x%d", i) {
					t.Errorf("hits = %q, want x%d first", ids(hits), i)
				}
			})
		}
	}
}

// TestDates finds what was said on a day that the query names.
func TestDates(t *testing.T) {
	store := &listStore{}
	for i := range 60 {
		e := entry(fmt.Sprintf("d%d", i), fmt.Sprintf("s%d", i), 0, "we had lunch with friends")
		e.Time = noon.AddDate(0, 0, i) // from March 4, 2024
		store.entries = append(store.entries, e)
	}
	x := newIndex(t, store)
	for _, q := range []string{
		"Who was there for lunch on April 2, 2024?", "lunch on the 2nd of April 2024", "lunch 2 Apr 2024", "lunch on 2024-04-02",
	} {
		if got := ids(search(t, x, core.SearchQuery{Text: q, Limit: 1})); got != "d29" {
			t.Errorf("hits of %q = %q, want d29: what was said that day", q, got)
		}
	}
}

// TestQuestions prefers answers to those who asked the same.
func TestQuestions(t *testing.T) {
	store := &listStore{}
	say := func(id, name, text string) {
		e := entry(id, "talk", int64(len(store.entries)), text)
		e.Message.Name = name
		store.entries = append(store.entries, e)
	}
	for i := range 8 {
		say(fmt.Sprintf("early%d", i), "Mira", "Filling talk about gardens, number words and weather.")
	}
	say("asked", "Mira", "Where did you buy that lantern?")
	say("answer", "Tomas", "In a small shop down by the harbour.")
	for i := range 8 {
		say(fmt.Sprintf("late%d", i), "Mira", "More filling talk about clouds.")
	}
	say("said", "Tomas", "I put the lantern in the window, where it shines at night.")
	x := newIndex(t, store)
	if got := ids(search(t, x, core.SearchQuery{Text: "where was the lantern bought?", Limit: 3})); !strings.Contains(got, "answer") {
		t.Errorf("hits = %q, want what follows the question among the first three", got)
	}
	if got := ids(search(t, x, core.SearchQuery{Text: "buy that lantern", Limit: 1})); got != "asked" {
		t.Errorf("hits of words = %q, want the message that holds them", got)
	}
	for word, id := range map[string]string{"bought": "asked", "buying": "asked", "put": "said"} {
		if got := ids(search(t, x, core.SearchQuery{Text: word, Limit: 1})); got != id {
			t.Errorf("hits of %q = %q, want %q", word, got, id)
		}
	}
}
