package openbrain_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
)

// operation is a call of a store, and the request that it is about.
type operation struct {
	name, method, path string
	call               func(context.Context, *openbrain.Store) error
}

// operations are the calls of a store that holds seeded.
var operations = []operation{
	{"append", "POST", "=/v1/thoughts", func(ctx context.Context, s *openbrain.Store) error {
		res, err := s.Append(ctx, fresh())
		if want := ids(fresh()); err == nil && !slices.Equal(res.IDs, want) {
			return fmt.Errorf("Append returned ids %v, want %v", res.IDs, want)
		}
		return err
	}},
	{"get", "GET", "/v1/thoughts/", func(ctx context.Context, s *openbrain.Store) error {
		got, err := s.Get(ctx, agentScope("main"), ids(seeded()))
		return unlike(err, seeded(), got)
	}},
	{"scan", "GET", "=/v1/thoughts", func(ctx context.Context, s *openbrain.Store) error {
		page, err := s.Scan(ctx, core.ScanQuery{Scope: agentScope("main"), Limit: 10})
		if err != nil {
			return err
		}
		return unlike(nil, seeded(), page.Entries[:min(len(page.Entries), len(seeded()))])
	}},
	{"search", "POST", "/v1/search", func(ctx context.Context, s *openbrain.Store) error {
		hits, err := s.Search(ctx, core.SearchQuery{Scope: agentScope("main"), Text: askedText, Limit: 1})
		if err == nil && (len(hits) != 1 || hits[0].Entry.ID != seeded()[1].ID) {
			return fmt.Errorf("Search found %v", hitIDs(hits))
		}
		return err
	}},
	{"update", "PATCH", "/v1/thoughts/", func(ctx context.Context, s *openbrain.Store) error {
		e := updated()
		return s.Update(ctx, agentScope("main"), e.ID, core.Change{Message: &e.Message, Tokens: e.Tokens, Fingerprint: e.Fingerprint})
	}},
	{"delete", "DELETE", "/v1/thoughts/", func(ctx context.Context, s *openbrain.Store) error {
		_, err := s.Delete(ctx, agentScope("main"), []string{seeded()[1].ID})
		return err
	}},
}

func unlike(err error, want, got []core.Entry) error {
	if diff := cmp.Diff(want, got); err == nil && diff != "" {
		return fmt.Errorf("entries (-want +got):\n%s", diff)
	}
	return err
}

func seeded() []core.Entry {
	var out []core.Entry
	for i := range 3 {
		out = append(out, entry("main", "s", i, fmt.Sprintf("word%d %s", i, storedText)))
	}
	return out
}

func fresh() []core.Entry {
	return []core.Entry{entry("main", "s", 3, writtenText), entry("main", "s", 4, writtenText+" again"), entry("main", "s", 5, writtenText+" and again")}
}

func updated() core.Entry { return entry("main", "s", 1, writtenText) }

// after is what the agent's entries are when an operation went well.
func after(op string) []core.Entry {
	entries := seeded()
	switch op {
	case "append":
		return append(entries, fresh()...)
	case "update":
		entries[1] = updated()
	case "delete":
		return append(entries[:1], entries[2])
	}
	return entries
}
