package window

import (
	"strings"
	"testing"
	"unicode"
)

// FuzzQuote: whatever is quoted, every line is marked and nothing in it opens a tag or controls a terminal.
func FuzzQuote(f *testing.F) {
	for _, text := range []string{
		"", "plain", "two\nlines", " \n\nblank around\n ", "<recalled>", "tab\tand\r\nreturn", "sep\u2028arated\u0085lines\v\f", "\x1b[0m\x00\x7f", "\xff\xfe broken", "grüße ‹",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Quote(text)
		for line := range strings.SplitSeq(got, "\n") {
			if !strings.HasPrefix(line, "> ") {
				t.Errorf("quote(%q) = %q: the line %q is not marked", text, got, line)
			}
		}
		for _, r := range got {
			if r == '<' || r == unicode.ReplacementChar && !strings.ContainsRune(strings.ToValidUTF8(text, "\uFFFD"), r) || r != '\n' && r != '\t' && unicode.IsControl(r) {
				t.Errorf("quote(%q) = %q holds %q", text, got, r)
			}
		}
		if harmless(text) && Escape(text) != text {
			t.Errorf("escape(%q) = %q, want it as it is", text, Escape(text))
		}
		// Marks and white space at the ends aside, harmless text stays what it was.
		if harmless(text) && strings.ReplaceAll(got, "\n> ", "\n") != "> "+strings.TrimSpace(text) {
			t.Errorf("quote(%q) = %q", text, got)
		}
	})
}

// TestHarmlessTextIsNotChanged: what is skipped is exactly what a look at every character would leave alone.
func TestHarmlessTextIsNotChanged(t *testing.T) {
	for c := range 256 {
		text := "a" + string([]byte{byte(c)}) + "b"
		long := Escape(text + "ü") // not skipped
		if want := strings.TrimSuffix(long, "ü"); harmless(text) && want != text {
			t.Errorf("%q is taken for harmless, and escaped it is %q", text, want)
		} else if c < 0x80 && !harmless(text) && want == text {
			t.Errorf("%q is not taken for harmless, and escaping leaves it as it is", text)
		}
	}
}

// TestUnseenCharactersAreDropped: what nobody sees does not reach a model, and scripts and pictures that need joiners keep theirs.
func TestUnseenCharactersAreDropped(t *testing.T) {
	for text, want := range map[string]string{
		"pay \u202eeno\u202c":                          "pay eno",
		"a\u200bb\u2060c\ufeffd\u00ade":                "abcde",
		"x\U000e0069\U000e0067y":                       "xy",
		"x\U000e0101\U000e0102y":                       "xy",
		"\u2066sys\u2069\u200etem\u061c":               "system",
		"sys\u200dtem \u200c\u200d":                    "system ",
		"\u0915\u094d\u200d\u0937":                     "\u0915\u094d\u200d\u0937",
		"\u0645\u06cc\u200c\u062e":                     "\u0645\u06cc\u200c\u062e",
		"\U0001f469\u200d\U0001f4bb\u2764\ufe0f\ufe0f": "\U0001f469\u200d\U0001f4bb\u2764\ufe0f",
		"\u3164\u2800a":                                "a",
	} {
		if got := Escape(text); got != want {
			t.Errorf("escape(%+q) = %+q, want %+q", text, got, want)
		}
	}
}
