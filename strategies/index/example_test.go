package index_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/strategies/index"
)

// An index of what was compacted stands for it: what was asked, decided and named; no model is asked.
func ExampleNew() {
	ctx := context.Background()
	compactor, err := index.New(index.DefaultConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	words := func(text string) int { return len(strings.Fields(text)) } // models/tiktoken counts tokens
	e, err := engine.New(engine.Parts{Store: memory.New(), Compactor: compactor, Counter: words}, engine.DefaultConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	id := core.SessionID{Agent: "main", Session: "monday"}
	for i := range 40 {
		said := []message.Message{message.New(message.User, fmt.Sprintf("Question %d about the boat house, please.", i)), message.New(message.Assistant, "Answer: it is open.")}
		if _, err := e.IngestBatch(ctx, core.IngestBatchRequest{Session: id, Messages: said}); err != nil {
			fmt.Println(err)
			return
		}
	}
	res, err := e.Compact(ctx, core.CompactRequest{Session: id, Budget: 400, Force: true})
	fmt.Println(res.Compacted, res.TokensAfter < res.TokensBefore, err)
	// Output: true true <nil>
}
