package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	cfg := sqlite.DefaultConfig()
	cfg.Path = filepath.Join(dir, "store.db")
	for range 2 { // what the first one stores, the second one finds
		store, err := sqlite.Open(ctx, cfg)
		if err != nil {
			fmt.Println(err)
			return
		}
		res, err := store.Append(ctx, []core.Entry{{
			ID: "e1", Key: "k1", Agent: "ann", Session: "s1", Role: message.User, Type: core.TypeMessage,
			Message: message.New(message.User, "hello"),
		}})
		fmt.Println(res.Duplicates, err, store.Close())
	}
	// Output:
	// 0 <nil> <nil>
	// 1 <nil> <nil>
}
