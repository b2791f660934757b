package openbrain_test

import (
	"slices"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

// What other sessions stored in the same call is shown although its end goes with the session.
func TestEraseSessionKeepsTheRestOfABatch(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	kept, gone := run("main", "kept", 0, 2), run("main", "gone", 0, 2)
	mustAppend(t, s, append(slices.Clone(kept), gone...)...)
	if err := s.EraseSession(t.Context(), core.SessionID{Agent: "main", Session: "gone"}); err != nil {
		t.Fatal(err)
	}
	holds(t, srv, "main", kept)
}
