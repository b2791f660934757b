package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core/message"
)

// namedBy gives a message the n-th of a host's names: its "key", "id" or "time".
func namedBy(what string, n int, m message.Message) message.Message {
	switch what {
	case "key":
		m.Key = fmt.Sprint("m", n)
	case "id":
		m.ID = fmt.Sprint("m", n)
	case "time":
		m.Time = time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC)
	}
	return m
}

// TestRepeatedWordsUnderOwnNames: a list goes on with words that were said before, under names of their own. What has its old name is what it was, and what has a new
// one is new.
func TestRepeatedWordsUnderOwnNames(t *testing.T) {
	for _, named := range []string{"key", "id", "time"} {
		said := func(n int, text string) message.Message {
			return namedBy(named, n, message.New([]message.Role{message.User, message.Assistant}[n%2], text))
		}
		f := newFixture(t)
		f.assemble(1000, transcript("", said(4, "one"), said(5, "two"), said(6, "three"), said(7, "three")))
		list := []message.Message{said(4, "one"), said(5, "two"), said(6, "three"), said(8, "three"), said(9, "two"), said(10, "three"), said(11, "three")}
		res := f.assemble(1000, transcript("", list...))
		if n := f.stored(); n != 8 || len(res.Messages) != len(list) {
			t.Fatalf("by %s: %d stored, %d shown, want 8 and %d", named, n, len(res.Messages), len(list))
		}
		for i, m := range res.Messages {
			if m.Key != list[i].Key || m.ID != list[i].ID || !m.Time.Equal(list[i].Time) {
				t.Errorf("by %s: message %d is called %q %q %v, want %q %q %v", named, i, m.Key, m.ID, m.Time, list[i].Key, list[i].ID, list[i].Time)
			}
		}
	}
}
