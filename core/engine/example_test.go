package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/strategies/archive"
)

// An engine is made of parts, told what is said, and asked what a model should see.
func Example() {
	ctx := context.Background()
	store := memory.New()
	defer store.Close()
	compactor, err := archive.New(archive.DefaultConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := engine.New(engine.Parts{
		Store: store, Compactor: compactor,
		Counter: func(text string) int { return len(strings.Fields(text)) }, // models/tiktoken counts as models do
	}, engine.DefaultConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	session := core.SessionID{Agent: "main", Session: "work"}
	for _, m := range []message.Message{
		message.New(message.User, "Which port does the server use?"),
		message.New(message.Assistant, "8080."),
		message.New(message.User, "Make it 9090."),
	} {
		if _, err := e.Ingest(ctx, core.IngestRequest{Session: session, Message: m}); err != nil {
			fmt.Println(err)
			return
		}
	}
	window, err := e.Assemble(ctx, core.AssembleRequest{Session: session, Budget: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range window.Messages {
		fmt.Println(m.Role, m.Text())
	}
	// Output:
	// user Which port does the server use?
	// assistant 8080.
	// user Make it 9090.
}

// Errors are told apart with errors.Is, and say what to do.
func ExampleNew() {
	_, err := engine.New(engine.Parts{}, engine.DefaultConfig())
	fmt.Println(errors.Is(err, core.ErrInvalid))
	// Output: true
}
