package conformance_test

import (
	"context"
	"errors"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// onePage is how those read a store who take a page that holds nothing for the end of a scan.
type onePage struct {
	core.Store
	// of says in which scans.
	of func(core.ScanQuery) bool
}

func (s onePage) Unwrap() core.Store { return s.Store }

func (s onePage) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	page, err := s.Store.Scan(ctx, q)
	if len(page.Entries) == 0 && s.of(q) {
		page.Next = ""
	}
	return page, err
}

// blindToPages are engines that do not follow a scan behind a page that holds nothing.
func blindToPages() []broken {
	var out []broken
	for name, of := range map[string]func(core.ScanQuery) bool{
		"the newest entry":     func(q core.ScanQuery) bool { return q.Limit == 1 && q.Reverse },
		"the entry of a place": func(q core.ScanQuery) bool { return q.Limit == 1 && !q.Reverse },
		"what is long":         func(q core.ScanQuery) bool { return q.Limit > 1 },
	} {
		s := setup{compactor: "archive", reads: func(s core.Store) core.Store { return onePage{s, of} }}
		out = append(out, brokenEngineOf("pages that hold nothing", name, s, func(*wrongEngine) {}))
	}
	return out
}

// conflictsPassed are stores that look for an id in some places alone.
func conflictsPassed() []broken {
	passed := func(name string, passes func(s *brokenStore, e []core.Entry) bool) broken {
		return brokenStoreOf("store: ids given twice", name, func(s *brokenStore) {
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				res, err := s.Store.Append(ctx, e)
				if errors.Is(err, core.ErrConflict) && passes(s, e) {
					return core.AppendResult{IDs: make([]string, len(e))}, nil
				}
				return res, err
			}
		}, conformance.WithFirst())
	}
	return []broken{
		passed("in another session", func(s *brokenStore, e []core.Entry) bool {
			got, err := s.Store.Get(context.Background(), core.Scope{Agent: e[0].Agent}, []string{e[0].ID})
			return err == nil && got[0].Session != e[0].Session
		}),
		passed("in one batch, in two sessions", func(_ *brokenStore, e []core.Entry) bool {
			return len(e) == 2 && e[0].ID == e[1].ID && e[0].Session != e[1].Session
		}),
		passed("in one batch, in one session", func(_ *brokenStore, e []core.Entry) bool {
			return len(e) == 2 && e[0].ID == e[1].ID && e[0].Session == e[1].Session
		}),
	}
}
