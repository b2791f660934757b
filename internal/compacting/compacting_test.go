package compacting_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/compacting"
	"github.com/contextengine/contextengine/internal/drawn"
)

// words counts every byte triple as a token, rounded up: fine enough to notice a text that is a little too long.
func words(s string) int { return (len(s) + 2) / 3 }

func say(role message.Role) core.Entry {
	return core.Entry{Type: core.TypeMessage, Role: role, Message: message.New(role, "x"), Tokens: 5}
}

func call(ids ...string) core.Entry {
	m := message.Message{Role: message.Assistant}
	for _, id := range ids {
		m.Parts = append(m.Parts, message.Part{Kind: message.ToolCall, CallID: id, Name: "t"})
	}
	return core.Entry{Type: core.TypeMessage, Role: m.Role, Message: m, Tokens: 10}
}

func result(id string) core.Entry {
	m := message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: id, Text: "r"}}}
	return core.Entry{Type: core.TypeMessage, Role: m.Role, Message: m, Tokens: 100}
}

func subagent() core.Entry {
	e := say(message.User)
	e.Type = core.TypeSubagent
	return e
}

func TestUnits(t *testing.T) {
	es := []core.Entry{
		say(message.User),                        // 0
		call("a", "b"), result("a"), result("b"), // 1-3
		subagent(),                         // 4
		call("c"), subagent(), result("c"), // 5-7: the result arrives behind a subagent's
		say(message.User),      // 8
		call("d"), result("d"), // 9-10
	}
	all := []compacting.Unit{{From: 0, To: 1, Cost: 5}, {From: 1, To: 4, Cost: 210}, {From: 4, To: 5, Cost: 5}, {From: 5, To: 8, Cost: 115}, {From: 8, To: 9, Cost: 5}, {From: 9, To: 11, Cost: 110}}
	for _, tc := range []struct {
		protected int
		want      []compacting.Unit
	}{
		{0, all}, {1, all[:5]}, {2, all[:5]}, {3, all[:4]}, {4, all[:3]}, {6, all[:3]}, {7, all[:2]}, {10, all[:1]}, {11, nil}, {50, nil},
	} {
		if diff := cmp.Diff(tc.want, compacting.Units(core.Compaction{Entries: es, Protected: tc.protected})); diff != "" {
			t.Errorf("%d protected (-want +got):\n%s", tc.protected, diff)
		}
	}
}

func TestUnitsTakeTheWindowsCost(t *testing.T) {
	c := core.Compaction{Entries: []core.Entry{call("a"), result("a")}, Cost: []int{10, 3}}
	want := []compacting.Unit{{From: 0, To: 2, Cost: 13}}
	if diff := cmp.Diff(want, compacting.Units(c)); diff != "" {
		t.Errorf("Units (-want +got):\n%s", diff)
	}
}

func TestEnough(t *testing.T) {
	es := make([]core.Entry, 10)
	for _, tc := range []struct {
		name      string
		c         core.Compaction
		to, after int
		want      bool
	}{
		{"above target", core.Compaction{Entries: es, Tokens: 90, Target: 50}, 3, 51, false},
		{"at target", core.Compaction{Entries: es, Tokens: 90, Target: 50}, 3, 50, true},
		{"unshown entries stay behind", core.Compaction{Entries: es, Tokens: 90, Target: 50, Left: 4}, 3, 50, false},
		{"unshown entries are taken", core.Compaction{Entries: es, Tokens: 90, Target: 50, Left: 4}, 4, 50, true},
		{"forced above target", core.Compaction{Entries: es, Tokens: 90, Target: 50, Force: true}, 3, 50, true},
		{"forced below target", core.Compaction{Entries: es, Tokens: 40, Target: 50, Force: true}, 3, 30, false},
	} {
		if got := compacting.EnoughFor(tc.c).Met(tc.to, tc.after); got != tc.want {
			t.Errorf("%s: Met(%d, %d) = %v, want %v", tc.name, tc.to, tc.after, got, tc.want)
		}
	}
}

func TestClipFitsAndKeepsBothEnds(t *testing.T) {
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "line %d of größe 漢字 🙂\n", i)
	}
	text := b.String()
	rnd := drawn.Rand(t)
	for range 300 {
		from := rnd.IntN(len(text) / 2)
		for !utf8.RuneStart(text[from]) {
			from++
		}
		in, limit := text[from:], rnd.IntN(1500)
		for name, out := range map[string]string{"Clip": compacting.Clip(in, limit, words), "Head": compacting.Head(in, limit, words)} {
			if n := words(out); n > limit {
				t.Fatalf("%s to %d has %d tokens", name, limit, n)
			}
			if !utf8.ValidString(out) {
				t.Fatalf("%s to %d cut a rune: %q", name, limit, out)
			}
		}
		if limit < 100 {
			continue
		}
		out := compacting.Clip(in, limit, words)
		if out[:20] != in[:20] || out[len(out)-8:] != in[len(in)-8:] {
			t.Fatalf("Clip to %d lost an end: %q", limit, out)
		}
		if words(out) < limit*3/4 {
			t.Fatalf("Clip to %d kept only %d tokens", limit, words(out))
		}
	}
	if got := compacting.Clip("short", 10, words); got != "short" {
		t.Errorf("Clip of a text that fits = %q", got)
	}
	if got := compacting.Clip(strings.Repeat("\xff\x80", 500), 20, words); words(got) > 20 {
		t.Errorf("Clip of invalid UTF-8 has %d tokens", words(got))
	}
}

func TestFirstLine(t *testing.T) {
	for in, want := range map[string]string{
		"\n  hello \nworld": "hello", "": "", " \n ": "", "abcdefghijkl": "abcdefg…", "äöüäöüäöü": "äöü…",
	} {
		if got := compacting.FirstLine(in, 10); got != want {
			t.Errorf("FirstLine(%q) = %q, want %q", in, got, want)
		}
	}
}
