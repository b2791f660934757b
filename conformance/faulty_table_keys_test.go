package conformance_test

import (
	"context"
	"maps"
	"strings"
	"sync"

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
	var out []broken
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
