package openbrain_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	server "github.com/contextengine/contextengine/hosts/openbrain"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// Open takes the address of a server and a key. Here the server is one of this project, over a store in memory.
func ExampleOpen() {
	behind := memory.New()
	defer behind.Close()
	settings := server.DefaultConfig()
	settings.Keys = []server.Key{{Name: "example", SHA256: server.HashKey("a-long-random-key"), Sources: []string{"openclaw:*"}}}
	index, err := lexical.New(lexical.DefaultConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := index.Attach(behind); err != nil {
		fmt.Println(err)
		return
	}
	handler, err := server.New(settings, behind, index)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer handler.Close()
	web := httptest.NewServer(handler.Handler())
	defer web.Close()

	ctx := context.Background()
	cfg := openbrain.DefaultConfig()
	cfg.BaseURL, cfg.APIKey = web.URL, "a-long-random-key"
	store, err := openbrain.Open(ctx, cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	_, err = store.Append(ctx, []core.Entry{{
		ID: "e1", Key: "k1", Agent: "main", Session: "work", Role: message.User, Type: core.TypeMessage, Message: message.New(message.User, "The kettle is on."),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := store.Get(ctx, core.Scope{Agent: "main"}, []string{"e1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(found[0].Text())
	// Output: The kettle is on.
}

// Without an address and a key there is nothing to open. OPENBRAIN_URL and OPENBRAIN_API_KEY name them where the configuration does not.
func ExampleConfig_WithEnv() {
	environment := map[string]string{"OPENBRAIN_URL": "http://localhost:8787"}
	cfg := openbrain.DefaultConfig().WithEnv(func(name string) string { return environment[name] })
	_, err := openbrain.Open(context.Background(), cfg)
	fmt.Println(cfg.BaseURL)
	fmt.Println(err)
	// Output:
	// http://localhost:8787
	// OpenBrainConfigError: openclaw-openbrain-context: baseUrl and apiKey are required. Set them in your openclaw.json plugin config.
}
