package inventory_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/compacting/compactingtest"
	"github.com/contextengine/contextengine/internal/compacting/inventory"
)

func user(text string) core.Entry {
	return core.Entry{Type: core.TypeMessage, Role: message.User, Message: message.New(message.User, text)}
}

func read(t *testing.T, entries ...core.Entry) *inventory.Inventory {
	t.Helper()
	v := inventory.New()
	if err := v.Read(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	return v
}

func words(v *inventory.Inventory, room int) []string {
	row, _ := v.Row(room, "", compactingtest.Count)
	return strings.Fields(strings.TrimPrefix(row, inventory.WordsRow))
}

func TestRank(t *testing.T) {
	schema := `{"first_name": "Ann", "id": "acct_9081726"}`
	es := []core.Entry{
		{Type: core.TypeMessage, Role: message.Tool, Message: message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, Text: schema + " seen_once_a"}}}},
		{Type: core.TypeMessage, Role: message.Assistant, Message: message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, Name: "f", Args: `{"path":"src/used_b.go"}`}}}},
		{Type: core.TypeMessage, Role: message.Tool, Message: message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, Text: schema}}}},
	}
	got := words(read(t, es...), 1000)
	at := func(w string) int { return slices.Index(got, w) }
	if at("src/used_b.go") > at("seen_once_a") || at("acct_9081726") > at("seen_once_a") || at("seen_once_a") > at("first_name") || at("first_name") < 0 {
		t.Errorf("ranked %q", got)
	}
}

func TestWhatStaysComesLast(t *testing.T) {
	v := read(t, user("alpha_one and beta_two"))
	v.Stays([]core.Entry{user("alpha_one is still here")})
	if diff := cmp.Diff([]string{"beta_two", "alpha_one"}, words(v, 100)); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

func TestLinesAreExactAndInOrder(t *testing.T) {
	v := read(t, user("Please fix the build. Never touch main."), user("We decided on plan_b2. I prefer tabs."))
	got := v.Lines(1000, "", compactingtest.Count)
	want := []string{"Asked: Please fix the build.", "Rule: Never touch main.", "Decided: We decided on plan_b2.", "Rule: I prefer tabs."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if got := v.Lines(12, "", compactingtest.Count); len(got) != 1 || !strings.HasPrefix(got[0], "Rule: ") {
		t.Errorf("in little room: %q, want one rule", got)
	}
	if got := v.Lines(1000, "somebody said: Never touch main.", compactingtest.Count); slices.Contains(got, "Rule: Never touch main.") {
		t.Errorf("what is said already is said again: %q", got)
	}
}

func TestWhatWasWrittenIsReadBack(t *testing.T) {
	v := read(t, user("Never touch main_7. See src/x_1.go and src/y_2.go."))
	row, _ := v.Row(100, "", compactingtest.Count)
	text := "[Index of things]\nfree text\n" + strings.Join(v.Lines(100, "", compactingtest.Count), "\n") + "\n" + row
	again := inventory.New()
	again.Include(text)
	if diff := cmp.Diff(v.Lines(100, "", compactingtest.Count), again.Lines(100, "", compactingtest.Count)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	for _, w := range words(v, 100) {
		if !slices.Contains(words(again, 100), w) {
			t.Errorf("%q is not read back", w)
		}
	}
	if got := inventory.Strip(text); got != "free text" {
		t.Errorf("Strip = %q", got)
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := inventory.New().Read(ctx, []core.Entry{user("x")}); !errors.Is(err, context.Canceled) {
		t.Errorf("Read = %v, want context.Canceled", err)
	}
}
