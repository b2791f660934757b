// Command peragent gives two agents two configurations out of one file, and shows what became of them.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

// config is what a file would hold. What stands under agents is laid over the rest, for that agent alone.
const config = `
store: memory
retriever: hybrid
compactor: archive
recentMessages: 20
agents:
  coder:
    recentMessages: 40
    window: {keepResults: 20}
  greeter:
    retriever: recent
    recentMessages: 5
`

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	reg := builtin.New()
	cfg, err := reg.Load(registry.Bytes("peragent.yaml", "yaml", []byte(config)))
	if err != nil {
		return err
	}
	instance, err := reg.Build(ctx, cfg, registry.BuildOptions{})
	if err != nil {
		return err
	}
	defer instance.Close(ctx)
	for _, agent := range []string{"coder", "greeter", "anyone"} {
		engine, arm, err := instance.Engine(ctx, agent, "session-1")
		if err != nil {
			return err
		}
		own, _, err := reg.Resolve(cfg, agent, "session-1")
		if err != nil {
			return err
		}
		parts := engine.Info().Parts
		fmt.Printf("%-8s  %s + %s + %s, %d recent messages, %d results kept (configuration %s)\n",
			agent, parts.Retriever, parts.Compactor, parts.Store, own.Core.RecentMessages, own.Core.Window.KeepResults, arm.Config)
	}
	return nil
}
