package keyed_test

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/keyed"
	"github.com/contextengine/contextengine/core/message"
)

// A medium is all that has to be written; Memory is the smallest. examples/filestore has one over a file.
func Example() {
	ctx := context.Background()
	store := keyed.New(new(keyed.Memory))
	defer func() { _ = store.Close() }()
	entry := core.Entry{ID: "e1", Key: "k1", Agent: "main", Session: "monday", Type: core.TypeMessage, Role: message.User, Message: message.New(message.User, "hello")}
	for range 2 { // the same message twice is one entry
		res, err := store.Append(ctx, []core.Entry{entry})
		fmt.Println(res.IDs, res.Duplicates, err)
	}
	page, err := store.Scan(ctx, core.ScanQuery{Scope: core.Scope{Agent: "main"}, Limit: 10})
	fmt.Println(len(page.Entries), page.Entries[0].Text(), err)
	// Output:
	// [e1] 0 <nil>
	// [e1] 1 <nil>
	// 1 hello <nil>
}
