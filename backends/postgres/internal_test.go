package postgres

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/packed"
)

func sample() message.Message {
	return message.Message{
		Role: message.Tool, Time: time.Unix(5, 7).UTC(), ID: "i", Key: "k\x00", Name: "n", Stop: "s", Type: "t", Format: "f",
		Raw: []byte("\x00\xff{}"), Edited: true, Usage: message.Usage{Input: 1, Output: -2, CacheRead: 3, CacheWrite: 4},
		Parts: []message.Part{
			{Kind: message.ToolResult, Text: "t\xff", CallID: "c", Name: "n", Args: "{", Signature: "s", IsError: true, Raw: []byte{}},
			{Kind: "odd", Raw: []byte{0}}, {},
		},
	}
}

func TestPackRoundTrip(t *testing.T) {
	for _, m := range []message.Message{{}, {Parts: []message.Part{}}, sample(), message.New(message.User, strings.Repeat("x", 1<<20))} {
		body := packBody(&m, "print")
		got, fingerprint, err := unpackBody(body)
		if err != nil || fingerprint != "print" {
			t.Fatalf("unpackBody: %q, %v", fingerprint, err)
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// TestBytesStayTheSame: what programs before wrote is what this one writes, so both read it.
func TestBytesStayTheSame(t *testing.T) {
	m := sample()
	written := append(packBody(&m, "print"), packMeta(map[string]string{"b": "\xff", "a": ""})...)
	if got := fmt.Sprintf("%x", sha256.Sum256(written)); got != "1d0eb25ba2a7770ebdf2014de810cc7ebca7778adbf628c206d3887cee94d0b4" {
		t.Errorf("the sample is written as other bytes, of sum %s", got)
	}
}

// TestDamageIsSeen flips every bit of a body, and cuts it everywhere.
func TestDamageIsSeen(t *testing.T) {
	m := sample()
	body := packBody(&m, "print")
	for i := range len(body) * 8 {
		bad := bytes.Clone(body)
		bad[i/8] ^= 1 << (i % 8)
		if _, _, err := unpackBody(bad); err == nil {
			t.Errorf("a flipped bit %d is not seen", i)
		}
	}
	for i := range body {
		if _, _, err := unpackBody(body[:i]); err == nil {
			t.Errorf("a body cut at %d is taken", i)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	m := sample()
	f.Add(packBody(&m, "print"))
	f.Add([]byte{layout, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		// With a right checksum, so that what is behind it is reached.
		sum := checksum(b)
		whole := append(bytes.Clone(b), byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
		if m, fingerprint, err := unpackBody(whole); err == nil {
			if again, _, err := unpackBody(packBody(&m, fingerprint)); err != nil || cmp.Diff(m, again) != "" {
				t.Errorf("what was read cannot be written and read again: %v", err)
			}
		}
		if meta, err := packed.ReadMeta(b); err == nil && len(meta) > 0 {
			if again, err := packed.ReadMeta(packMeta(meta)); err != nil || cmp.Diff(meta, again) != "" {
				t.Errorf("metadata: %v", err)
			}
		}
	})
}

func FuzzCursors(f *testing.F) {
	f.Add("f.1.2.bWFpbg", "main", false)
	f.Add("r.zz.-9.", "", true)
	f.Add("v.0.bWFpbg", "", true)
	f.Fuzz(func(t *testing.T, cursor, name string, reverse bool) {
		q := core.ScanQuery{Scope: core.Scope{Agent: "a", Session: name}, Reverse: reverse}
		if p, err := parsePlace(core.Cursor(cursor), q); err == nil {
			if again, err := parsePlace(p.cursor(reverse), q); err != nil || again != p {
				t.Errorf("cursor %q: %+v, then %+v, %v", cursor, p, again, err)
			}
		}
		if id, part, err := parseVectorCursor(core.Cursor(cursor)); err == nil && cursor != "" {
			if again, n, err := parseVectorCursor(vectorCursor(string(id), part)); err != nil || n != part || !bytes.Equal(id, again) {
				t.Errorf("cursor %q: %v", cursor, err)
			}
		}
	})
}

func TestPlainWords(t *testing.T) {
	for text, want := range map[string]string{
		"Hello,  World!":          "hello world",
		"see https://a.example/b": "see https a example b",
		"<b>bold</b> snake_case":  "b bold b snake case",
		"数据库迁移 ok":                "数据 据库 库迁 迁移 ok",
		"数":                       "数",
		"a数据b":                    "a 数据 b",
		"설정 확인":                   "설정 확인",
		"ÉTÉ e\u0301te":           "été e\u0301te",
		"nul\x00nul \xff\xfe":     "nul nul",
		"ＡＢＣ１":                    "abc1",
		strings.Repeat("y", 70):   strings.Repeat("y", 64),
		"":                        "",
		"👩‍👩‍👧‍👦 🇩🇪":              "",
	} {
		if got := plainWords(text); got != want {
			t.Errorf("plainWords(%q) = %q, want %q", text, got, want)
		}
	}
	if got := plainWords(strings.Repeat("word ", 1<<20)); len(got) > maxText+maxWord {
		t.Errorf("plainWords returns %d bytes, more than its bound", len(got))
	}
}

func FuzzPlainWords(f *testing.F) {
	f.Add("a数\u0301据b \u200d x")
	f.Fuzz(func(t *testing.T, text string) {
		got := plainWords(text)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00'\\&|!():*<>@") || strings.Contains(got, "  ") {
			t.Errorf("plainWords(%q) = %q", text, got)
		}
	})
}
