package postgres

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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

func entryOf(m message.Message) core.Entry {
	return core.Entry{Role: message.User, Time: time.Unix(5, 7).UTC(), Fingerprint: strings.Repeat("0a", 32), Message: m}
}

// unpacked returns what is read of a body whose entry has the same columns.
func unpacked(e core.Entry, body []byte) (core.Entry, error) {
	e.Message, e.Fingerprint = message.Message{}, ""
	err := unpackBody(&e, body)
	return e, err
}

func TestPackRoundTrip(t *testing.T) {
	said := message.New(message.User, "what did we agree on about the cabin?")
	said.Raw = []byte(`{"role":"user","content":"what did we agree on about the cabin?"}`)
	for _, m := range []message.Message{{}, {Parts: []message.Part{}}, sample(), said, message.New(message.User, strings.Repeat("x", 1<<20))} {
		for _, fingerprint := range []string{"", "print", "0A", strings.Repeat("0a", 32)} {
			e := entryOf(m)
			e.Fingerprint = fingerprint
			got, err := unpacked(e, packBody(&e))
			if diff := cmp.Diff(e, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		}
	}
}

// firstLayout is sample and the fingerprint "print" as the first layout has them.
const firstLayout = "01057072696e7404746f6f6c0169026b00016e0173017401660500ff7b7d01010a0702030608040b746f6f6c5f726573756c740274ff0163016e017b0173010103" +
	"6f646400000000000002000000000000000000d60fc1cc"

// TestFirstLayoutIsRead: what programs before wrote, of a message that has everything.
func TestFirstLayoutIsRead(t *testing.T) {
	body, err := hex.DecodeString(firstLayout)
	if err != nil {
		t.Fatal(err)
	}
	want := entryOf(sample())
	want.Fingerprint = "print"
	got, err := unpacked(want, body)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for i := range body {
		if _, err := unpacked(want, body[:i]); err == nil {
			t.Errorf("a body cut at %d is taken", i)
		}
	}
}

// TestBytesStayTheSame: what programs before wrote is what this one writes, so both read it.
func TestBytesStayTheSame(t *testing.T) {
	e := entryOf(sample())
	written := append(packBody(&e), packMeta(map[string]string{"b": "\xff", "a": ""})...)
	if got := fmt.Sprintf("%x", sha256.Sum256(written)); got != "ba59d73f57b5ba81de3288eecbff640fc283989c3e120235674e99366310b098" {
		t.Errorf("the sample is written as other bytes, of sum %s", got)
	}
}

// TestDamageIsSeen flips every bit of a body, and cuts it everywhere.
func TestDamageIsSeen(t *testing.T) {
	e := entryOf(sample())
	body := packBody(&e)
	for i := range len(body) * 8 {
		bad := bytes.Clone(body)
		bad[i/8] ^= 1 << (i % 8)
		if _, err := unpacked(e, bad); err == nil {
			t.Errorf("a flipped bit %d is not seen", i)
		}
	}
	for i := range body {
		if _, err := unpacked(e, body[:i]); err == nil {
			t.Errorf("a body cut at %d is taken", i)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	e := entryOf(sample())
	f.Add(packBody(&e))
	f.Add([]byte{layout, 0, 0, 0, 0})
	f.Add([]byte{layoutFirst, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		// With a right checksum, so that what is behind it is reached.
		got, err := unpacked(e, binary.LittleEndian.AppendUint32(bytes.Clone(b), checksum(b)))
		if err == nil {
			if again, err := unpacked(got, packBody(&got)); err != nil || cmp.Diff(got, again) != "" {
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
