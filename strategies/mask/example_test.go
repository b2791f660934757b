package mask_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/strategies/mask"
)

// Old tool results leave the window first; the calls stay.
func ExampleNew() {
	ctx := context.Background()
	compactor, err := mask.New(mask.DefaultConfig())
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
		call := message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: fmt.Sprint(i), Name: "ls", Args: "{}"}}}
		result := message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: fmt.Sprint(i), Name: "ls", Text: strings.Repeat("boat.go ", 60)}}}
		said := []message.Message{message.New(message.User, "What is there?"), call, result, message.New(message.Assistant, "Boats.")}
		if _, err := e.IngestBatch(ctx, core.IngestBatchRequest{Session: id, Messages: said}); err != nil {
			fmt.Println(err)
			return
		}
	}
	res, err := e.Compact(ctx, core.CompactRequest{Session: id, Budget: 400, Force: true})
	fmt.Println(res.Compacted, res.TokensAfter < res.TokensBefore, err)
	// Output: true true <nil>
}
