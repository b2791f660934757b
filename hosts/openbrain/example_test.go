package openbrain_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/hosts/openbrain"
	"github.com/contextengine/contextengine/strategies/lexical"
)

func ExampleServer_Serve() {
	store := memory.New()
	defer func() { _ = store.Close() }()
	index, err := lexical.New(lexical.DefaultConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := index.Attach(store); err != nil {
		fmt.Println(err)
		return
	}
	cfg := openbrain.DefaultConfig()
	cfg.Keys = []openbrain.Key{{Name: "laptop", SHA256: openbrain.HashKey("a-long-random-key"), Sources: []string{"openclaw:*"}}}
	server, err := openbrain.New(cfg, store, index)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Close() }()

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ln, err := cfg.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, ln) }()

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+ln.Addr().String()+"/v1/thoughts",
		strings.NewReader(`{"content": "The kettle is on.", "source": "openclaw:main", "metadata": {"id": "1"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header.Set("Authorization", "Bearer a-long-random-key")
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = res.Body.Close()
	fmt.Println(res.StatusCode)
	stop()
	fmt.Println(<-served)
	// Output:
	// 201
	// <nil>
}
