package conformance_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// knownByKeys are stores that know entries by another key than the one they hold.
func knownByKeys() []broken {
	changes := maps.Clone(nameChanges)
	changes["valid UTF-8"] = func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
	changes["without NUL"] = func(s string) string { return strings.ReplaceAll(s, "\x00", "") }
	changes["two halves of a rune"] = func(s string) string { // each of a pair of surrogates by itself is no text
		return strings.Map(func(r rune) rune { return map[bool]rune{true: r, false: '\ufffd'}[r < 1<<16] }, s)
	}
	out := replacedKeys()
	for name, change := range changes {
		out = append(out, brokenStoreOf("store: names confused", "known by key "+name, func(s *brokenStore) {
			var mu sync.Mutex
			first := map[core.SessionID]map[string]string{}
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				mu.Lock()
				defer mu.Unlock()
				return s.Store.Append(ctx, entriesOf(e, func(e *core.Entry) {
					id, known := e.SessionID(), change(e.Key)
					if first[id] == nil {
						first[id] = map[string]string{}
					}
					if key, ok := first[id][known]; ok {
						e.Key = key
					} else {
						first[id][known] = e.Key
					}
				}))
			}
		}))
	}
	return out
}

// staysKnown lets keys that are replaced stay known where the update is such a one.
func staysKnown(when func(core.Change) bool) func(*brokenStore) {
	return func(s *brokenStore) {
		var was sync.Map
		name := func(id core.SessionID, key string) string { return fmt.Sprintf("%q %q", id, key) }
		s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
			e := older(ctx, s, scope, id)
			err := s.Store.Update(ctx, scope, id, c)
			if err == nil && c.Key != "" && when(c) {
				was.Store(name(e.SessionID(), e.Key), id)
			}
			return err
		}
		s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
			if len(entries) == 1 {
				if id, ok := was.Load(name(entries[0].SessionID(), entries[0].Key)); ok {
					return core.AppendResult{IDs: []string{id.(string)}, Duplicates: 1}, nil //nolint:forcetypeassert // only such are put there
				}
			}
			return s.Store.Append(ctx, entries)
		}
	}
}

// replacedKeys stay known where something else is, or is not, changed with them.
func replacedKeys() []broken {
	var out []broken
	for name, changed := range map[string]func(core.Change) bool{
		"message": func(c core.Change) bool { return c.Message != nil }, "type": func(c core.Change) bool { return c.Type != "" }, "metadata": func(c core.Change) bool { return c.Meta != nil },
	} {
		for without, when := range map[string]func(core.Change) bool{"with": changed, "without": func(c core.Change) bool { return !changed(c) }} {
			out = append(out, brokenStoreOf("store: update", "a key that is replaced "+without+" the "+name+" stays known", staysKnown(when), conformance.WithClaims("update.alone")))
		}
	}
	return out
}

// remembersKeys lets a store answer a repetition of what it was given itself, without a look at what there is; what it deletes itself it does not remember.
func remembersKeys(s *brokenStore) {
	var mu sync.Mutex
	given := map[string]string{}
	name := func(e *core.Entry) string { return fmt.Sprintf("%s %q", e.SessionID(), e.Key) }
	s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
		mu.Lock()
		defer mu.Unlock()
		var known core.AppendResult
		for i := range entries {
			if id, ok := given[name(&entries[i])]; ok && id == entries[i].ID && ctx.Err() == nil {
				known.IDs, known.Duplicates = append(known.IDs, id), known.Duplicates+1
			}
		}
		if len(entries) > 0 && known.Duplicates == len(entries) {
			return known, nil
		}
		res, err := s.Store.Append(ctx, entries)
		if err == nil {
			for i := range entries {
				given[name(&entries[i])] = res.IDs[i]
			}
		}
		return res, err
	}
	s.deleteFunc = func(ctx context.Context, scope core.Scope, ids []string) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		maps.DeleteFunc(given, func(_, id string) bool { return slices.Contains(ids, id) })
		return s.Store.Delete(ctx, scope, ids)
	}
}

// freedKeys are stores that remember keys which others, or an update, freed.
func freedKeys() []broken {
	opening := func(m *memory.Store) core.Store {
		s := &brokenStore{Store: m, close: func() error { return nil }}
		remembersKeys(s)
		return s
	}
	return []broken{
		brokenStoreOf("store: update", "the key and the id that an entry was given stay known together", remembersKeys, conformance.WithClaims("sequence.same")),
		{class: "store: update", name: "what another opening deleted stays known", find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
			t.Helper()
			return early(3, only, func(opts ...conformance.Option) []conformance.Finding {
				return conformance.ExamineStore(t, func(testing.TB) core.Store { return opening(memory.New()) }, opts...)
			}, conformance.WithClaims("sequence.same"), conformance.WithAnother(func(_ testing.TB, first core.Store) core.Store {
				return opening(first.(*brokenStore).Store) //nolint:forcetypeassert // all are
			}))
		}},
	}
}
