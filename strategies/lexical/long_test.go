package lexical_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// countdown is a context whose time is over after it was asked so often whether it is.
type countdown struct {
	context.Context
	left, asked int
}

func (c *countdown) Err() error {
	c.asked++
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestLongQuery: of a query without end the beginning and the end are looked for, so that its length costs nothing; and the deadline is looked at all the way.
func TestLongQuery(t *testing.T) {
	store := memory.New()
	var all []core.Entry
	for i := range 50 {
		all = append(all, entry(fmt.Sprintf("e%d", i), "s", int64(i), fmt.Sprintf("line %d of src/module_%d/handler.go", i, i)))
	}
	all = append(all, entry("first", "s", 50, "the harbour"), entry("last", "s", 51, "the walnut"))
	if _, err := store.Append(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	x, err := lexical.New(lexical.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Attach(store); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("harbour ")
	for i := range 150_000 {
		fmt.Fprintf(&b, "src/unknown_%d/x%d.go ", i, i)
	}
	b.WriteString("walnut")
	q := core.SearchQuery{Scope: core.Scope{Agent: "ada"}, Text: b.String(), Limit: 60}
	hits, err := x.Search(t.Context(), q)
	if found := ids(hits); err != nil || !strings.Contains(found, "first") || !strings.Contains(found, "last") {
		t.Errorf("found %q, %v, want what the beginning and the end of the query ask for", found, err)
	}
	ctx := &countdown{Context: t.Context(), left: 1 << 30}
	if _, err := x.Search(ctx, q); err != nil || ctx.asked < 10 || ctx.asked > 1000 {
		t.Errorf("error %v; the deadline was looked at %d times, want now and then, in proportion to the bound and not to the query", err, ctx.asked)
	}
	for left := range ctx.asked {
		if _, err := x.Search(&countdown{Context: t.Context(), left: left}, q); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("the time is over at look %d of %d: error %v, want context.DeadlineExceeded", left, ctx.asked, err)
		}
	}
}
