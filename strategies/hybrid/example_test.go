package hybrid_test

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// Several searchers are asked at once and their answers joined; here there is one.
func ExampleNew() {
	ctx := context.Background()
	store := memory.New()
	for i, text := range []string{"The key of the boat house hangs behind the door.", "Supper is at seven.", "The boat needs paint."} {
		m := message.New(message.User, text)
		id := fmt.Sprint("e", i)
		entry := core.Entry{ID: id, Key: id, Seq: int64(i), Agent: "main", Session: "s", Type: core.TypeMessage, Role: m.Role, Message: m}
		if _, err := store.Append(ctx, []core.Entry{entry}); err != nil {
			fmt.Println(err)
			return
		}
	}
	index, err := lexical.New(lexical.DefaultConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = index.Close() }()
	if err := index.Attach(store); err != nil {
		fmt.Println(err)
		return
	}
	retriever, err := hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"lexical": index})
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := retriever.Retrieve(ctx, core.Query{
		Scope: core.Scope{Agent: "main"}, Prompt: "where is the key of the boat house?", Limit: 1, Tokens: 200, InWindow: func(string) bool { return false },
	})
	for _, c := range found {
		fmt.Println(c.Entry.Text())
	}
	fmt.Println(err)
	// Output:
	// The key of the boat house hangs behind the door.
	// <nil>
}
