package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestWindowsInMemoryAreBounded: with room for a few windows the ones used last are there, the others are read again and say the same.
func TestWindowsInMemoryAreBounded(t *testing.T) {
	for _, c := range []struct{ mebibytes, warm int }{{1, 3}, {512, 20}} {
		store := &countedStore{Store: memory.New()}
		cfg := engine.DefaultConfig()
		cfg.Window.Memory = c.mebibytes
		e, err := engine.New(engine.Parts{Store: store, Compactor: &halver{}, Counter: wordCounter}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		id := func(i int) core.SessionID { return core.SessionID{Agent: "ada", Session: fmt.Sprint(i)} }
		shows := func(i int) (string, bool) {
			store.reset()
			res, err := e.Assemble(t.Context(), core.AssembleRequest{Session: id(i), Budget: 40_000})
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, m := range res.Messages {
				b.WriteString(m.Text() + "\n")
			}
			return b.String(), store.loads.Load()+store.scans.Load() == 0
		}
		first := make(map[int]string)
		for i := range 20 {
			var batch []message.Message
			for j := range 20 {
				batch = append(batch, message.New(message.User, fmt.Sprintf("%d of %d %s", j, i, strings.Repeat("word ", 6000))))
			}
			if _, err := e.IngestBatch(t.Context(), core.IngestBatchRequest{Session: id(i), Messages: batch}); err != nil {
				t.Fatal(err)
			}
			first[i], _ = shows(i)
		}
		warm := 0
		for i := 19; i >= 0; i-- {
			text, known := shows(i)
			if text != first[i] {
				t.Errorf("memory %d MiB: session %d shows another window when it is read again", c.mebibytes, i)
			}
			if known && warm == 19-i {
				warm++
			}
		}
		if warm < c.warm || c.warm < 20 && warm == 20 {
			t.Errorf("memory %d MiB: the %d newest windows were in memory, want at least %d and, when bounded, not all", c.mebibytes, warm, c.warm)
		}
	}
}
