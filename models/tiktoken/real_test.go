package tiktoken

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/internal/datadir"
	"github.com/contextengine/contextengine/internal/needs"
)

// realTexts yields every string of the measurement data, in the messages and around them, and each file's first lines
// as they stand, which are JSON.
func realTexts(tb testing.TB, yield func(text string)) {
	tb.Helper()
	root := datadir.File(tb, "")
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(filepath.Ext(path), ".json") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines := bufio.NewReader(bytes.NewReader(data[:min(len(data), 1<<16)]))
		for line, err := lines.ReadString('\n'); err == nil; line, err = lines.ReadString('\n') {
			yield(line)
		}
		decoder := json.NewDecoder(bytes.NewReader(data))
		for {
			token, err := decoder.Token()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if text, ok := token.(string); ok {
				yield(text)
			}
		}
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// TestRealTexts counts every distinct text of the measurement data.
func TestRealTexts(t *testing.T) {
	t.Parallel()
	// One text in so many, other ones each time; all of them when TOKENIZER_TEXTS asks for much.
	every := max(1, 200_000/wanted(20_000))
	if testing.Short() || needs.Race {
		every = 50
	}
	first := rand.IntN(every)
	seen := map[string]bool{}
	size, met := 0, 0
	counters := newTestCounters(t, shortPiece, maxPiece)
	realTexts(t, func(text string) {
		if seen[text] {
			return
		}
		seen[text] = true
		if met++; met%every != first {
			return
		}
		size += len(text)
		for _, c := range counters {
			if got, want := c.Count(text), referenceOf(t, c.Encoding()).count(text); got != want {
				t.Errorf("%s: Count(%.200q) of %d bytes = %d, want %d", c.Encoding(), text, len(text), got, want)
			}
		}
	})
	t.Logf("%d texts, %d bytes", met/every, size)
	if met < 1000 {
		t.Errorf("only %d texts were found", met)
	}
}
