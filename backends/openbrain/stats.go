package openbrain

import (
	"encoding/json"
	"math"
)

// countOf finds, in statistics of unknown shape, how many thoughts a source has: {"<source>": n}, or an object that
// names the source and holds a number next to it.
func countOf(raw json.RawMessage, source string, depth int) (int, bool) {
	if depth < 0 {
		return 0, false
	}
	if isKind(raw, '[') {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return 0, false
		}
		for _, v := range list {
			if n, ok := countOf(v, source, depth-1); ok {
				return n, true
			}
		}
		return 0, false
	}
	var object map[string]json.RawMessage
	if !isKind(raw, '{') || json.Unmarshal(raw, &object) != nil {
		return 0, false
	}
	if n, ok := whole(object[source]); ok {
		return n, true
	}
	named := firstText(object, "source", "name") == source
	if v := object[source]; isKind(v, '{') {
		raw, named = v, true
		clear(object)
		if json.Unmarshal(raw, &object) != nil {
			return 0, false
		}
	}
	if named {
		for _, key := range []string{"count", "total", "thoughts", "n"} {
			if n, ok := whole(object[key]); ok {
				return n, true
			}
		}
		return 0, false
	}
	for _, v := range object {
		if n, ok := countOf(v, source, depth-1); ok {
			return n, true
		}
	}
	return 0, false
}

// whole reads a count.
func whole(raw json.RawMessage) (int, bool) {
	v, ok := numberOf(raw)
	if !ok || v < 0 || v > math.MaxInt32 || v != math.Trunc(v) {
		return 0, false
	}
	return int(v), true
}
