package survival_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/examples/transcript"
	"github.com/contextengine/contextengine/experiment/dataset"
	"github.com/contextengine/contextengine/experiment/survival"
	"github.com/contextengine/contextengine/models/tiktoken"
)

// TestRepeatable: the same conversation gives the same figures every time. Ids stand in prompts and cost tokens, so they must be the same, too.
func TestRepeatable(t *testing.T) {
	sessions, err := dataset.Read(strings.NewReader(transcript.Session()), transcript.Name, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	counter, err := tiktoken.New(tiktoken.DefaultEncoding)
	if err != nil {
		t.Fatal(err)
	}
	measure := func() []survival.Row {
		rows, err := survival.Measure(t.Context(), survival.Spec{Session: sessions[0], Arms: survival.Arms(), Keep: []float64{0.4, 0.15}, Counter: counter.Count})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	first := measure()
	for range 4 {
		if diff := cmp.Diff(first, measure()); diff != "" {
			t.Fatalf("measured again (-first +again):\n%s", diff)
		}
	}
}
