package outbox_test

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func Example() {
	ctx := context.Background()
	local, remote := memory.New(), memory.New() // a sqlite and an openbrain store, say
	cfg := outbox.DefaultConfig()
	cfg.Volatile = true // memory has no file to keep a journal beside
	store, err := outbox.Open(ctx, cfg, local, remote)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	_, err = store.Append(ctx, []core.Entry{{
		ID: "e1", Key: "k1", Agent: "ann", Session: "s1", Role: message.User, Type: core.TypeMessage,
		Message: message.New(message.User, "hello"),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	left, err := store.Drain(ctx)
	fmt.Println(left, err)
	for e, err := range core.All(ctx, remote, core.Scope{Agent: "ann"}, false) {
		fmt.Println(e.ID, e.Text(), err)
	}
	// Output:
	// 0 <nil>
	// e1 hello <nil>
}
