package upkeep_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
)

// What a store can do for those who look after it is asked through core.As.
func ExampleStatter() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	store, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(dir, "history.db")})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if s, ok := core.As[upkeep.Statter](store); ok {
		stats, err := s.Stats(ctx)
		fmt.Println(stats.Sessions, stats.Entries, err)
	}
	// Output: 0 0 <nil>
}
