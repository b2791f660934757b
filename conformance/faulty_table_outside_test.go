package conformance_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// outsideStores are stores that somebody broke who read the contract alone.
func outsideStores() []broken {
	return slices.Concat(sharedBytesStores(), positionStores(), namedStores(), orderedStores(), keptViewStores(), swappedTails())
}

// sharedBytesStores give out the bytes that they hold.
func sharedBytesStores() []broken {
	of := func(name string, raws func(e *core.Entry) []*[]byte, get, scan bool) broken {
		return brokenStoreOf("store: shared bytes", name, func(s *brokenStore) {
			var mu sync.Mutex
			held := map[string][]byte{}
			share := func(e *core.Entry) {
				mu.Lock()
				defer mu.Unlock()
				for i, raw := range raws(e) {
					at := fmt.Sprint(e.ID, e.Fingerprint, i)
					if held[at] == nil {
						held[at] = *raw
					}
					*raw = held[at]
				}
			}
			if get {
				onGet(share)(s)
			}
			if scan {
				onScan(share)(s)
			}
		}, conformance.WithClaims("copy.owned"))
	}
	whole := func(e *core.Entry) []*[]byte { return []*[]byte{&e.Message.Raw} }
	parts := func(e *core.Entry) []*[]byte {
		var out []*[]byte
		for i := range e.Message.Parts {
			out = append(out, &e.Message.Parts[i].Raw)
		}
		return out
	}
	return []broken{
		of("of the message", whole, true, true), of("of the message, by Get alone", whole, true, false), of("of the message, by Scan alone", whole, false, true),
		of("of the parts", parts, true, true), of("of the parts, by Get alone", parts, true, false), of("of the parts, by Scan alone", parts, false, true),
	}
}

// positionStores store a second entry at a position where the first one is not what they look for.
func positionStores() []broken {
	of := func(name string, free func(taken, e core.Entry) bool) broken {
		return brokenStoreOf("store: positions", name, func(s *brokenStore) {
			s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
				return s.Store.Append(ctx, entriesOf(entries, func(e *core.Entry) {
					p, err := s.Store.Scan(ctx, core.ScanQuery{Scope: e.SessionID().Scope(), FromSeq: e.Seq, ToSeq: e.Seq + 1, Limit: 1})
					if err == nil && len(p.Entries) > 0 && p.Entries[0].Key != e.Key && free(p.Entries[0], *e) {
						e.Seq += 1 << 40
					}
				}))
			}
		}, conformance.WithClaims("position"))
	}
	return []broken{
		of("what was emptied holds none", func(taken, _ core.Entry) bool { return taken.Type == core.TypeErased }),
		of("a heartbeat holds none", func(taken, _ core.Entry) bool { return taken.Type == core.TypeHeartbeat }),
		of("one for each type", func(taken, e core.Entry) bool { return taken.Type != e.Type }),
		of("one for each role", func(taken, e core.Entry) bool { return taken.Role != e.Role }),
		of("one for each turn", func(taken, e core.Entry) bool { return taken.Turn != e.Turn }),
		of("one for each time", func(taken, e core.Entry) bool { return !taken.Time.Equal(e.Time) }),
		of("one for each text", func(taken, e core.Entry) bool { return taken.Fingerprint != e.Fingerprint }),
	}
}

// namedStores mix up names where they look for ids, make cursors and delete.
func namedStores() []broken {
	class := "store: names confused"
	joined := func(sep string) broken {
		return confusedStore("joined by "+fmt.Sprintf("%q", sep), func(id core.SessionID) core.SessionID {
			agent, session, _ := strings.Cut(id.Agent+sep+id.Session, sep)
			return core.SessionID{Agent: agent, Session: session}
		})
	}
	// A cursor that names session and position is cut at the first, or at the last, of its separators.
	cursor := func(sep string, cut func(s, sep string) int) broken {
		return brokenStoreOf(class, fmt.Sprintf("a cursor cut at %q", sep), func(s *brokenStore) {
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				where, at, _ := strings.Cut(string(q.Cursor), "\n\n")
				q.Cursor = core.Cursor(at)
				if where != "" {
					i := cut(where, sep)
					if rest := where[i+len(sep):]; strings.Contains(rest, sep) || i == 0 {
						return core.Page{}, core.ErrInvalid
					}
				}
				p, err := s.Store.Scan(ctx, q)
				if n := len(p.Entries); err == nil && p.Next != "" {
					p.Next = core.Cursor(fmt.Sprint(p.Entries[n-1].Session, sep, p.Entries[n-1].Seq, "\n\n", p.Next))
				}
				return p, err
			}
		}, conformance.WithClaims("odd.names"))
	}
	deletes := func(name string, too func(gone, other string) bool) broken {
		return brokenStoreOf(class, "deleting a view, "+name, func(s *brokenStore) {
			s.deleteView = func(ctx context.Context, id core.SessionID) error {
				for q := (core.ViewQuery{Agent: id.Agent, Limit: core.MaxPage}); ; {
					ids, err := s.Store.ListViews(ctx, q)
					for _, other := range ids {
						if q.After = other; other != id && too(id.Session, other.Session) {
							_ = s.Store.DeleteView(ctx, other)
						}
					}
					if err != nil || len(ids) < q.Limit {
						break
					}
				}
				return s.Store.DeleteView(ctx, id)
			}
		}, conformance.WithClaims("odd.names"))
	}
	return []broken{
		joined("\x00"), joined("\x1f"),
		brokenStoreOf(class, "an id of another agent's is stored over it", func(s *brokenStore) {
			s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
				for _, e := range entries {
					if scope := anySession(ctx, s.Store, e.ID); scope.Session != "" && scope.Agent != e.Agent {
						_, _ = s.Store.Delete(ctx, scope, []string{e.ID})
					}
				}
				return s.Store.Append(ctx, entries)
			}
		}, conformance.WithClaims("odd.keys")),
		cursor(":", strings.Index), cursor("/", strings.Index), cursor("|", strings.Index), cursor(" ", strings.Index), cursor("\x00", strings.Index),
		deletes("those that begin with its name", func(gone, other string) bool { return strings.HasPrefix(other, gone) }),
		deletes("those that end with its name", func(gone, other string) bool { return strings.HasSuffix(other, gone) }),
		deletes("in any case", strings.EqualFold),
		deletes("a pattern", func(gone, _ string) bool { return gone == "%" || gone == "*" }),
		deletes("a pattern of one letter", func(gone, other string) bool { return gone == "_" && len(other) == 1 }),
		deletes("up to NUL", func(gone, other string) bool {
			return strings.Split(gone, "\x00")[0] == strings.Split(other, "\x00")[0]
		}),
	}
}

// orderedStores scan in an order of their own, or not to the end.
func orderedStores() []broken {
	class := "store: scan"
	padded := func(width int) broken {
		return brokenStoreOf(class, fmt.Sprintf("positions padded to %d digits", width), onPage(func(q core.ScanQuery, p *core.Page) {
			slices.SortStableFunc(p.Entries, func(a, b core.Entry) int {
				if n := strings.Compare(fmt.Sprintf("%0*d", width, a.Seq), fmt.Sprintf("%0*d", width, b.Seq)); !q.Reverse {
					return n
				} else {
					return -n
				}
			})
		}), conformance.WithClaims("odd.positions"))
	}
	// of keeps, of the sessions of an agent in the order in which they came, those that it is told.
	of := func(name, claim string, which func(sessions []string, reverse bool) []string) broken {
		return brokenStoreOf(class, name, func(s *brokenStore) {
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				if q.Scope.Session != "" {
					return s.Store.Scan(ctx, q)
				}
				by, sessions := map[string][]core.Entry{}, []string{}
				for e, err := range core.All(ctx, s.Store, q.Scope, false) {
					if err != nil {
						return core.Page{}, err
					}
					if by[e.Session] == nil {
						sessions = append(sessions, e.Session)
					}
					by[e.Session] = append(by[e.Session], e)
				}
				var all []core.Entry
				for _, session := range which(sessions, q.Reverse) {
					if q.Reverse {
						slices.Reverse(by[session])
					}
					all = append(all, by[session]...)
				}
				from := 0
				if q.Cursor != "" {
					from = 1 + slices.IndexFunc(all, func(e core.Entry) bool { return e.ID == string(q.Cursor) })
				}
				page := core.Page{Entries: all[from:min(from+q.Limit, len(all))]}
				if from+q.Limit < len(all) {
					page.Next = core.Cursor(page.Entries[q.Limit-1].ID)
				}
				return page, q.Check("broken")
			}
		}, conformance.WithClaims(claim))
	}
	first := func(n int) broken {
		return of(fmt.Sprintf("the first %d sessions alone", n), "odd.batch", func(sessions []string, reverse bool) []string {
			sessions = sessions[:min(len(sessions), n)]
			if reverse {
				slices.Reverse(sessions)
			}
			return sessions
		})
	}
	return []broken{
		padded(4), padded(6), padded(8), padded(10), padded(12), first(100), first(128),
		of("sessions are not turned round", "scan", func(sessions []string, _ bool) []string { return sessions }),
		brokenStoreOf("store: texts repaired", "equal parts that follow each other are one", onAppend(func(e *core.Entry) {
			e.Message.Parts = slices.CompactFunc(e.Message.Parts, samePart)
		}), conformance.WithClaims("odd.fields")),
		brokenStoreOf("store: texts repaired", "of results of one call the first", onAppend(func(e *core.Entry) {
			seen := map[string]bool{}
			e.Message.Parts = slices.DeleteFunc(e.Message.Parts, func(p message.Part) bool {
				again := p.Kind == message.ToolResult && seen[p.CallID]
				seen[p.CallID] = seen[p.CallID] || p.Kind == message.ToolResult
				return again
			})
		}), conformance.WithClaims("odd.fields")),
	}
}

func samePart(a, b message.Part) bool {
	return a.Kind == b.Kind && a.Text == b.Text && a.CallID == b.CallID && a.Name == b.Name
}

// keptViewStores keep views that are not too large, not too many and not too odd.
func keptViewStores() []broken {
	class := "store: views"
	swap := func(name string, f func(v *core.View) error) broken {
		return brokenStoreOf(class, name, func(s *brokenStore) {
			s.swap = func(ctx context.Context, v core.View) error {
				v = v.Clone()
				return cmp.Or(f(&v), s.Store.SwapView(ctx, v))
			}
		}, conformance.WithClaims("view"))
	}
	texts := func(name string, f func(string) string) broken {
		return swap(name, func(v *core.View) error {
			for i := range v.Summaries {
				v.Summaries[i].Text = f(v.Summaries[i].Text)
			}
			return nil
		})
	}
	return []broken{
		swap("no more than 64 KiB", func(v *core.View) error {
			for _, sum := range v.Summaries {
				if len(sum.Text) > 1<<16 {
					return core.ErrInvalid
				}
			}
			return nil
		}),
		swap("the newest commits alone", func(v *core.View) error { v.Commits = v.Commits[max(0, len(v.Commits)-16):]; return nil }),
		swap("a hundred spans", func(v *core.View) error { v.Path = v.Path[:min(100, len(v.Path))]; return nil }),
		texts("blanks merged", func(s string) string { return strings.ReplaceAll(s, "  ", " ") }),
		texts("texts trimmed", strings.TrimSpace),
		texts("line ends of one kind", func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }),
		texts("three bytes a rune", nameChanges["three bytes a rune"]),
		texts("64 KiB of a text", func(s string) string { return s[:min(len(s), 1<<16-1)] }),
		brokenStoreOf(class, "a hundred in a list", func(s *brokenStore) {
			s.listViews = func(ctx context.Context, q core.ViewQuery) ([]core.SessionID, error) {
				q.Limit = min(q.Limit, 100)
				return s.Store.ListViews(ctx, q)
			}
		}, conformance.WithClaims("view")),
	}
}

// swappedTails are stores, opened twice, whose tail is not that of all there is.
func swappedTails() []broken {
	of := func(name string, change func(s *brokenStore)) broken {
		opening := func(m *memory.Store) *brokenStore {
			s := &brokenStore{Store: m, close: func() error { return nil }}
			change(s)
			return s
		}
		return broken{class: "store: tail", name: name, find: func(t *testing.T, _ ...conformance.Option) []conformance.Finding {
			t.Helper()
			return conformance.ExamineStore(t, func(testing.TB) core.Store { return opening(memory.New()) },
				conformance.WithExactly(3, 20260301), conformance.WithoutShrinking(), conformance.WithFirst(), conformance.WithClaims("tail"),
				conformance.WithAnother(func(_ testing.TB, first core.Store) core.Store {
					return opening(first.(*brokenStore).Store) //nolint:forcetypeassert // all are
				}))
		}}
	}
	return []broken{
		of("the version that this opening swapped last", func(s *brokenStore) {
			var last sync.Map
			s.swap = func(ctx context.Context, v core.View) error {
				err := s.Store.SwapView(ctx, v)
				if err == nil {
					last.Store(v.Session, v.Version)
				}
				return err
			}
			s.tail = func(ctx context.Context, id core.SessionID) (core.Tail, error) {
				t, err := s.Store.Tail(ctx, id)
				if v, ok := last.Load(id); ok && t.View > 0 {
					t.View, _ = v.(uint64)
				}
				return t, err
			}
		}),
		of("behind what this opening appended last", func(s *brokenStore) {
			var last sync.Map
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				res, err := s.Store.Append(ctx, e)
				for i := range e {
					if err == nil {
						last.Store(e[i].SessionID(), e[i].Seq+1)
					}
				}
				return res, err
			}
			s.deleteFunc = func(ctx context.Context, scope core.Scope, ids []string) (int, error) {
				last.Clear()
				return s.Store.Delete(ctx, scope, ids)
			}
			s.tail = func(ctx context.Context, id core.SessionID) (core.Tail, error) {
				t, err := s.Store.Tail(ctx, id)
				if n, ok := last.Load(id); ok && t.Next > 0 {
					t.Next, _ = n.(int64)
				}
				return t, err
			}
		}),
		of("behind the newest one that says something", newestBut(core.TypeErased)),
		of("behind the newest one that is shown", newestBut(core.TypeHeartbeat)),
	}
}

// newestBut gives a session's end as behind the newest entry of another type than one.
func newestBut(kind core.EntryType) func(*brokenStore) {
	return func(s *brokenStore) {
		s.tail = func(ctx context.Context, id core.SessionID) (core.Tail, error) {
			t, err := s.Store.Tail(ctx, id)
			t.Next = 0
			for e := range core.All(ctx, s.Store, id.Scope(), false) {
				if e.Type != kind {
					t.Next = e.Seq + 1
				}
			}
			return t, err
		}
	}
}
