package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/hosts/rpc"
	"github.com/contextengine/contextengine/strategies/archive"
)

// A server and a client in one process; over a socket or standard input and output it is the same.
func Example() {
	ctx := context.Background()
	compactor, err := archive.New(archive.DefaultConfig())
	if err != nil {
		log.Fatal(err)
	}
	host := rpc.NewHost()
	e, err := engine.New(engine.Parts{
		Store: memory.New(), Compactor: compactor, Host: host, Counter: func(s string) int { return len(s) / 4 },
	}, engine.DefaultConfig())
	if err != nil {
		log.Fatal(err)
	}
	server, err := rpc.New(one{e}, host)
	if err != nil {
		log.Fatal(err)
	}
	here, there := net.Pipe()
	go func() { _ = server.ServeStdio(ctx, there, there) }()

	client := rpc.NewClient(here, here, rpc.ClientOptions{})
	if _, err := client.Initialize(ctx, rpc.InitializeParams{Client: rpc.Program{Name: "example"}, Format: "openai"}); err != nil {
		log.Fatal(err)
	}
	conversation := rpc.NewConversation(client, core.SessionID{Agent: "main", Session: "s1"}, "")
	history := []json.RawMessage{
		json.RawMessage(`{"role":"user","content":"My dog is called Rex."}`),
		json.RawMessage(`{"role":"assistant","content":"Noted."}`),
	}
	prompt, result, err := conversation.Assemble(ctx, history, rpc.AssembleParams{Budget: 1000, Prompt: "What is my dog called?"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(prompt), result.PromptAuthority)
	fmt.Println(client.Shutdown(ctx), server.Close(ctx))
	// Output:
	// 2 assembled
	// <nil> <nil>
}
