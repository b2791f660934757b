package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// tableStores are broken stores.
func tableStores() []broken {
	return slices.Concat(fieldStores(), textStores(), nameStores(), appendStores(), scanStores(), getStores(), updateStores(), deleteStores(), endStores(), sharedMemoryStores(), racingStores(), againStores(), outsideStores(), lastingStores())
}

func fieldStores() []broken {
	var out []broken
	for _, l := range entryLeaves() {
		clearField := func(e *core.Entry) { l.clear(reflect.ValueOf(e).Elem()) }
		for how, change := range map[string]func(*brokenStore){"not stored": onAppend(clearField), "not in Get": onGet(clearField), "not in Scan": onScan(clearField)} {
			if how == "not stored" && (l.path == ".Key" || l.path == ".Seq") {
				continue
			}
			out = append(out, brokenStoreOf("store: a field lost", l.path+" "+how, change))
		}
	}
	return out
}

// textChanges are what careless stores do to texts and bytes.
var textChanges = map[string]func(string) string{
	"trimmed":           strings.TrimSpace,
	"lower case":        strings.ToLower,
	"valid UTF-8":       func(s string) string { return strings.ToValidUTF8(s, "\ufffd") },
	"without NUL":       func(s string) string { return strings.ReplaceAll(s, "\x00", "") },
	"up to NUL":         func(s string) string { s, _, _ = strings.Cut(s, "\x00"); return s },
	"LF for CRLF":       func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") },
	"64 KiB":            func(s string) string { return s[:min(len(s), 64<<10)] },
	"65535 bytes":       func(s string) string { return s[:min(len(s), 65535)] },
	"a byte short":      func(s string) string { return s[:max(len(s)-1, 0)] },
	"composed":          func(s string) string { return strings.ReplaceAll(s, "a\u0301", "\u00e1") },
	"one blank for two": func(s string) string { return strings.ReplaceAll(s, "  ", " ") },
	"escaped":           func(s string) string { return strings.NewReplacer("<", "\\u003c", "&", "\\u0026").Replace(s) },
	"without BOM":       func(s string) string { return strings.TrimPrefix(s, "\ufeff") },
	"through JSON":      func(s string) string { b, _ := json.Marshal(s); _ = json.Unmarshal(b, &s); return s },
}

func textStores() []broken {
	var out []broken
	for name, change := range textChanges {
		out = append(out, brokenStoreOf("store: texts repaired", "text "+name, onAppend(func(e *core.Entry) {
			for i := range e.Message.Parts {
				e.Message.Parts[i].Text = change(e.Message.Parts[i].Text)
			}
		})), brokenStoreOf("store: texts repaired", "raw "+name, onAppend(func(e *core.Entry) {
			if e.Message.Raw != nil {
				e.Message.Raw = []byte(change(string(e.Message.Raw)))
			}
		})), brokenStoreOf("store: texts repaired", "raw of a part, updated, "+name, onUpdate(func(_ *brokenStore, _ context.Context, _ core.Scope, _ string, c *core.Change) error {
			if c.Message != nil {
				m := *c.Message
				m.Parts = slices.Clone(m.Parts)
				for i := range m.Parts {
					if m.Parts[i].Raw != nil {
						m.Parts[i].Raw = []byte(change(string(m.Parts[i].Raw)))
					}
				}
				c.Message = &m
			}
			return nil
		})))
	}
	raw := func(name string, change func([]byte) []byte) broken {
		return brokenStoreOf("store: texts repaired", name, onAppend(func(e *core.Entry) {
			if e.Message.Raw != nil {
				e.Message.Raw = change(e.Message.Raw)
			}
		}))
	}
	out = append(out,
		raw("JSON compacted", func(b []byte) []byte {
			var out bytes.Buffer
			if json.Compact(&out, b) != nil {
				return b
			}
			return out.Bytes()
		}),
		raw("JSON encoded anew", func(b []byte) []byte {
			var v any
			if json.Unmarshal(b, &v) != nil {
				return b
			}
			b, _ = json.Marshal(v)
			return b
		}),
		raw("unescaped slashes", func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`\/`), []byte("/")) }),
		brokenStoreOf("store: texts repaired", "whole entry through JSON", onAppend(func(e *core.Entry) {
			b, err := json.Marshal(e)
			var back core.Entry
			if err == nil && json.Unmarshal(b, &back) == nil {
				*e = back
			}
		})),
		brokenStoreOf("store: texts repaired", "metadata values trimmed", onAppend(func(e *core.Entry) {
			for k, v := range e.Meta {
				e.Meta[k] = strings.TrimRight(v, "\x00 ")
			}
		})),
		brokenStoreOf("store: texts repaired", "empty metadata values dropped", onAppend(func(e *core.Entry) { maps.DeleteFunc(e.Meta, func(_, v string) bool { return v == "" }) })),
		brokenStoreOf("store: texts repaired", "metadata with an empty key dropped", onAppend(func(e *core.Entry) { delete(e.Meta, "") })),
		brokenStoreOf("store: texts repaired", "metadata keys in lower case", onAppend(func(e *core.Entry) {
			for k, v := range e.Meta {
				delete(e.Meta, k)
				e.Meta[strings.ToLower(k)] = v
			}
		})),
		brokenStoreOf("store: texts repaired", "times by the second", onAppend(func(e *core.Entry) { e.Time = e.Time.Truncate(time.Second) })),
		brokenStoreOf("store: texts repaired", "times read in another zone", func(s *brokenStore) {
			s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
				got, err := s.Store.Get(ctx, scope, ids)
				return entriesOf(got, elsewhere), err
			}
		}),
		brokenStoreOf("store: texts repaired", "times scanned in another zone", onPage(func(_ core.ScanQuery, p *core.Page) { p.Entries = entriesOf(p.Entries, elsewhere) })),
		brokenStoreOf("store: texts repaired", "times of today only", onAppend(func(e *core.Entry) {
			if y := e.Time.Year(); y < 1970 || y > 2100 {
				e.Time = time.Unix(0, 0).UTC()
			}
		})),
		brokenStoreOf("store: texts repaired", "nanoseconds in 64 bits", onAppend(func(e *core.Entry) { e.Time = time.Unix(0, e.Time.UnixNano()).UTC() })),
		brokenStoreOf("store: texts repaired", "tokens in 31 bits", onAppend(func(e *core.Entry) { e.Tokens &= 1<<31 - 1 })),
		brokenStoreOf("store: texts repaired", "turns in 32 bits", onAppend(func(e *core.Entry) { e.Turn &= 1<<32 - 1 })),
	)
	return out
}

// nameChanges are how careless stores confuse names.
var nameChanges = map[string]func(string) string{
	"case folded":       strings.ToLower,
	"trimmed":           strings.TrimSpace,
	"blanks at the end": func(s string) string { return strings.TrimRight(s, " ") },
	"composed":          func(s string) string { return strings.ReplaceAll(s, "e\u0301", "\u00e9") },
	"without accents":   func(s string) string { return strings.NewReplacer("e\u0301", "e", "\u00e9", "e").Replace(s) },
	"255 bytes":         func(s string) string { return s[:min(len(s), 255)] },
	"path cleaned":      func(s string) string { return strings.TrimPrefix(s, "../") },
	"ASCII alone": func(s string) string {
		return strings.Map(func(r rune) rune { return map[bool]rune{true: r, false: '_'}[r < 128] }, s)
	},
	"file names": func(s string) string {
		return strings.NewReplacer("/", "_", ":", "_", "\\", "_", "|", "_", "*", "_", "\"", "_").Replace(s)
	},
	"numbers":             func(s string) string { return strings.TrimLeft(s, "0") },
	"without zero widths": func(s string) string { return strings.ReplaceAll(s, "\u200b", "") },
	"three bytes a rune": func(s string) string {
		return strings.Map(func(r rune) rune { return map[bool]rune{true: r, false: '?'}[r < 1<<16] }, s)
	},
	"up to NUL": func(s string) string { s, _, _ = strings.Cut(s, "\x00"); return s },
}

func nameStores() []broken {
	var out []broken
	for name, change := range nameChanges {
		out = append(out, confusedStore("session "+name, func(id core.SessionID) core.SessionID { id.Session = change(id.Session); return id }),
			brokenStoreOf("store: names confused", "key "+name, func(s *brokenStore) {
				s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
					return s.Store.Append(ctx, entriesOf(e, func(e *core.Entry) { e.Key = change(e.Key) }))
				}
			}),
			brokenStoreOf("store: names confused", "view of session "+name, func(s *brokenStore) {
				s.swap = func(ctx context.Context, v core.View) error {
					v.Session.Session = "x" + change(v.Session.Session)
					return s.Store.SwapView(ctx, v)
				}
				s.load = func(ctx context.Context, id core.SessionID) (core.View, error) {
					alike := id
					alike.Session = "x" + change(id.Session)
					v, err := s.Store.LoadView(ctx, alike)
					v.Session = id
					return v, err
				}
			}))
	}
	for _, sep := range []string{"/", ":", "|", "-", " ", "_", ".", "#"} {
		out = append(out, confusedStore("joined by "+sep, func(id core.SessionID) core.SessionID {
			agent, session, _ := strings.Cut(id.Agent+sep+id.Session, sep)
			return core.SessionID{Agent: agent, Session: session}
		}))
	}
	out = append(out, brokenStoreOf("store: names confused", "sessions by prefix", func(s *brokenStore) {
		s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
			if q.Scope.Session == "" || q.FromSeq != 0 || q.ToSeq != 0 {
				return s.Store.Scan(ctx, q)
			}
			whole := q
			whole.Scope.Session = ""
			whole.Limit = core.MaxPage
			p, err := s.Store.Scan(ctx, whole)
			p.Entries = slices.DeleteFunc(p.Entries, func(e core.Entry) bool { return !strings.HasPrefix(e.Session, q.Scope.Session) })
			if len(p.Entries) > q.Limit {
				return s.Store.Scan(ctx, q)
			}
			return p, err
		}
	}))
	return out
}

// confusedStore takes sessions that look alike for one when it reads by session.
func confusedStore(name string, canonical func(core.SessionID) core.SessionID) broken {
	return brokenStoreOf("store: names confused", name, func(s *brokenStore) {
		s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
			p, err := s.Store.Scan(ctx, q)
			if err != nil || q.Scope.Session == "" || q.Cursor != "" || p.Next != "" {
				return p, err
			}
			for _, agent := range []string{"ann", "Ann", "ann ", "ann/b", "ann:b", "ann|b", "ann-b", "ann b", "ann_b", "ann.b", "ann#b", "ann\x00b", "ann\x1fb"} {
				for e, err := range core.All(ctx, s.Store, core.Scope{Agent: agent}, false) {
					id := e.SessionID()
					if err == nil && len(p.Entries) < q.Limit && !q.Scope.Contains(id) && canonical(id) == canonical(core.SessionID(q.Scope)) {
						p.Entries = append(p.Entries, e)
					}
				}
			}
			return p, err
		}
	})
}

func appendStores() []broken {
	of := func(name string, f func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error)) broken {
		return brokenStoreOf("store: append", name, func(s *brokenStore) {
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				return f(s, ctx, slices.Clone(e))
			}
		})
	}
	result := func(name string, f func(e []core.Entry, res *core.AppendResult)) broken {
		return of(name, func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, e)
			f(e, &res)
			return res, err
		})
	}
	failing := func(name string, f func(err error) error) broken {
		return of(name, func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, e)
			if err != nil {
				err = f(err)
			}
			return res, err
		})
	}
	return []broken{
		result("duplicates not counted", func(_ []core.Entry, r *core.AppendResult) { r.Duplicates = 0 }),
		result("duplicates counted once", func(_ []core.Entry, r *core.AppendResult) { r.Duplicates = min(r.Duplicates, 1) }),
		result("one too many duplicates", func(_ []core.Entry, r *core.AppendResult) {
			if r.Duplicates > 0 {
				r.Duplicates++
			}
		}),
		result("ids as given", func(e []core.Entry, r *core.AppendResult) {
			for i := range r.IDs {
				r.IDs[i] = e[i].ID
			}
		}),
		result("no ids", func(_ []core.Entry, r *core.AppendResult) { r.IDs = nil }),
		result("ids sorted", func(_ []core.Entry, r *core.AppendResult) { slices.Sort(r.IDs) }),
		result("ids once", func(_ []core.Entry, r *core.AppendResult) { r.IDs = slices.Compact(r.IDs) }),
		result("ids of the new ones alone", func(_ []core.Entry, r *core.AppendResult) {
			if r.Duplicates > 0 {
				r.IDs = r.IDs[:len(r.IDs)-1]
			}
		}),
		of("the last of a batch dropped", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			if len(e) < 2 {
				return s.Store.Append(ctx, e)
			}
			res, err := s.Store.Append(ctx, e[:len(e)-1])
			res.IDs = append(res.IDs, e[len(e)-1].ID)
			return res, err
		}),
		of("a thousand of a batch", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, e[:min(len(e), 1000)])
			for _, more := range e[min(len(e), 1000):] {
				res.IDs = append(res.IDs, more.ID)
			}
			return res, err
		}),
		of("batches over a thousand refused", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			if len(e) > 1000 {
				return core.AppendResult{}, errors.New("broken: too many")
			}
			return s.Store.Append(ctx, e)
		}),
		of("an empty batch refused", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			if len(e) == 0 {
				return core.AppendResult{}, core.ErrInvalid
			}
			return s.Store.Append(ctx, e)
		}),
		of("the last with a key wins", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, e)
			for i, id := range res.IDs {
				if err == nil {
					m := e[i].Message
					_ = s.Store.Update(ctx, e[i].SessionID().Scope(), id, core.Change{Message: &m, Tokens: e[i].Tokens, Fingerprint: e[i].Fingerprint})
				}
			}
			return res, err
		}),
		of("metadata of a known key merged", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, e)
			for i, id := range res.IDs {
				if err == nil && len(e[i].Meta) > 0 {
					_ = s.Store.Update(ctx, e[i].SessionID().Scope(), id, core.Change{Meta: e[i].Meta})
				}
			}
			return res, err
		}),
		of("a batch with a known key is known", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			if len(e) > 1 {
				if res, err := s.Store.Append(ctx, e[:1]); err == nil && res.Duplicates == 1 {
					ids := []string{res.IDs[0]}
					for _, more := range e[1:] {
						ids = append(ids, more.ID)
					}
					return core.AppendResult{IDs: ids, Duplicates: 1}, nil
				}
			}
			return s.Store.Append(ctx, e)
		}),
		of("keys of the whole agent", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			for i := range e {
				for old, err := range core.All(ctx, s.Store, core.Scope{Agent: e[i].Agent}, false) {
					if err == nil && old.Key == e[i].Key && old.Session != e[i].Session {
						return core.AppendResult{IDs: []string{old.ID}, Duplicates: 1}, nil
					}
				}
			}
			return s.Store.Append(ctx, e)
		}),
		of("ids of each session", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, e)
			if errors.Is(err, core.ErrConflict) && len(e) == 1 {
				if old := anySession(ctx, s.Store, e[0].ID); old != e[0].SessionID().Scope() {
					return core.AppendResult{IDs: []string{e[0].ID}}, nil
				}
			}
			return res, err
		}),
		of("known keys at other positions refused", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, e)
			if err == nil && res.Duplicates > 0 {
				for i, id := range res.IDs {
					if older(ctx, s, e[i].SessionID().Scope(), id).Seq != e[i].Seq {
						return core.AppendResult{}, core.ErrConflict
					}
				}
			}
			return res, err
		}),
		of("known keys under other ids refused", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, e)
			for i, id := range res.IDs {
				if id != e[i].ID {
					return core.AppendResult{}, core.ErrConflict
				}
			}
			return res, err
		}),
		of("positions given out", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			for i := range e {
				if !stored(ctx, s.Store, &e[i]) {
					tail, _ := s.Store.Tail(ctx, e[i].SessionID())
					e[i].Seq = tail.Next + int64(i)
				}
			}
			return s.Store.Append(ctx, e)
		}),
		of("positions below the end refused", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			for i := range e {
				if tail, err := s.Store.Tail(ctx, e[i].SessionID()); err == nil && e[i].Seq < tail.Next && at(ctx, s.Store, e[i].SessionID(), e[i].Key) < 0 {
					return core.AppendResult{}, core.ErrConflict
				}
			}
			return s.Store.Append(ctx, e)
		}),
		of("positions with a gap refused", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			for i := range e {
				if tail, err := s.Store.Tail(ctx, e[i].SessionID()); err == nil && e[i].Seq > tail.Next+int64(len(e)) {
					return core.AppendResult{}, core.ErrInvalid
				}
			}
			return s.Store.Append(ctx, e)
		}),
		of("positions in 53 bits", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			for i := range e {
				e[i].Seq = int64(float64(e[i].Seq))
			}
			return s.Store.Append(ctx, e)
		}),
		of("positions in 32 bits", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			for i := range e {
				e[i].Seq &= 1<<32 - 1
			}
			return s.Store.Append(ctx, e)
		}),
		of("half of a refused batch stays", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, e)
			if errors.Is(err, core.ErrConflict) && len(e) > 1 {
				_, _ = s.Store.Append(ctx, e[:1])
			}
			return res, err
		}),
		of("what can be stored of a refused batch is", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, e)
			if errors.Is(err, core.ErrConflict) && len(e) > 1 {
				for i := range e {
					_, _ = s.Store.Append(ctx, e[i:i+1])
				}
			}
			return res, err
		}),
		of("a refused batch is told as stored", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, e)
			if errors.Is(err, core.ErrConflict) && len(e) > 1 {
				return core.AppendResult{IDs: make([]string, len(e))}, nil
			}
			return res, err
		}),
		of("heartbeats not kept", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, e)
			for i := range e {
				if err == nil && e[i].Type == core.TypeHeartbeat {
					_, _ = s.Store.Delete(ctx, e[i].SessionID().Scope(), []string{e[i].ID})
				}
			}
			return res, err
		}),
		of("entries without text not kept", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, e)
			for i := range e {
				if err == nil && e[i].Text() == "" {
					_, _ = s.Store.Delete(ctx, e[i].SessionID().Scope(), []string{e[i].ID})
				}
			}
			return res, err
		}),
		of("the same content once", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, e)
			seen := map[string]bool{}
			for i := range e {
				if err == nil && seen[e[i].Fingerprint] {
					_, _ = s.Store.Delete(ctx, e[i].SessionID().Scope(), []string{e[i].ID})
				}
				seen[e[i].Fingerprint] = true
			}
			return res, err
		}),
		failing("conflicts are invalid", func(error) error { return core.ErrInvalid }),
		failing("conflicts are not found", func(error) error { return core.ErrNotFound }),
		failing("conflicts lose their sentinel", func(err error) error { return errors.New("broken: " + err.Error()) }),
		of("panics over a known key", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, e)
			if res.Duplicates > 0 {
				panic("broken: known")
			}
			return res, err
		}),
		of("hangs over a conflict", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, e)
			if errors.Is(err, core.ErrConflict) {
				select {}
			}
			return res, err
		}),
		of("changes what it is given", func(s *brokenStore, ctx context.Context, e []core.Entry) (core.AppendResult, error) {
			res, err := s.Store.Append(ctx, e)
			for i := range e {
				if len(e[i].Message.Raw) > 0 {
					e[i].Message.Raw[0] = 'x'
				}
			}
			return res, err
		}),
	}
}

func scanStores() []broken {
	class := "store: scan"
	page := func(name string, f func(core.ScanQuery, *core.Page)) broken {
		return brokenStoreOf(class, name, onPage(f))
	}
	query := func(name string, f func(*core.ScanQuery)) broken { return brokenStoreOf(class, name, onQuery(f)) }
	drop := func(i int) func(core.ScanQuery, *core.Page) {
		return func(_ core.ScanQuery, p *core.Page) {
			if n := len(p.Entries); n > 1 {
				p.Entries = slices.Delete(p.Entries, (i+n)%n, (i+n)%n+1)
			}
		}
	}
	sorted := func(less func(a, b core.Entry) int) func(core.ScanQuery, *core.Page) {
		return func(q core.ScanQuery, p *core.Page) {
			slices.SortStableFunc(p.Entries, less)
			if q.Reverse {
				slices.Reverse(p.Entries)
			}
		}
	}
	hide := func(is func(core.Entry) bool) func(core.ScanQuery, *core.Page) {
		return func(_ core.ScanQuery, p *core.Page) { p.Entries = slices.DeleteFunc(p.Entries, is) }
	}
	return []broken{
		page("the first dropped", drop(0)), page("the second dropped", drop(1)), page("the last dropped", drop(-1)),
		page("two swapped", func(_ core.ScanQuery, p *core.Page) {
			if len(p.Entries) > 1 {
				p.Entries[0], p.Entries[1] = p.Entries[1], p.Entries[0]
			}
		}),
		page("in order of time", sorted(func(a, b core.Entry) int { return a.Time.Compare(b.Time) })),
		page("in order of keys", sorted(func(a, b core.Entry) int { return strings.Compare(a.Key, b.Key) })),
		page("in order of turns", sorted(func(a, b core.Entry) int { return int(b.Turn - a.Turn) })),
		page("within the page not reversed", func(q core.ScanQuery, p *core.Page) {
			if q.Reverse {
				slices.Reverse(p.Entries)
			}
		}),
		page("heartbeats hidden", hide(func(e core.Entry) bool { return e.Type == core.TypeHeartbeat })),
		page("erased ones hidden", hide(func(e core.Entry) bool { return e.Type == core.TypeErased })),
		page("entries without text hidden", hide(func(e core.Entry) bool { return e.Text() == "" })),
		page("tool results hidden", hide(func(e core.Entry) bool { return e.Message.HasResults() })),
		page("ends one page early", func(q core.ScanQuery, p *core.Page) {
			if q.Cursor != "" {
				p.Next = ""
			}
		}),
		page("never ends", func(q core.ScanQuery, p *core.Page) {
			if p.Next == "" {
				p.Next = q.Cursor
			}
		}),
		page("one more than asked for", func(q core.ScanQuery, p *core.Page) {
			if p.Next != "" && len(p.Entries) > 0 {
				p.Entries = append(p.Entries, p.Entries[len(p.Entries)-1])
			}
		}),
		query("limit one too large", func(q *core.ScanQuery) { q.Limit = min(q.Limit+1, core.MaxPage) }),
		page("at most a hundred, then the end", func(_ core.ScanQuery, p *core.Page) {
			if len(p.Entries) > 100 {
				p.Entries, p.Next = p.Entries[:100], ""
			}
		}),
		query("cursor ignored", func(q *core.ScanQuery) { q.Cursor = "" }),
		query("from ignored", func(q *core.ScanQuery) { q.FromSeq = 0 }),
		query("to ignored", func(q *core.ScanQuery) { q.ToSeq = 0 }),
		query("from excluded", func(q *core.ScanQuery) {
			if q.FromSeq > 0 {
				q.FromSeq++
			}
		}),
		query("to included", func(q *core.ScanQuery) {
			if q.ToSeq > 0 {
				q.ToSeq++
			}
		}),
		query("range ignored when reversed", func(q *core.ScanQuery) {
			if q.Reverse {
				q.FromSeq, q.ToSeq = 0, 0
			}
		}),
		query("range forgotten with the second page", func(q *core.ScanQuery) {
			if q.Cursor != "" {
				q.FromSeq, q.ToSeq = 0, 0
			}
		}),
		query("to below zero is zero", func(q *core.ScanQuery) {
			if q.ToSeq < 0 {
				q.ToSeq = 1
			}
		}),
		query("range in 53 bits", func(q *core.ScanQuery) { q.FromSeq = int64(float64(q.FromSeq)) }),
		query("sessions without reverse", func(q *core.ScanQuery) { q.Reverse = q.Reverse && q.Scope.Session == "" }),
		query("agents without reverse", func(q *core.ScanQuery) { q.Reverse = q.Reverse && q.Scope.Session != "" }),
		query("session case", func(q *core.ScanQuery) { q.Scope.Session = strings.ToLower(q.Scope.Session) }),
		brokenStoreOf(class, "as it was when first read", func(s *brokenStore) {
			var c cached
			onScan(func(e *core.Entry) { *e = c.first(*e) })(s)
		}),
		brokenStoreOf(class, "by offset", offsetScan(false)),
		brokenStoreOf(class, "by offset, deletions counted", offsetScan(true)),
		brokenStoreOf(class, "agents in an order of the limit", func(s *brokenStore) {
			onPage(func(q core.ScanQuery, p *core.Page) {
				if q.Scope.Session == "" && q.Limit == core.MaxPage {
					slices.SortStableFunc(p.Entries, func(a, b core.Entry) int { return strings.Compare(b.Session, a.Session) })
				}
			})(s)
		}),
		brokenStoreOf(class, "agents by chance", func(s *brokenStore) {
			n := 0
			var mu sync.Mutex
			onPage(func(q core.ScanQuery, p *core.Page) {
				mu.Lock()
				defer mu.Unlock()
				if n++; q.Scope.Session == "" && n%2 == 0 {
					slices.SortStableFunc(p.Entries, func(a, b core.Entry) int { return strings.Compare(b.Session, a.Session) })
				}
			})(s)
		}),
		brokenStoreOf(class, "a place that is gone ends it", func(s *brokenStore) {
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				p, err := s.Store.Scan(ctx, core.ScanQuery{Scope: q.Scope, Reverse: q.Reverse, Limit: q.Limit, FromSeq: q.FromSeq, ToSeq: q.ToSeq, Cursor: inner(q.Cursor)})
				if last := lastOf(q.Cursor); last != "" {
					if _, err := s.Store.Get(ctx, core.Scope{Agent: q.Scope.Agent}, []string{last}); err != nil {
						return core.Page{}, nil
					}
				}
				if p.Next != "" {
					p.Next = core.Cursor(p.Entries[len(p.Entries)-1].ID + "\n" + string(p.Next))
				}
				return p, err
			}
		}),
		brokenStoreOf(class, "hangs when reversed", func(s *brokenStore) {
			onQuery(func(q *core.ScanQuery) {
				if q.Reverse {
					select {}
				}
			})(s)
		}),
		brokenStoreOf(class, "panics over an empty session", func(s *brokenStore) {
			onPage(func(_ core.ScanQuery, p *core.Page) { _ = p.Entries[0] })(s)
		}),
		brokenStoreOf(class, "a thousand is too many", func(s *brokenStore) {
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				if q.Limit > 500 {
					return core.Page{}, core.ErrInvalid
				}
				return s.Store.Scan(ctx, q)
			}
		}),
	}
}

func inner(c core.Cursor) core.Cursor {
	if _, rest, ok := strings.Cut(string(c), "\n"); ok {
		return core.Cursor(rest)
	}
	return c
}

func lastOf(c core.Cursor) string {
	id, _, ok := strings.Cut(string(c), "\n")
	if !ok {
		return ""
	}
	return id
}

// offsetScan pages by counting: what is deleted or appended in front moves everything.
func offsetScan(backwards bool) func(*brokenStore) {
	return func(s *brokenStore) {
		s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
			from := 0
			if q.Cursor != "" {
				if _, err := fmt.Sscan(string(q.Cursor), &from); err != nil {
					return core.Page{}, core.ErrInvalid
				}
			}
			all := core.ScanQuery{Scope: q.Scope, Reverse: q.Reverse, FromSeq: q.FromSeq, ToSeq: q.ToSeq, Limit: core.MaxPage}
			var entries []core.Entry
			for {
				p, err := s.Store.Scan(ctx, all)
				if err != nil {
					return p, err
				}
				entries = append(entries, p.Entries...)
				if all.Cursor = p.Next; p.Next == "" {
					break
				}
			}
			if backwards && q.Reverse {
				return s.Store.Scan(ctx, core.ScanQuery{Scope: q.Scope, Reverse: true, FromSeq: q.FromSeq, ToSeq: q.ToSeq, Limit: min(q.Limit+from, core.MaxPage)})
			}
			out := core.Page{Entries: entries[min(from, len(entries)):min(from+q.Limit, len(entries))]}
			if from+q.Limit < len(entries) {
				out.Next = core.Cursor(fmt.Sprint(from + q.Limit))
			}
			return out, nil
		}
	}
}

func getStores() []broken {
	of := func(name string, f func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error)) broken {
		return brokenStoreOf("store: get", name, func(s *brokenStore) {
			s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
				return f(s, ctx, scope, ids)
			}
		})
	}
	return []broken{
		of("an id that is asked for twice comes once", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
			var once []string
			for _, id := range ids {
				if !slices.Contains(once, id) {
					once = append(once, id)
				}
			}
			return s.Store.Get(ctx, scope, once)
		}),
		of("one that was read by its agent is kept, whatever becomes of it in its session", func() func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
			var mu sync.Mutex
			kept := map[string]core.Entry{}
			return func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
				if scope.Session != "" || len(ids) != 1 {
					return s.Store.Get(ctx, scope, ids)
				}
				mu.Lock()
				defer mu.Unlock()
				if e, ok := kept[ids[0]]; ok && ctx.Err() == nil {
					return []core.Entry{e.Clone()}, nil
				}
				got, err := s.Store.Get(ctx, scope, ids)
				if err == nil {
					kept[ids[0]] = got[0].Clone()
				}
				return got, err
			}
		}()),
		of("what was found comes with the error", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
			got, err := s.Store.Get(ctx, scope, ids)
			if err != nil && len(ids) > 1 {
				for _, id := range ids {
					one, _ := s.Store.Get(ctx, scope, []string{id})
					got = append(got, one...)
				}
			}
			return got, err
		}),
		of("missing ones are invalid", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
			got, err := s.Store.Get(ctx, scope, ids)
			if errors.Is(err, core.ErrNotFound) {
				err = core.ErrInvalid
			}
			return got, err
		}),
		of("missing ones are no error", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
			got, err := s.Store.Get(ctx, scope, ids)
			if errors.Is(err, core.ErrNotFound) {
				err = nil
			}
			return got, err
		}),
		of("none is not found", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
			if len(ids) == 0 {
				return nil, core.ErrNotFound
			}
			return s.Store.Get(ctx, scope, ids)
		}),
		of("a thousand and no more", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
			return s.Store.Get(ctx, scope, ids[:min(len(ids), 1000)])
		}),
		of("only within a session", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
			if scope.Session == "" && len(ids) > 0 {
				return nil, core.ErrNotFound
			}
			return s.Store.Get(ctx, scope, ids)
		}),
		of("whole agent", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
			scope.Session = ""
			return s.Store.Get(ctx, scope, ids)
		}),
		of("ids whatever their case", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
			got, err := s.Store.Get(ctx, scope, ids)
			for i := range got {
				if other, err := s.Store.Get(ctx, scope, []string{strings.ToUpper(ids[i][:min(len(ids[i]), 4)]) + ids[i][min(len(ids[i]), 4):]}); err == nil {
					got[i] = other[0]
				}
			}
			return got, err
		}),
		of("newest first", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
			got, err := s.Store.Get(ctx, scope, ids)
			slices.SortStableFunc(got, func(a, b core.Entry) int { return int(b.Seq - a.Seq) })
			return got, err
		}),
		brokenStoreOf("store: get", "as it was when first read", func(s *brokenStore) {
			var c cached
			onGet(func(e *core.Entry) { *e = c.first(*e) })(s)
		}),
		brokenStoreOf("store: get", "deleted ones are remembered", func(s *brokenStore) {
			var c cached
			s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
				got, err := s.Store.Get(ctx, scope, ids)
				if err == nil {
					for _, e := range got {
						c.first(e)
					}
					return got, nil
				}
				c.mu.Lock()
				defer c.mu.Unlock()
				if e, ok := c.m[strings.Join(ids, " ")]; ok && ctx.Err() == nil && scope.Contains(e.SessionID()) {
					return []core.Entry{e}, nil
				}
				return got, err
			}
		}),
		of("hangs over an unknown id", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
			got, err := s.Store.Get(ctx, scope, ids)
			if errors.Is(err, core.ErrNotFound) {
				<-make(chan int)
			}
			return got, err
		}),
	}
}

func updateStores() []broken {
	class := "store: update"
	of := func(name string, f func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c *core.Change) error) broken {
		return brokenStoreOf(class, name, onUpdate(f))
	}
	change := func(name string, f func(c *core.Change)) broken {
		return of(name, func(_ *brokenStore, _ context.Context, _ core.Scope, _ string, c *core.Change) error {
			f(c)
			return nil
		})
	}
	failing := func(name string, f func(error) error) broken {
		return brokenStoreOf(class, name, func(s *brokenStore) {
			s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
				return f(s.Store.Update(ctx, scope, id, c))
			}
		})
	}
	out := []broken{
		of("metadata merged", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c *core.Change) error {
			if c.Meta != nil {
				m := nonNilMeta(older(ctx, s, scope, id).Meta)
				maps.Copy(m, c.Meta)
				c.Meta = m
			}
			return nil
		}),
		change("empty metadata left alone", func(c *core.Change) {
			if len(c.Meta) == 0 {
				c.Meta = nil
			}
		}),
		change("metadata always replaced", func(c *core.Change) {
			if c.Meta == nil {
				c.Meta = map[string]string{}
			}
		}),
		change("type back to message", func(c *core.Change) {
			if c.Type == "" {
				c.Type = core.TypeMessage
			}
		}),
		change("no tokens keeps the old ones", func(c *core.Change) {}),
		of("tokens of nothing kept", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c *core.Change) error {
			if c.Message != nil && c.Tokens == 0 {
				c.Tokens = older(ctx, s, scope, id).Tokens
			}
			return nil
		}),
		of("parts added", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c *core.Change) error {
			if c.Message != nil {
				m := *c.Message
				m.Parts = slices.Concat(m.Parts, older(ctx, s, scope, id).Message.Parts)
				c.Message = &m
			}
			return nil
		}),
		of("raw bytes kept", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c *core.Change) error {
			if c.Message != nil && c.Message.Raw == nil {
				m := *c.Message
				m.Raw = older(ctx, s, scope, id).Message.Raw
				c.Message = &m
			}
			return nil
		}),
		of("an empty message is none", func(_ *brokenStore, _ context.Context, _ core.Scope, _ string, c *core.Change) error {
			if c.Message != nil && c.Message.Text() == "" {
				c.Message = nil
			}
			return nil
		}),
		of("entries of the same session alike", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c *core.Change) error {
			for e, err := range core.All(ctx, s.Store, scope, false) {
				if err == nil && e.ID != id && len(c.Meta) > 0 {
					_ = s.Store.Update(ctx, scope, e.ID, core.Change{Meta: c.Meta})
				}
			}
			return nil
		}),
		of("whole agent", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c *core.Change) error {
			if scope.Session != "" {
				_ = s.Store.Update(ctx, core.Scope{Agent: scope.Agent}, id, *c)
			}
			return nil
		}),
		of("only within a session", func(_ *brokenStore, _ context.Context, scope core.Scope, _ string, _ *core.Change) error {
			if scope.Session == "" {
				return core.ErrNotFound
			}
			return nil
		}),
		of("put at the end", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, _ *core.Change) error {
			e := older(ctx, s, scope, id)
			if e.ID == "" {
				return nil
			}
			tail, _ := s.Store.Tail(ctx, e.SessionID())
			_, _ = s.Store.Delete(ctx, scope, []string{id})
			e.Seq = tail.Next
			_, err := s.Store.Append(ctx, []core.Entry{e})
			return err
		}),
		of("a new time", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, _ *core.Change) error {
			if e := older(ctx, s, scope, id); e.ID != "" {
				_, _ = s.Store.Delete(ctx, scope, []string{id})
				e.Time = e.Time.Add(time.Hour)
				_, err := s.Store.Append(ctx, []core.Entry{e})
				return err
			}
			return nil
		}),
		of("erased is deleted", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c *core.Change) error {
			if c.Type == core.TypeErased {
				_, err := s.Store.Delete(ctx, scope, []string{id})
				return err
			}
			return nil
		}),
		failing("missing ones are no error", func(err error) error {
			if errors.Is(err, core.ErrNotFound) {
				return nil
			}
			return err
		}),
		failing("missing ones are a conflict", func(err error) error {
			if errors.Is(err, core.ErrNotFound) {
				return core.ErrConflict
			}
			return err
		}),
		brokenStoreOf(class, "only what Get shows", func(s *brokenStore) {
			var c cached
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				p, err := s.Store.Scan(ctx, q)
				p.Entries = entriesOf(p.Entries, func(e *core.Entry) { *e = c.first(*e) })
				return p, err
			}
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				res, err := s.Store.Append(ctx, e)
				for i := range e {
					if err == nil && res.IDs[i] == e[i].ID && !stored(ctx, s.Store, &e[i]) {
						c.first(e[i])
					}
				}
				return res, err
			}
		}),
		of("a key of its own for each", func(_ *brokenStore, _ context.Context, _ core.Scope, id string, c *core.Change) error {
			if c.Key != "" {
				c.Key = id
			}
			return nil
		}),
	}
	out = slices.DeleteFunc(out, func(b broken) bool { return b.name == "no tokens keeps the old ones" })
	for _, f := range []string{"Message", "Tokens", "Fingerprint", "Type", "Key", "Meta"} {
		out = append(out, change(f+" ignored", func(c *core.Change) { reflect.ValueOf(c).Elem().FieldByName(f).SetZero() }))
	}
	for _, role := range []message.Role{message.User} {
		out = append(out, change("role "+string(role), func(c *core.Change) {
			if c.Message != nil {
				m := *c.Message
				m.Role = role
				c.Message = &m
			}
		}))
	}
	return out
}

func nonNilMeta(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}

func deleteStores() []broken {
	of := func(name string, f func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) (int, error)) broken {
		return brokenStoreOf("store: delete", name, func(s *brokenStore) {
			s.deleteFunc = func(ctx context.Context, scope core.Scope, ids []string) (int, error) { return f(s, ctx, scope, ids) }
		})
	}
	return []broken{
		of("the number asked for", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) (int, error) {
			_, err := s.Store.Delete(ctx, scope, ids)
			return len(ids), err
		}),
		of("no number", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) (int, error) {
			_, err := s.Store.Delete(ctx, scope, ids)
			return 0, err
		}),
		of("the first alone", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) (int, error) {
			_, err := s.Store.Delete(ctx, scope, ids[:min(len(ids), 1)])
			return len(ids), err
		}),
		of("none where one is unknown", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) (int, error) {
			if _, err := s.Store.Get(ctx, scope, ids); errors.Is(err, core.ErrNotFound) {
				return 0, nil
			}
			return s.Store.Delete(ctx, scope, ids)
		}),
		of("up to an unknown one", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) (int, error) {
			for i := range ids {
				if older(ctx, s, scope, ids[i]).ID == "" {
					ids = ids[:i]
					break
				}
			}
			return s.Store.Delete(ctx, scope, ids)
		}),
		of("unknown ones are an error", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) (int, error) {
			n, err := s.Store.Delete(ctx, scope, ids)
			if err == nil && n == 0 {
				err = core.ErrNotFound
			}
			return n, err
		}),
		of("one that is named twice counts twice", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) (int, error) {
			there := 0
			for _, id := range ids {
				if older(ctx, s, scope, id).ID != "" {
					there++
				}
			}
			_, err := s.Store.Delete(ctx, scope, ids)
			return there, err
		}),
		of("the whole session", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) (int, error) {
			n, err := s.Store.Delete(ctx, scope, ids)
			if n > 0 && scope.Session != "" {
				for e, err := range core.All(ctx, s.Store, scope, false) {
					if err == nil {
						_, _ = s.Store.Delete(ctx, scope, []string{e.ID})
					}
				}
			}
			return n, err
		}),
		of("what comes behind it too", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) (int, error) {
			if len(ids) == 1 {
				if e := older(ctx, s, scope, ids[0]); e.ID != "" {
					for later, err := range core.All(ctx, s.Store, e.SessionID().Scope(), true) {
						if err == nil && later.Seq > e.Seq {
							_, _ = s.Store.Delete(ctx, scope, []string{later.ID})
						}
					}
				}
			}
			return s.Store.Delete(ctx, scope, ids)
		}),
		of("only within a session", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) (int, error) {
			if scope.Session == "" {
				return 0, ctx.Err()
			}
			return s.Store.Delete(ctx, scope, ids)
		}),
		of("whole agent", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) (int, error) {
			scope.Session = ""
			return s.Store.Delete(ctx, scope, ids)
		}),
		of("an empty entry instead", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) (int, error) {
			n := 0
			for _, id := range ids {
				m := message.Message{}
				if s.Store.Update(ctx, scope, id, core.Change{Message: &m, Type: core.TypeErased, Key: "gone " + id}) == nil {
					n++
				}
			}
			return n, ctx.Err()
		}),
		of("a thousand and no more", func(s *brokenStore, ctx context.Context, scope core.Scope, ids []string) (int, error) {
			n, err := s.Store.Delete(ctx, scope, ids[:min(len(ids), 1000)])
			return max(n, len(ids)*n/max(len(ids), 1)), err
		}),
		brokenStoreOf("store: delete", "the key stays taken", func(s *brokenStore) {
			var mu sync.Mutex
			gone := map[string]bool{}
			s.deleteFunc = func(ctx context.Context, scope core.Scope, ids []string) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				for _, id := range ids {
					if e := older(ctx, s, scope, id); e.ID != "" {
						gone[e.SessionID().String()+e.Key] = true
					}
				}
				return s.Store.Delete(ctx, scope, ids)
			}
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				mu.Lock()
				defer mu.Unlock()
				if len(e) == 1 && gone[e[0].SessionID().String()+e[0].Key] {
					return core.AppendResult{IDs: []string{e[0].ID}, Duplicates: 1}, nil
				}
				return s.Store.Append(ctx, e)
			}
		}),
		brokenStoreOf("store: delete", "the position stays taken", func(s *brokenStore) {
			var mu sync.Mutex
			gone := map[string]bool{}
			s.deleteFunc = func(ctx context.Context, scope core.Scope, ids []string) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				for _, id := range ids {
					if e := older(ctx, s, scope, id); e.ID != "" {
						gone[fmt.Sprint(e.SessionID(), e.Seq)] = true
					}
				}
				return s.Store.Delete(ctx, scope, ids)
			}
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				mu.Lock()
				defer mu.Unlock()
				if len(e) == 1 && gone[fmt.Sprint(e[0].SessionID(), e[0].Seq)] {
					return core.AppendResult{}, core.ErrConflict
				}
				return s.Store.Append(ctx, e)
			}
		}),
	}
}

// elsewhere tells the time of an entry by another clock.
func elsewhere(e *core.Entry) { e.Time = e.Time.In(time.FixedZone("elsewhere", 3600)) }
