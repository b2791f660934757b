package imports

import (
	"bytes"
	"encoding/json"
)

// object is a JSON object under construction; its fields stand in the order in which they are set.
type object struct{ b bytes.Buffer }

// set adds a field. Raw values are written as they are.
func (o *object) set(key string, value any) error {
	k, err := jsonOf(key)
	if err != nil {
		return err
	}
	v, err := jsonOf(value)
	if err != nil {
		return err
	}
	if o.b.Len() > 0 {
		o.b.WriteByte(',')
	}
	o.b.Write(k)
	o.b.WriteByte(':')
	o.b.Write(v)
	return nil
}

func (o *object) bytes() json.RawMessage {
	return append(append([]byte{'{'}, o.b.Bytes()...), '}')
}

func jsonOf(value any) ([]byte, error) {
	if raw, ok := value.(json.RawMessage); ok {
		return raw, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// field is a field of an object.
type field struct {
	key   string
	value any
}

// objectOf writes an object.
func objectOf(fields ...field) (json.RawMessage, error) {
	var o object
	for _, f := range fields {
		if err := o.set(f.key, f.value); err != nil {
			return nil, err
		}
	}
	return o.bytes(), nil
}

// arrayOf writes an array of values as they are.
func arrayOf(values ...json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}
