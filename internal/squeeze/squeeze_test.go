package squeeze

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

const said = `{"role":"user","content":"What did we say about the bread? It should rise for two more hours, and then it goes into the oven."}`

func TestRoundTrip(t *testing.T) {
	texts := []string{said, strings.Repeat(said, 50), strings.Repeat("the ", 100), strings.Repeat(" ", 9)}
	for _, s := range symbols() {
		texts = append(texts, strings.Repeat(s, 9), said+s)
	}
	for range 200 {
		b := []byte(said)
		for range rand.N(20) {
			b[rand.N(len(b))] = byte(rand.N(256))
		}
		texts = append(texts, string(b))
	}
	for _, text := range texts {
		packed, ok := Append([]byte("before"), []byte(text))
		if !ok {
			if string(packed) != "before" {
				t.Errorf("%q was refused, and left %q", text, packed)
			}
			continue
		}
		if got, err := Expand(packed[len("before"):]); err != nil || string(got) != text {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	}
}

func symbols() []string { return theTable().symbols }

func TestSize(t *testing.T) {
	packed, ok := Append(nil, []byte(said))
	if !ok || len(packed)*2 > len(said) {
		t.Errorf("%d bytes of English in JSON take %d, want at most half", len(said), len(packed))
	}
	for _, refused := range []string{"", "a", "где хлеб? в печи, уже два часа, и его никто не видел с утра", strings.Repeat("\x00\xff", 100)} {
		if packed, ok := Append(nil, []byte(refused)); ok {
			t.Errorf("%q became %d bytes, want that it is refused", refused, len(packed))
		}
	}
}

// What was stored is read with this table.
func TestTableIsNeverChanged(t *testing.T) {
	const want = "84024ef41a9a83ccd190c1de648157c7a4ea4c434629734ccbab62adfaca2145"
	sum := sha256.Sum256([]byte(text))
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("the table's sum is %s, not %s: what was stored with it can no longer be read", got, want)
	}
	single := 0
	for _, s := range symbols() {
		if len(s) == 1 {
			single++
		}
	}
	if single != 256 {
		t.Errorf("the table has %d of the 256 bytes", single)
	}
}

func TestMalformed(t *testing.T) {
	packed, _ := Append(nil, []byte(said))
	for n := range packed {
		if got, err := Expand(packed[:n]); !errors.Is(err, ErrMalformed) {
			t.Errorf("the first %d of %d bytes became %q, %v", n, len(packed), got, err)
		}
	}
	for _, b := range [][]byte{append(bytes.Clone(packed), 0), {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, append([]byte{200, 1}, packed[2:]...)} {
		if got, err := Expand(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%x became %q, %v", b, got, err)
		}
	}
}

// Whatever Expand takes is what Append makes, or longer; it never does anything but return.
func FuzzExpand(f *testing.F) {
	packed, _ := Append(nil, []byte(said))
	f.Add(packed)
	f.Add([]byte{9, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		said, err := Expand(b)
		if err != nil {
			return
		}
		again, ok := Append(nil, said)
		if !ok {
			return
		}
		if got, err := Expand(again); err != nil || !bytes.Equal(got, said) {
			t.Errorf("%q became %q, %v", said, got, err)
		}
	})
}
