package sqlite

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestNamesComeBack(t *testing.T) {
	digest := "0c1254f3ed7ad6477c6407e4247761b8"
	ids := []string{
		"e06h11q7oslps45d0m0a3jimd0g", "e06h11q7oslps45d0m0a3jimd0h", "e06h11q7oslps45d0m0a3jimd0G", "e06h11q7oslps45d0m0a3jimd0", "e06h11q7oslps45d0m0a3jimdwg", "e", "x",
		"\xfe", "e\xff6h11q7oslps45d0m0a3jimd0g", strings.Repeat("a", 16), "e06h11q7oslps45d0m0a3\njimd0g", "e06h11q7oslps45d0m0a3jimd\r\n",
	}
	keys := []string{
		"s:0:" + digest, "s:0:" + digest + ":B43Z5K6O", "s:00:" + digest, "s:18446744073709551615:" + digest, "s:18446744073709551616:" + digest, "s:7:", "s:7:x", "s:7", "s:",
		"s:255:a", "s:256:a", "s:-1:a", "s:+1:a", "i:id:" + digest, digest, strings.ToUpper(digest), "t:turn:1", "\x01\x00", "\x01" + digest, "", "s:3:" + strings.ToUpper(digest), "s:3:" + digest[:31],
	}
	seen := map[string]string{}
	for _, id := range ids {
		short := shortID(id)
		if other, ok := seen[fmt.Sprintf("%T %x", short, short)]; ok {
			t.Errorf("the ids %q and %q are both %x", id, other, short)
		}
		seen[fmt.Sprintf("%T %x", short, short)] = id
		var got storedID
		if err := got.Scan(short); err != nil || string(got) != id {
			t.Errorf("the id %q came back as %q, %v", id, got, err)
		}
	}
	clear(seen)
	for _, key := range keys {
		short := shortKey(key)
		if other, ok := seen[fmt.Sprintf("%T %x", short, short)]; ok {
			t.Errorf("the keys %q and %q are both %x", key, other, short)
		}
		seen[fmt.Sprintf("%T %x", short, short)] = key
		if got := longKey(short); got != key {
			t.Errorf("the key %q is stored as %x and came back as %q", key, short, got)
		}
	}
	if b, ok := shortID(ids[0]).([]byte); !ok || len(b) != 16 {
		t.Errorf("an id of the engine takes %v", b)
	}
}

// Keys of places are in the order of these, so that an index of them grows at its end.
func TestKeysAreInOrder(t *testing.T) {
	var got [][]byte
	for _, n := range []uint64{0, 1, 9, 10, 255, 256, 65535, 65536, 1 << 40, 1<<64 - 1} {
		b, ok := shortKey(fmt.Sprintf("s:%d:0c1254f3ed7ad6477c6407e4247761b8", n)).([]byte)
		if !ok {
			t.Fatalf("the key of place %d is not short", n)
		}
		got = append(got, b)
	}
	if !slices.IsSortedFunc(got, bytes.Compare) {
		t.Errorf("%x", got)
	}
}

func TestOddColumnsAreNoNames(t *testing.T) {
	for _, b := range [][]byte{{}, {0}, {1}, {1, 9}, {1, 2, 1}, {2, 1, 1, 1}, {3, 1}, {4, 1}} {
		if key := longKey(b); key != "" {
			t.Errorf("%x is the key %q", b, key)
		}
	}
	var id storedID
	if err := id.Scan(int64(1)); err == nil {
		t.Errorf("a number is the id %q", id)
	}
}
