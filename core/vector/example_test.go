package vector_test

import (
	"fmt"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/vector"
)

// Whether a store keeps vectors is asked through core.As.
func ExampleStore() {
	store := memory.New()
	defer store.Close()
	_, keeps := core.As[vector.Store](store)
	_, compares := core.As[vector.Searcher](store)
	fmt.Println(keeps, compares)
	// Output: false false
}
