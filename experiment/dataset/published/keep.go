package published

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Keep says which elements of a published JSON array make a file: the first so many, or those whose field has one of the values.
type Keep struct {
	First  int      `json:"first,omitempty"`
	Field  string   `json:"field,omitempty"`
	Values []string `json:"values,omitempty"`
}

func (k Keep) validate() error {
	byField := k.Field != "" && len(k.Values) > 0
	if (k.First > 0) == byField || (k.Field != "") != (len(k.Values) > 0) || k.First < 0 {
		return errors.New("keep: give either first, or field and values")
	}
	return nil
}

// String says what is kept.
func (k Keep) String() string {
	if k.First > 0 {
		return fmt.Sprintf("the first %d elements", k.First)
	}
	return fmt.Sprintf("the elements whose %s is one of %v", k.Field, k.Values)
}

// apply returns an array of the elements kept, in their order. Elements are laid out as Python's json.dumps does: one line, a space behind
// commas and colons, all in ASCII. Numbers and escapes stay as they are.
func (k Keep) apply(data []byte) ([]byte, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, err
	}
	var kept []json.RawMessage
	if k.First > 0 {
		if len(list) < k.First {
			return nil, fmt.Errorf("there are %d elements, want %d", len(list), k.First)
		}
		kept = list[:k.First]
	} else {
		missing := slices.Clone(k.Values)
		for i, element := range list {
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(element, &fields); err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
			var value string
			if json.Unmarshal(fields[k.Field], &value) != nil {
				continue
			}
			if at := slices.Index(missing, value); at >= 0 {
				missing = slices.Delete(missing, at, at+1)
				kept = append(kept, element)
			}
		}
		if len(missing) > 0 {
			return nil, fmt.Errorf("no element whose %s is one of %v", k.Field, missing)
		}
	}
	out := []byte{'['}
	for i, element := range kept {
		if i > 0 {
			out = append(out, ", "...)
		}
		out = layOut(out, element)
	}
	return append(out, ']'), nil
}

// layOut appends valid JSON in the layout that apply promises.
func layOut(out, raw []byte) []byte {
	quoted := false
	for i := 0; i < len(raw); {
		c := raw[i]
		switch {
		case quoted && c == '\\':
			out = append(out, c, raw[i+1])
			i++
		case quoted && c >= 0x7f:
			r, n := utf8.DecodeRune(raw[i:])
			if r > 0xffff {
				high, low := utf16.EncodeRune(r)
				out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
			} else {
				out = fmt.Appendf(out, `\u%04x`, r)
			}
			i += n - 1
		case c == '"':
			quoted = !quoted
			out = append(out, c)
		case quoted:
			out = append(out, c)
		case c == ',' || c == ':':
			out = append(out, c, ' ')
		case c != ' ' && c != '\n' && c != '\t' && c != '\r':
			out = append(out, c)
		}
		i++
	}
	return out
}
