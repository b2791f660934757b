package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// space is what JSON calls white space.
const space = " \t\r\n"

// field is one member of a JSON object: its key, and where key and value stand in the object's bytes.
type field struct {
	key            string
	keyAt, at, end int
}

// object is a JSON object taken apart one level deep. The bytes stay as they are: invalid UTF-8, duplicate keys and
// numbers of any size are never rewritten, only pointed at.
type object struct {
	raw    []byte
	fields []field
}

// change is a field to set, or to remove when value is nil.
type change struct {
	key   string
	value []byte
}

// parseObject finds the fields of the one JSON object that raw holds. The object refers to raw.
func parseObject(raw []byte) (object, error) {
	raw = bytes.Trim(raw, space)
	if k := kindOf(raw); k != '{' {
		return object{}, expected("a JSON object", describe(raw))
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return object{}, syntax("a JSON object", err)
	}
	o := object{raw: raw}
	var value json.RawMessage // reused: only its length is of interest
	end := int(dec.InputOffset())
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return object{}, syntax("a JSON object", err)
		}
		key, ok := token.(string)
		if !ok {
			return object{}, expected("a JSON object", "a key that is no string")
		}
		// Between the previous value and the key there are only white space and a comma.
		keyAt := end + bytes.IndexByte(raw[end:], '"')
		if err := dec.Decode(&value); err != nil {
			return object{}, syntax("a JSON object", err)
		}
		end = int(dec.InputOffset())
		o.fields = append(o.fields, field{key: key, keyAt: keyAt, at: end - len(value), end: end})
	}
	if err := closed(dec); err != nil {
		return object{}, syntax("a JSON object", err)
	}
	return o, nil
}

// span is where an element of an array stands in the array's bytes.
type span struct{ at, end int }

// elements finds the elements of the one JSON array that raw holds. When the array is malformed, the elements in
// front of the fault come with the error.
func elements(raw []byte) ([]span, error) {
	if k := kindOf(raw); k != '[' {
		return nil, expected("a JSON array", describe(raw))
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, syntax("a JSON array", err)
	}
	var out []span
	var value json.RawMessage
	for dec.More() {
		if err := dec.Decode(&value); err != nil {
			return out, syntax("a JSON array", err)
		}
		end := int(dec.InputOffset())
		out = append(out, span{end - len(value), end})
	}
	if err := closed(dec); err != nil {
		return out, syntax("a JSON array", err)
	}
	return out, nil
}

// closed reads the closing bracket and makes sure that nothing follows it.
func closed(dec *json.Decoder) error {
	if _, err := dec.Token(); err != nil {
		return err
	}
	switch _, err := dec.Token(); {
	case err == nil:
		return errors.New("more bytes after the value")
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// index returns the position of the last field with that key, or -1. Of duplicate keys the last one counts, as in
// every JSON reader hosts use.
func (o object) index(key string) int {
	for i, f := range slices.Backward(o.fields) {
		if f.key == key {
			return i
		}
	}
	return -1
}

// get returns the bytes of a field's value, or nil.
func (o object) get(key string) []byte {
	i := o.index(key)
	if i < 0 {
		return nil
	}
	f := o.fields[i]
	return o.raw[f.at:f.end:f.end]
}

// with returns the object's bytes with fields replaced, removed or added at the end. All other fields keep their
// order and their bytes.
func (o object) with(changes ...change) []byte {
	size := len(o.raw) + 2
	for _, c := range changes {
		size += len(c.key) + len(c.value) + 4
	}
	out := make([]byte, 0, size)
	written := 0
	for i, f := range o.fields {
		value := o.raw[f.at:f.end]
		if c := find(changes, f.key); c != nil {
			if c.value == nil {
				continue
			}
			if i == o.index(f.key) {
				value = c.value
			}
		}
		if written == 0 {
			out = append(out, o.raw[:o.fields[0].keyAt]...)
		} else {
			out = append(out, o.raw[o.fields[i-1].end:f.keyAt]...)
		}
		out = append(out, o.raw[f.keyAt:f.at]...)
		out = append(out, value...)
		written++
	}
	if written == 0 {
		out = append(out, '{')
	}
	for _, c := range changes {
		if c.value == nil || o.index(c.key) >= 0 {
			continue
		}
		if written > 0 {
			out = append(out, ',')
		}
		out = append(out, quote(c.key)...)
		out = append(out, ':')
		out = append(out, c.value...)
		written++
	}
	if n := len(o.fields); n > 0 {
		return append(out, o.raw[o.fields[n-1].end:]...)
	}
	return append(out, '}')
}

func find(changes []change, key string) *change {
	for i := range changes {
		if changes[i].key == key {
			return &changes[i]
		}
	}
	return nil
}

// array writes a JSON array of ready elements.
func array(elements ...[]byte) []byte {
	out := []byte{'['}
	out = append(out, bytes.Join(elements, []byte{','})...)
	return append(out, ']')
}

// quote writes a JSON string. Unlike json.Marshal it leaves <, > and & alone, as hosts do.
func quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return []byte(`""`) // a string always encodes
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}
