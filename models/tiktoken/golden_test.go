package tiktoken_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/contextengine/contextengine/models/tiktoken"
)

// TestGolden holds the counts against OpenAI's own implementation: testdata/golden.json was written by
// testdata/golden.mjs with npm package tiktoken 1.0.22, which is the Rust code compiled to WASM.
func TestGolden(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("testdata", "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Text   string `json:"text"`
		O200k  int    `json:"o200k_base"`
		CL100k int    `json:"cl100k_base"`
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) < 100 {
		t.Fatalf("golden.json has %d rows, want at least 100", len(rows))
	}
	o200k, cl100k := mustNew(t, "o200k_base"), mustNew(t, "cl100k_base")
	for i, row := range rows {
		if got := o200k.Count(row.Text); got != row.O200k {
			t.Errorf("row %d: o200k_base Count(%.60q) = %d, want %d", i, row.Text, got, row.O200k)
		}
		if got := cl100k.Count(row.Text); got != row.CL100k {
			t.Errorf("row %d: cl100k_base Count(%.60q) = %d, want %d", i, row.Text, got, row.CL100k)
		}
	}
}

func mustNew(tb testing.TB, name string) *tiktoken.Counter {
	tb.Helper()
	counter, err := tiktoken.New(name)
	if err != nil {
		tb.Fatal(err)
	}
	return counter
}
