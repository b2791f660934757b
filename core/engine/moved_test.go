package engine_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// TestAppendMoved: copies of entries that share a position are all stored, the first where it was; a copy made again stores nothing.
func TestAppendMoved(t *testing.T) {
	store := memory.New()
	at := func(id string, seq int64) core.Entry {
		return core.Entry{ID: id, Key: "k" + id, Agent: "ada", Session: "one", Seq: seq, Role: message.User, Message: message.New(message.User, id)}
	}
	batch := []core.Entry{at("a", 0), at("b", 1), at("c", 1), at("h", 1), at("d", 2)}
	for n := range 2 {
		res, err := core.AppendMoved(t.Context(), store, batch)
		if err != nil || !slices.Equal(res.IDs, []string{"a", "b", "c", "h", "d"}) || res.Duplicates != n*len(batch) {
			t.Fatalf("copy %d: %+v, %v", n, res, err)
		}
	}
	// A later page finds its positions free.
	if _, err := core.AppendMoved(t.Context(), store, []core.Entry{at("e", 3), at("f", 3), at("g", 4)}); err != nil {
		t.Fatal(err)
	}
	var order []string
	for e, err := range core.All(t.Context(), store, core.Scope{Agent: "ada"}, false) {
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, e.ID)
	}
	if want := []string{"a", "b", "d", "e", "g", "c", "h", "f"}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
	other := at("a", 9)
	other.Key = "another"
	if _, err := core.AppendMoved(t.Context(), store, []core.Entry{other}); !errors.Is(err, core.ErrConflict) {
		t.Errorf("an id that belongs to another entry = %v, want ErrConflict", err)
	}
}
