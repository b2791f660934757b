package openbrain

import (
	"bytes"
	"errors"
	"testing"

	"github.com/contextengine/contextengine/core"
)

// FuzzKeysFile: a keys file makes valid keys with names and hashes of their own, or an error without contents.
func FuzzKeysFile(f *testing.F) {
	h := HashKey("x")
	for _, s := range []string{
		`{"keys":[{"name":"a","sha256":"` + h + `","sources":["*"]}]}`, `{"keys":[]}`, `{"keys":null}`, `{}`, `[]`, `{"keys":[{}]} x`,
		`{"keys":[{"name":"a","sha256":"` + h + `","sources":["*"]},{"name":"a","sha256":"` + h + `","sources":["*"]}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := decodeKeys(bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, core.ErrInvalid) {
				t.Errorf("%q: %v, want ErrInvalid", data, err)
			}
			return
		}
		names := map[string]bool{}
		for _, k := range keys {
			if err := k.validate(); err != nil || names[k.Name] {
				t.Errorf("accepted %+v: %v", k, err)
			}
			names[k.Name] = true
		}
		r, err := newRing(keys, DefaultConfig(), nil)
		if err != nil || len(r.callers) != len(keys) {
			t.Errorf("accepted keys make no ring: %v", err)
		}
	})
}
