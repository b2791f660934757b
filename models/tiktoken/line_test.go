package tiktoken

import (
	"encoding/base64"
	"testing"

	"github.com/contextengine/contextengine/internal/drawn"
)

// TestDecodeTokenEqualsLibrary decodes tokens of every length, and then with one letter changed.
func TestDecodeTokenEqualsLibrary(t *testing.T) {
	t.Parallel()
	rng := drawn.Rand(t)
	var buf [maxToken + 3]byte
	for round := range 50 {
		for size := range maxToken + 1 {
			token := make([]byte, size)
			for i := range token {
				token[i] = byte(rng.Uint32())
			}
			coded := []byte(base64.StdEncoding.EncodeToString(token))
			if n, ok := decodeToken(&buf, coded); !ok || string(buf[:n]) != string(token) {
				t.Fatalf("decodeToken(%q) = %x, %t, want %x", coded, buf[:n], ok, token)
			}
			if size == 0 {
				continue
			}
			changed := byte("A=*\x80-"[round%5])
			coded[rng.IntN(len(coded))] = changed
			want, err := base64.StdEncoding.DecodeString(string(coded))
			if n, ok := decodeToken(&buf, coded); ok != (err == nil) || ok && string(buf[:n]) != string(want) {
				t.Fatalf("decodeToken(%q) = %x, %t, want %x, %v", coded, buf[:n], ok, want, err)
			}
		}
	}
}

func TestParseRank(t *testing.T) {
	t.Parallel()
	for digits, want := range map[string]int64{
		"0": 0, "199998": 199998, "268435455": 1<<rankBits - 1, "268435456": -1, "99999999999999999999": -1, "": -1, "-1": -1, "1 ": -1, "+1": -1,
	} {
		rank, ok := parseRank([]byte(digits))
		if ok != (want >= 0) || ok && int64(rank) != want {
			t.Errorf("parseRank(%q) = %d, %t, want %d", digits, rank, ok, want)
		}
	}
}
