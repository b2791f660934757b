package summary_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/strategies/summary"
)

// writer stands for a model, such as one of models/openai.
type writer struct{}

func (writer) Complete(context.Context, core.CompletionRequest) (core.Completion, error) {
	return core.Completion{Text: "They talked about when the boat house is open.", Model: "none"}, nil
}

// A model writes what stands for old history; when it fails, a note does.
func ExampleNew() {
	ctx := context.Background()
	compactor, err := summary.New(summary.DefaultConfig(), writer{})
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
