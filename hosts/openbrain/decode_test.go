package openbrain

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzBody(f *testing.F) {
	for _, s := range []string{
		`{"content":"x","source":"s","metadata":{"id":"k","n":1e3}}`, `{"content":"\ud83d\ude00"}`, `{"content":"\ud83d"}`,
		`{"query":"q","limit":5,"source":"s","metadata":{"a":[1,{"b":null}]}}`, `{"metadata":{}}`, `[]`, `null`, `{"content":"\\ud800"}`,
		"{\"content\":\"\xff\"}", `{"limit":1e9}`, `{"limit":-0}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := parseBody(data)
		if err != nil {
			refused(t, err, data)
			return
		}
		if in, err := b.thought("default"); err != nil {
			refused(t, err, data)
		} else {
			if in.content == "" || !utf8.ValidString(in.content) || checkSource(in.source) != "" || !isObject(in.metadata) || !json.Valid(in.metadata) {
				t.Errorf("accepted %+v", in)
			}
			var plain struct {
				Content string `json:"content"`
			}
			if json.Unmarshal(b["content"], &plain.Content) != nil || plain.Content != in.content {
				t.Errorf("content %q became %q", plain.Content, in.content)
			}
			e := entryOf(in.source, in.content, in.metadata, in.key, 1)
			th, ok := thoughtOf(e)
			if !ok || th.Content != in.content || string(th.Metadata) != string(in.metadata) {
				t.Errorf("%+v comes back as %+v", in, th)
			}
			if tag, ok := tagIn(e.ID); !ok || tag != tagOf(in.source) || len(e.ID) > 64 {
				t.Errorf("id %q of source %q has tag %d, %v", e.ID, in.source, tag, ok)
			}
			out, err := json.Marshal(th.wire())
			if err != nil || !json.Valid(out) {
				t.Errorf("answer %s, %v", out, err)
			}
		}
		if q, _, err := b.find(100); err != nil {
			refused(t, err, data)
		} else if q.limit < 1 || q.limit > 100 || len(q.text) > maxQuery {
			t.Errorf("accepted search %+v", q)
		}
		if p, err := b.patch(); err != nil {
			refused(t, err, data)
		} else if p.content == nil && p.metadata == nil {
			t.Error("accepted an empty patch")
		}
	})
}

func refused(t *testing.T, err error, data []byte) {
	t.Helper()
	var r *refusal
	if !errors.As(err, &r) || r.status < 400 || r.status > 499 {
		t.Errorf("%q is refused with %v", data, err)
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(place{Seq: 5, Source: "s", ID: "i"}.cursor())
	f.Add("e30")
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := parseCursor(text)
		if !ok {
			return
		}
		if again, ok := parseCursor(p.cursor()); !ok || again != p {
			t.Errorf("%+v comes back as %+v", p, again)
		}
	})
}

func TestLoneSurrogate(t *testing.T) {
	for raw, want := range map[string]bool{
		`"\ud83d\ude00"`: false, `"\ud83d"`: true, `"\ude00"`: true, `"\ud83d\ud83d\ude00"`: true, `"\ud83dx"`: true,
		`"\\ud83d"`: false, `"\\\ud83d"`: true, `"\u00e9\n\""`: false, `"\ud83d\ude00\ude00"`: true, `"\uD83D\uDE00 ok"`: false,
		`"\ud83d\\ude00"`: true, `""`: false,
	} {
		if got := loneSurrogate([]byte(raw)); got != want {
			t.Errorf("loneSurrogate(%s) = %v, want %v", raw, got, want)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true}, {"*", "a:b/c", true}, {"a", "a", true}, {"a", "ab", false}, {"a", "ba", false}, {"a*", "abc", true},
		{"a*", "ba", false}, {"*a", "ba", true}, {"a*a", "a", false}, {"a*a", "aa", true}, {"a*b*c", "axxbyyc", true},
		{"a*b*c", "acb", false}, {"openclaw:*", "openclaw", false}, {"openclaw:main", "openclaw:main2", false}, {"a**b", "ab", true},
		{"*ab*ab*", "ab", false}, {"[a]", "a", false}, {"?", "a", false},
	} {
		if got := match(tc.pattern, tc.text); got != tc.want {
			t.Errorf("match(%q, %q) = %v, want %v", tc.pattern, tc.text, got, tc.want)
		}
	}
}

func TestIDs(t *testing.T) {
	first, second := keyedID("s", "k"), keyedID("s", "k")
	if first != second || first == keyedID("s", "l") || first == keyedID("sk", "") {
		t.Error("ids of keys are not a function of source and key")
	}
	first, second = randomID("s"), randomID("s")
	if first == second {
		t.Error("random ids repeat")
	}
	for _, bad := range []string{"", "x", strings.Repeat("a", 36), strings.ToUpper(keyedID("s", "kk")), keyedID("s", "k") + "0"} {
		if _, ok := tagIn(bad); ok {
			t.Errorf("tagIn(%q) accepts what is no id", bad)
		}
	}
}
