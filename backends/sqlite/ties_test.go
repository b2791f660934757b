package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/sharedtest"
)

// tied returns entries as two processes wrote them that did not know of each other: positions 4 to 6 exist twice.
func tied(id core.SessionID) []core.Entry {
	var out []core.Entry
	for n := range 10 {
		seq := n
		if n > 6 {
			seq = n - 3
		}
		m := message.New(message.User, sharedtest.Text("m", n))
		out = append(out, core.Entry{
			ID: fmt.Sprint("e", n), Key: fmt.Sprint("k", n), Agent: id.Agent, Session: id.Session, Seq: int64(seq), Role: m.Role, Type: core.TypeMessage,
			Fingerprint: message.Fingerprint(m), Message: m, Tokens: 22,
		})
	}
	return out
}

// TestTiesOfOlderFiles: a file that holds ties is read in one order, takes no new ones, and is mended when a session is used.
func TestTiesOfOlderFiles(t *testing.T) {
	s, err := openWith(t, filepath.Join(t.TempDir(), "store.db"), migrations())
	if err != nil {
		t.Fatal(err)
	}
	id := core.SessionID{Agent: "ann", Session: "one"}
	if _, err := s.append(t.Context(), tied(id), true); err != nil {
		t.Fatal(err)
	}
	v := core.View{Session: id, Version: 1, Path: []core.Span{{From: 0, To: 7}}, Next: 7}
	if err := s.SwapView(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	var order []string
	for e, err := range core.All(t.Context(), s, id.Scope(), false) {
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, e.ID)
	}
	if want := []string{"e0", "e1", "e2", "e3", "e4", "e7", "e5", "e8", "e6", "e9"}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
	late := tied(id)[:1]
	late[0].ID, late[0].Key = "late", "late"
	for _, seq := range []int64{0, 5} {
		late[0].Seq = seq
		if _, err := s.Append(t.Context(), late); !errors.Is(err, core.ErrConflict) {
			t.Errorf("Append at position %d, which is taken = %v, want ErrConflict", seq, err)
		}
	}
	for n := range 2 { // the second engine finds it mended
		e, err := sharedtest.Engine(s)
		if err != nil {
			t.Fatal(err)
		}
		res, err := e.Assemble(t.Context(), core.AssembleRequest{Session: id, Budget: sharedtest.Budget, PromptMode: core.PromptNone})
		if err != nil {
			t.Fatalf("engine %d: %v", n, err)
		}
		var text strings.Builder
		for i := range res.Messages {
			text.WriteString(res.Messages[i].Text() + " ")
		}
		var got []string
		for f := range strings.FieldsSeq(text.String()) {
			if strings.HasPrefix(f, "m-") {
				got = append(got, f)
			}
		}
		if want := []string{"m-0.", "m-1.", "m-2.", "m-3.", "m-4.", "m-7.", "m-5.", "m-8.", "m-6.", "m-9."}; !slices.Equal(got, want) {
			t.Errorf("engine %d shows %v, want %v", n, got, want)
		}
	}
	var log sharedtest.Log
	for n := range 10 {
		fmt.Fprintf(&log, "said m-%d.\n", n)
	}
	sharedtest.Check(t, s, id, log.String())
}
