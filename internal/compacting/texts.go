package compacting

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// ShortLine reports whether s is one line of at most 500 bytes, as a hint in a note must be.
func ShortLine(s string) bool { return len(s) <= 500 && !strings.ContainsAny(s, "\r\n") }

// ArgTexts returns the texts in the arguments of a tool call: its strings, decoded, and its numbers, in order. Arguments that are
// no JSON are one text.
func ArgTexts(args string) []string {
	if args == "" {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(args))
	dec.UseNumber()
	var out []string
	// Keys of objects alternate with values.
	type level struct{ object, key bool }
	var stack []level
	value := func() bool {
		n := len(stack)
		if n == 0 || !stack[n-1].object {
			return true
		}
		stack[n-1].key = !stack[n-1].key
		return stack[n-1].key
	}
	for {
		tok, err := dec.Token()
		switch {
		case errors.Is(err, io.EOF) && len(stack) == 0:
			return out
		case err != nil:
			return []string{args}
		}
		switch t := tok.(type) {
		case json.Delim:
			switch t {
			case '{', '[':
				value()
				stack = append(stack, level{object: t == '{', key: true})
			default:
				stack = stack[:len(stack)-1]
			}
		case string:
			if value() {
				out = append(out, t)
			}
		case json.Number:
			value()
			out = append(out, t.String())
		default:
			value()
		}
	}
}
