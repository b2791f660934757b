package packed

import (
	"maps"
	"slices"
)

// Meta encodes metadata: nil for none.
func Meta(meta map[string]string) []byte {
	if meta == nil {
		return nil
	}
	var p Writer
	p.Uint(uint64(len(meta)))
	for _, k := range slices.Sorted(maps.Keys(meta)) {
		p.Str(k)
		p.Str(meta[k])
	}
	return p.B
}

// ReadMeta is the inverse of Meta.
func ReadMeta(b []byte) (map[string]string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	u := Reader{B: b}
	n := u.Count()
	meta := make(map[string]string, n)
	for range n {
		k := u.Str()
		meta[k] = u.Str()
	}
	return meta, u.End()
}
