package recent_test

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/strategies/recent"
)

// The newest messages are the window's business; recent adds nothing to them.
func ExampleNew() {
	retriever, err := recent.New(recent.DefaultConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := retriever.Retrieve(context.Background(), core.Query{Scope: core.Scope{Agent: "main"}, Prompt: "where is the key?", Limit: 5})
	fmt.Println(len(found), err)
	// Output: 0 <nil>
}
