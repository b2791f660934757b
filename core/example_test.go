package core_test

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// What only some stores can do is found with As, also behind stores that wrap others.
func ExampleAs() {
	store := memory.New()
	defer store.Close()
	_, searches := core.As[core.Searcher](store)
	_, views := core.As[core.ViewStore](store)
	fmt.Println("searches:", searches)
	fmt.Println("keeps views:", views)
	// Output:
	// searches: false
	// keeps views: true
}

// All reads a scope page by page.
func ExampleAll() {
	ctx := context.Background()
	store := memory.New()
	defer store.Close()
	id := core.SessionID{Agent: "main", Session: "work"}
	for i, text := range []string{"Which port?", "8080."} {
		m := message.New(message.User, text)
		entry := core.Entry{ID: fmt.Sprint("e", i), Agent: id.Agent, Session: id.Session, Key: fmt.Sprint("k", i), Seq: int64(i), Role: m.Role, Type: core.TypeMessage, Message: m}
		if _, err := store.Append(ctx, []core.Entry{entry}); err != nil {
			fmt.Println(err)
			return
		}
	}
	for entry, err := range core.All(ctx, store, id.Scope(), true) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(entry.ID, entry.Text())
	}
	// Output:
	// e1 8080.
	// e0 Which port?
}
