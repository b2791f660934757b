package keyed

import (
	"bytes"
	"encoding/gob"
)

// encode and decode keep every byte of every string, also where it is no text; JSON would mend it. A value may be read into a structure with some of its
// fields.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

func decode(value []byte, into any) error {
	return gob.NewDecoder(bytes.NewReader(value)).Decode(into)
}
