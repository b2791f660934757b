package delegate_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/strategies/delegate"
)

// compactingHost stands for a host that compacts.
type compactingHost struct{ core.NoHost }

func (compactingHost) Capabilities() []capability.Name {
	return []capability.Name{capability.DelegateHost}
}

func (compactingHost) Compact(context.Context, core.CompactRequest) (core.CompactResult, error) {
	return core.CompactResult{OK: true, Compacted: true, TokensBefore: 9000, TokensAfter: 1000}, nil
}

// The runtime compacts, and its result is passed through.
func ExampleNew() {
	ctx := context.Background()
	compactor, err := delegate.New(compactingHost{})
	if err != nil {
		fmt.Println(err)
		return
	}
	words := func(text string) int { return len(strings.Fields(text)) } // models/tiktoken counts tokens
	e, err := engine.New(engine.Parts{Store: memory.New(), Compactor: compactor, Counter: words, Host: compactingHost{}}, engine.DefaultConfig())
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
