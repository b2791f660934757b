package tiktoken

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// TestVocabularyEqualsLibrary looks up every token, and every text that is a token but for one byte.
func TestVocabularyEqualsLibrary(t *testing.T) {
	t.Parallel()
	for _, c := range newTestCounters(t, shortPiece, maxPiece) {
		v := c.enc.vocabulary
		ranks := referenceOf(t, c.Encoding()).ranks
		for token, rank := range ranks {
			n := len(token)
			// At the end of a text and inside one, which are read differently.
			for _, text := range []string{token, token + "........"} {
				if got := v.rank(text, 0, n); int(got) != rank {
					t.Fatalf("%s: rank of %q = %d, want %d", c.Encoding(), token, got, rank)
				}
			}
			if n == 2 {
				if got := v.pairs[int(token[0])<<8|int(token[1])]; int(got) != rank {
					t.Fatalf("%s: rank of pair %q = %d, want %d", c.Encoding(), token, got, rank)
				}
			}
			for _, text := range []string{token + "\x00", "\x00" + token, token[:n-1] + "\x00", token[:n-1] + "\xff"} {
				want, ok := ranks[text]
				if !ok {
					want = noRank
				}
				if got := v.rank(text, 0, len(text)); int(got) != want {
					t.Fatalf("%s: rank of %q = %d, want %d", c.Encoding(), text, got, want)
				}
			}
		}
		pairs := 0
		for _, rank := range v.pairs {
			if rank != noRank {
				pairs++
			}
		}
		for token := range ranks {
			if len(token) == 2 {
				pairs--
			}
		}
		if pairs != 0 {
			t.Errorf("%s: %d pairs too many", c.Encoding(), pairs)
		}
	}
}

// singleBytes is a vocabulary of nothing else.
func singleBytes() string {
	var lines strings.Builder
	for b := range 256 {
		fmt.Fprintf(&lines, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(b)}), b)
	}
	return lines.String()
}

func TestParseVocabularyRejects(t *testing.T) {
	t.Parallel()
	whole := singleBytes()
	if _, err := parseVocabulary([]byte(whole)); err != nil {
		t.Fatalf("parseVocabulary of the single bytes: %v", err)
	}
	long := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	if _, err := parseVocabulary([]byte(whole + long(maxToken) + " 256\n")); err != nil {
		t.Errorf("parseVocabulary with a token of %d bytes: %v", maxToken, err)
	}
	for label, data := range map[string]string{
		"empty":           "",
		"a byte missing":  whole[strings.IndexByte(whole, '\n')+1:],
		"no rank":         whole + "AAAA\n",
		"empty token":     whole + " 256\n",
		"rank not number": whole + "AAAA x\n",
		"rank negative":   whole + "AAAA -1\n",
		"rank too large":  whole + "AAAA 268435456\n",
		"not base64":      whole + "A*AA 256\n",
		"long token":      whole + long(maxToken+1) + " 256\n",
		"very long token": whole + long(10*maxToken) + " 256\n",
	} {
		if _, err := parseVocabulary([]byte(data)); err == nil {
			t.Errorf("%s: parseVocabulary = nil, want an error", label)
		}
	}
}
