// Package exact keeps every byte of every string, where JSON puts U+FFFD in the place of what is no UTF-8.
package exact

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
)

// Pack keeps every byte of every string. A value may be read into a structure with some of its fields.
func Pack(v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

// Unpack is the inverse of Pack.
func Unpack(packed []byte, into any) error {
	return gob.NewDecoder(bytes.NewReader(packed)).Decode(into)
}

// JSON returns v as JSON without escapes of '<' and the like, which mean nothing where it is kept. mended says that JSON may not give every string back as it was.
func JSON(v any) (text []byte, mended bool, err error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, false, err
	}
	text = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	return text, bytes.Contains(text, []byte(`\ufffd`)) || bytes.Contains(text, []byte("\ufffd")), nil
}

// Text returns v as JSON: as a string of what Pack makes where JSON would mend it.
func Text(v any) (string, error) {
	text, mended, err := JSON(v)
	if err == nil && mended {
		if text, err = Pack(v); err == nil {
			text, err = json.Marshal(text)
		}
	}
	return string(text), err
}

// Read is the inverse of Text for structures and lists.
func Read(text string, into any) error {
	var packed []byte
	if json.Unmarshal([]byte(text), &packed) == nil && packed != nil {
		return Unpack(packed, into)
	}
	return json.Unmarshal([]byte(text), into)
}
