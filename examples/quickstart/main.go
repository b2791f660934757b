// Command quickstart makes an engine, tells it a conversation, and prints what a model would see of it within 1,000 tokens.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	reg := builtin.New()
	// The defaults, hybrid retrieval and archive compaction, but for the store: nothing of this example is to last.
	cfg, err := reg.Load(registry.Values("quickstart", map[string]any{"store": "memory"}))
	if err != nil {
		return err
	}
	instance, err := reg.Build(ctx, cfg, registry.BuildOptions{})
	if err != nil {
		return err
	}
	defer instance.Close(ctx)
	session := core.SessionID{Agent: "main", Session: "kitchen"}
	engine, _, err := instance.Engine(ctx, session.Agent, session.Session)
	if err != nil {
		return err
	}
	say := func(role message.Role, text string) {
		if err == nil {
			_, err = engine.Ingest(ctx, core.IngestRequest{Session: session, Message: message.New(role, text)})
		}
	}
	say(message.User, "My grandmother's starter is called Bruno. Bruno eats rye.")
	say(message.Assistant, "Noted: Bruno is a rye starter.")
	for i := range 60 {
		say(message.User, fmt.Sprintf("Loaf %d came out a little flat. What should I change?", i+1))
		say(message.Assistant, "Let it rise longer, and fold it once more.")
	}
	say(message.User, "What does Bruno eat?")
	if err != nil {
		return err
	}
	window, err := engine.Assemble(ctx, core.AssembleRequest{Session: session, Budget: 1000})
	if err != nil {
		return err
	}
	for _, m := range window.Messages {
		fmt.Printf("%-9s  %s\n", m.Role, m.Text())
	}
	fmt.Printf("%d tokens of 1000\n", window.EstimatedTokens)
	return nil
}
