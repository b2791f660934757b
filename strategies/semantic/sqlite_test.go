package semantic_test

import (
	"path/filepath"
	"testing"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// TestVectorsInSQLite expects vectors in the file to be used after a restart, and to be gone with what was erased.
func TestVectorsInSQLite(t *testing.T) {
	cfg := sqlite.DefaultConfig()
	cfg.Path = filepath.Join(t.TempDir(), "store.db")
	emb := &wordEmbedder{}
	for round := range 2 {
		s, err := sqlite.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			entries := kites(9)
			for i := range entries {
				entries[i].Fingerprint = message.Fingerprint(entries[i].Message)
			}
			if _, err := s.Append(t.Context(), entries); err != nil {
				t.Fatal(err)
			}
		}
		x := newVector(t, s, emb, nil)
		if got := found(t, x, core.SearchQuery{Text: "red kite number7", Limit: 1}); got != "e07" {
			t.Errorf("round %d: hits = %q, want %q", round, got, "e07")
		}
		if want := 2 + round; emb.calls != want { // the texts once, and each query
			t.Errorf("round %d: %d calls of the embedder, want %d", round, emb.calls, want)
		}
		if round == 1 {
			if _, err := s.Delete(t.Context(), core.Scope{Agent: "ada"}, []string{"e07"}); err != nil {
				t.Fatal(err)
			}
			y := newVector(t, s, emb, nil)
			if got := found(t, y, core.SearchQuery{Text: "red kite number7", Limit: 1}); got == "e07" {
				t.Errorf("hits = %q, want nothing of what was deleted", got)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
