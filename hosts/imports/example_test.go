package imports_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/hosts/imports"
	"github.com/contextengine/contextengine/strategies/archive"
)

// newEngine is an engine of the least parts: a store, a compactor, and something that counts tokens.
func newEngine(store core.Store) (*engine.Engine, error) {
	compactor, err := archive.New(archive.DefaultConfig())
	if err != nil {
		return nil, err
	}
	counter := func(text string) int { return len(strings.Fields(text)) } // models/tiktoken counts as models do
	return engine.New(engine.Parts{Store: store, Compactor: compactor, Counter: counter}, engine.DefaultConfig())
}

// oneEngine lets every session have the same engine.
type oneEngine struct{ target imports.Target }

func (s oneEngine) Target(context.Context, core.SessionID) (imports.Target, error) {
	return s.target, nil
}

// What a file is, is seen from its content; what is there already is not stored again.
func ExampleData() {
	ctx := context.Background()
	store := memory.New()
	defer store.Close()
	e, err := newEngine(store)
	if err != nil {
		fmt.Println(err)
		return
	}
	chat := []byte(`{"role":"user","content":"hello"}` + "\n" + `{"role":"assistant","content":"hi"}` + "\n")
	for range 2 {
		report, err := imports.Data(ctx, "chat.jsonl", chat, oneEngine{imports.Target{Ingester: e, Store: store}}, imports.Options{Agent: "main", Session: "work"})
		fmt.Println(report.Format, report.Messages, report.Imported, report.Duplicates, err)
	}
	// Output:
	// transcript 2 2 0 <nil>
	// transcript 2 0 2 <nil>
}

// Export writes a store as lines, Restore reads them into another.
func ExampleExport() {
	ctx := context.Background()
	from, to := memory.New(), memory.New()
	defer from.Close()
	defer to.Close()
	e, err := newEngine(from)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := imports.Data(ctx, "chat.jsonl", []byte(`{"role":"user","content":"hello"}`), oneEngine{imports.Target{Ingester: e, Store: from}}, imports.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	var lines bytes.Buffer
	out, err := imports.Export(ctx, from, &lines, core.Scope{}, nil)
	fmt.Println(out.Entries, out.Views, err)
	in, err := imports.Restore(ctx, to, &lines, nil)
	fmt.Println(in.Entries, in.Views, err)
	// Output:
	// 1 1 <nil>
	// 1 1 <nil>
}
