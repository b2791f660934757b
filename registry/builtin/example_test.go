package builtin_test

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

func ExampleNew() {
	ctx := context.Background()
	reg := builtin.New()
	cfg, err := reg.Load(registry.Values("example", map[string]any{"store": "memory"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	instance, err := reg.Build(ctx, cfg, registry.BuildOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = instance.Close(ctx) }()
	engine, _, err := instance.Engine(ctx, "main", "monday")
	if err != nil {
		fmt.Println(err)
		return
	}
	parts := engine.Info().Parts
	fmt.Println(parts.Retriever, parts.Compactor, parts.Store)
	// Output: hybrid archive memory
}
