package lexical

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func terms(text string) string {
	var out []string
	a := analyzer{}
	a.emit = func(term []byte, k kind) {
		if k == whole {
			out = append(out, "="+string(term))
			return
		}
		out = append(out, string(term))
	}
	a.run(text)
	return strings.Join(out, " ")
}

func TestTerms(t *testing.T) {
	rows := []struct{ name, text, want string }{
		{"words", "The Quick, brown (fox)!", "the quick brown fox"},
		{"possessive and contraction", "Ann's dog doesn't we'll O'Brien", "ann dog we o brien =o'brien"},
		{"typographic apostrophe", "Ann’s", "ann =ann’s"},
		{"version", "v1.2.3.", "v1 2 3 =v1.2.3 =1.2.3"},
		{"snake", "the my_var_name", "the my var name =my_var_name"},
		{"path", "see /a/b_c.go:12", "see a b c go =b_c.go 12 =a/b_c.go:12"},
		{"uuid", "3f2a-11b0-zz", "3f2a 11b0 zz =3f2a-11b0-zz"},
		{"camel case", "getUserName HTTPServer iPhone PhD NASA", "get user name =getusername http server =httpserver i phone =iphone ph d =phd nasa"},
		{"letters and a number", "E1042 HTTP404 v12 x1y2z3456", "e1042 =1042 http404 =404 =http v12 x1y2z3456"},
		{"number", "1,200 or 1, 2", "1 200 =1,200 or 1 2"},
		{"han", "我在東京", "我在 在東 東京"},
		{"one character", "猫 ok", "猫 ok"},
		{"katakana with long vowels", "サーバー", "サー ーバ バー"},
		{"mixed", "看core/store.go吧", "看 core store go =store.go =core/store.go 吧"},
		{"thai keeps marks with letters", "ที่นี่", "ที่นี่"},
		{"hindi keeps marks in words", "नमस्ते दुनिया", "नमस्ते दुनिया"},
		{"cyrillic", "Привет, МИР", "привет мир"},
		{"accents", "Überraschung café", "überraschung café"},
		{"full width", "ＡＢＣ１", "abc1"},
		{"blank", " \n\t ", ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := terms(r.text); got != r.want {
				t.Errorf("terms(%q) = %q, want %q", r.text, got, r.want)
			}
		})
	}
	if got := terms(strings.Repeat("x", 1000)); len(got) != maxTerm {
		t.Errorf("a run of 1,000 letters is a term of %d bytes, want %d", len(got), maxTerm)
	}
}

func TestPassages(t *testing.T) {
	cut := func(text string, limit, keep int) string {
		var out []string
		for _, s := range passages(text, limit, keep) {
			out = append(out, strings.TrimSpace(text[s.start:s.end]))
		}
		return strings.Join(out, "|")
	}
	rows := []struct {
		name, text  string
		limit, keep int
		want        string
	}{
		{"short stays whole", "One two.\nThree.", 4, 9, "One two.\nThree."},
		{"sentences", "One two. Three four five! Six.", 4, 9, "One two.|Three four five! Six."},
		{"lines", "one two three\nfour five", 3, 9, "one two three|four five"},
		{"too long a sentence", "a b c d e", 2, 9, "a b|c d|e"},
		{"decimal is no border", "cost 1.50 now", 4, 9, "cost 1.50 now"},
		{"apostrophe is inside a word", "don't can't won't", 3, 9, "don't can't won't"},
		{"han sentences", "今天下雨。明天晴。", 5, 9, "今天下雨。|明天晴。"},
		{"marks count no words", "नमस्ते दुनिया", 2, 9, "नमस्ते दुनिया"},
		{"both ends are kept", "a\nb\nc\nd\ne\nf\ng\nh", 1, 4, "a|b|c|h"},
		{"no words", "--- !!!", 4, 9, ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := cut(r.text, r.limit, r.keep); got != r.want {
				t.Errorf("passages(%q) = %q, want %q", r.text, got, r.want)
			}
		})
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a. b\n\nc", "東京 \xff\xfe タワー", "e\u0301\u200d", "\u0e35", "a''b", "x" + strings.Repeat("-y", 70)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := checkPassages(text); err != nil {
			t.Error(err)
		}
		a := analyzer{}
		a.emit = func(term []byte, k kind) {
			if len(term) == 0 || k != whole && len(term) > maxTerm+utf8.UTFMax {
				t.Errorf("term %q has %d bytes", term, len(term))
			}
		}
		a.run(text)
	})
}

func checkPassages(text string) error {
	end := 0
	for _, s := range passages(text, 5, 1<<30) {
		switch {
		case s.start < end || wordRunes(text[end:s.start]) > 0:
			return fmt.Errorf("passage at %d, the last one ended at %d, words between them or overlap", s.start, end)
		case s.end <= s.start || s.words < 1 || s.words > 5:
			return fmt.Errorf("passage %+v", s)
		case s.end-s.start > maxPassageBytes+utf8.UTFMax:
			return fmt.Errorf("passage of %d bytes", s.end-s.start)
		}
		end = s.end
	}
	return nil
}

// wordRunes counts the characters of text that are part of words.
func wordRunes(text string) int {
	n := 0
	for _, r := range text {
		if c := classOf(r); c == inside || c == alone {
			n++
		}
	}
	return n
}
