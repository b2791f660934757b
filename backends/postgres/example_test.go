package postgres_test

import (
	"context"
	"fmt"
	"os"

	"github.com/contextengine/contextengine/backends/postgres"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func Example() {
	ctx := context.Background()
	cfg := postgres.DefaultConfig().WithEnv(os.Getenv)
	store, err := postgres.Open(ctx, cfg)
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
	for e, err := range core.All(ctx, store, core.Scope{Agent: "ann"}, false) {
		fmt.Println(e.ID, e.Text(), err)
	}
}

// What cannot be is said before a server is asked.
func ExampleConfig_Validate() {
	cfg := postgres.DefaultConfig()
	cfg.DSN, cfg.Schema = "postgres://localhost/history", "Mine"
	fmt.Println(cfg.Validate())
	// Output: postgres: config: schema: must be lower-case letters, digits and _, at most 48, and not begin with pg_: invalid
}
