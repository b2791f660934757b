package recall_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/experiment/questions"
	"github.com/contextengine/contextengine/experiment/recall"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// How much of what answers a question does a retriever bring back? Here there is one message to find, and it is the first candidate.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "boats.jsonl")
	lines := `{"id":"m1","text":"The boat is called Wren."}
{"id":"m2","text":"It rains in May."}
{"question":"What is the boat called?","evidence":["m1"]}
`
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	set, err := questions.Open(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := recall.Run(context.Background(), recall.Plan{Dataset: set, Depths: []int{1}, Budgets: []int{100}, Arms: []recall.Arm{{Name: "words", Open: openWords}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	first := result.Arms[0].Groups[0].Measures[0]
	fmt.Println(first.Name, first.Recall.Mean)
	// Output: R@1 1
}

// openWords is an engine that finds words.
func openWords(context.Context) (recall.Subject, error) {
	index, err := lexical.New(lexical.DefaultConfig())
	if err != nil {
		return recall.Subject{}, err
	}
	retriever, err := hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"lexical": index})
	if err != nil {
		return recall.Subject{}, err
	}
	compactor, err := archive.New(archive.DefaultConfig())
	if err != nil {
		return recall.Subject{}, err
	}
	store := memory.New()
	if err := index.Attach(store); err != nil {
		return recall.Subject{}, err
	}
	counter := func(text string) int { return len(strings.Fields(text)) }
	e, err := engine.New(engine.Parts{Store: store, Retriever: retriever, Compactor: compactor, Counter: counter, Observers: []core.Observer{index}}, engine.DefaultConfig())
	return recall.Subject{Engine: e, Retriever: retriever, Store: store, Close: func(context.Context) error { return store.Close() }}, err
}
