package conformance_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// faultyTypes are stores that do not find the entries of one type.
func faultyTypes() []fault {
	return []fault{
		storeFault("a scan for a type ends with the first page", func(s *brokenStore) {
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				page, err := s.Store.Scan(ctx, q)
				if q.Type != "" {
					page.Next = ""
				}
				return page, err
			}
		}, []string{"type.scan"}),
		storeFault("types as they were appended", func(s *brokenStore) {
			var first sync.Map // the type of an entry by its id
			s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
				res, err := s.Store.Append(ctx, entries)
				for i := range entries {
					if err == nil && res.IDs[i] == entries[i].ID {
						first.Store(entries[i].ID, entries[i].Type)
					}
				}
				return res, err
			}
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				if q.Type == "" {
					return s.Store.Scan(ctx, q)
				}
				return byOffset(ctx, s, q, func(e *core.Entry) bool { was, _ := first.Load(e.ID); return was == q.Type })
			}
		}, []string{"type.scan"}),
		storeFault("types by offset", func(s *brokenStore) {
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				if q.Type == "" {
					return s.Store.Scan(ctx, q)
				}
				return byOffset(ctx, s, q, func(e *core.Entry) bool { return e.Type == q.Type })
			}
		}, []string{"type.moving"}),
		{name: "types forgotten when reopened", caught: []string{"type.reopen"}, kin: []string{"shared.*"}, find: func(t *testing.T) []conformance.Finding {
			t.Helper()
			return conformance.ExamineStore(t, openMemory, append(few(10), telling([]string{"type.reopen"}, []string{"shared.*"}), conformance.WithReopen(func(_ testing.TB, old core.Store) core.Store {
				if b, again := old.(*brokenStore); again {
					return b
				}
				m, ok := old.(*memory.Store)
				if !ok {
					return old
				}
				s := &brokenStore{Store: m}
				s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
					if q.Type == core.TypeErased {
						return core.Page{}, nil
					}
					return s.Store.Scan(ctx, q)
				}
				return s
			}))...)
		}},
	}
}

// byOffset returns a page of what is so, behind as many of them as the cursor says.
func byOffset(ctx context.Context, s *brokenStore, q core.ScanQuery, is func(*core.Entry) bool) (page core.Page, err error) {
	from, _ := strconv.Atoi(string(q.Cursor))
	at := 0
	for e, err := range core.All(ctx, s.Store, q.Scope, q.Reverse) {
		if err != nil {
			return core.Page{}, err
		}
		if !is(&e) || q.Scope.Session != "" && (e.Seq < q.FromSeq || q.ToSeq > 0 && e.Seq >= q.ToSeq) {
			continue
		}
		if at++; at <= from {
			continue
		}
		if len(page.Entries) == q.Limit {
			page.Next = core.Cursor(strconv.Itoa(at - 1))
			break
		}
		page.Entries = append(page.Entries, e)
	}
	return page, nil
}
