package exact_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/internal/compacting/exact"
)

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"Edit packages/tui/src/markdown.ts, then run it.":           {"packages/tui/src/markdown.ts"},
		"see https://example.com/a?b=c&d=1#x.":                      {"https://example.com/a?b=c&d=1#x"},
		"v1.2.3-rc.1 and ^2.0.0":                                    {"v1.2.3-rc.1", "2.0.0"},
		"commit 4f2a9bc1 of 123e4567-e89b-12d3-a456-426614174000":   {"4f2a9bc1", "123e4567-e89b-12d3-a456-426614174000"},
		"snake_case camelCase PascalCase plain words, e.g. this":    {"snake_case", "camelCase", "PascalCase"},
		"theme.fg(\"x\") at main.go:42:7 failed with ECONNREFUSED":  {"theme.fg", "main.go:42:7", "ECONNREFUSED"},
		"user mia_li_3668 flies HAT136 on 2024-05-20 for 12,345.67": {"mia_li_3668", "HAT136", "2024-05-20", "12,345.67"},
		"请修改src/主页/index.ts文件，端口8080":                               {"src/", "/index.ts", "8080"},
		"फ़ाइल src/main.rs में 4711 है":                             {"src/main.rs", "4711"},
		"C:\\Users\\x\\a.txt or ~/.pi/agent/themes/":                {"C:\\Users\\x\\a.txt", "~/.pi/agent/themes/"},
		"--no-verify $HOME/x #ff00ff @scope/pkg@1.2.3 std::vector":  {"--no-verify", "$HOME/x", "#ff00ff", "@scope/pkg@1.2.3", "std::vector"},
		`{"path":"a/b.go","n":17}`:                                  {"a/b.go", "17"},
		"":                                                          nil,
		"It ends here.Then goes on":                                 {"here.Then"},
		strings.Repeat("QUJD", 40):                                  nil,
		"mail ann@example.com now":                                  {"ann@example.com"},
		"a\xff\xfebc_d e":                                           {"bc_d"},
		"0xDEADBEEF DEADBEEF99 deadbeef and 1234567":                {"0xDEADBEEF", "DEADBEEF99", "1234567"},
	} {
		if diff := cmp.Diff(want, exact.Words(text)); diff != "" {
			t.Errorf("Words(%q) (-want +got):\n%s", text, diff)
		}
	}
}

func TestKinds(t *testing.T) {
	for word, want := range map[string]exact.Kind{
		"https://example.com": exact.URL, "a/b/c": exact.Path, "read/write": exact.Weak, "src/a.go": exact.Path, "4f2a9bc": exact.Hash,
		"1.2.3": exact.Version, "ENOENT": exact.Code, "README": exact.None, "hello": exact.None, "12": exact.Number, "2024-05-20": exact.Number,
		"end.Begin": exact.Weak, "package.json": exact.Symbol, "well-known": exact.None, "x1": exact.None, "9f86d081884c7d65": exact.Hash,
	} {
		if got := exact.KindOf(word); got != want {
			t.Errorf("KindOf(%q) = %v, want %v", word, got, want)
		}
	}
}

func TestSenses(t *testing.T) {
	for s, want := range map[string]exact.Sense{
		"Never commit to main.":  exact.Rule,
		"I prefer tabs.":         exact.Rule,
		"We decided on plan B.":  exact.Decision,
		"TODO: write the tests":  exact.Task,
		"The cache is not warm.": exact.Negation,
		"What time is it?":       exact.Plain,
		"The knot was tied.":     exact.Plain,
		"请不要修改数据库。":              exact.Rule,
		"我们决定采用方案B":              exact.Decision,
		"इस फ़ाइल को कभी न हटाएँ।": exact.Rule,
		"हमने योजना B तय की":       exact.Decision,
	} {
		if got := exact.SenseOf(s); got != want {
			t.Errorf("SenseOf(%q) = %v, want %v", s, got, want)
		}
	}
}

func TestSentences(t *testing.T) {
	text := "1. Use v1.2.3, e.g. here. Never push!\n- item two; 不要改。好的。\n\nयह नियम है। ठीक"
	var got []string
	for s := range exact.Sentences(text) {
		got = append(got, s)
	}
	want := []string{"1. Use v1.2.3, e.g. here.", "Never push!", "item two;", "不要改。", "यह नियम है।"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Sentences (-want +got):\n%s", diff)
	}
}

func FuzzScan(f *testing.F) {
	f.Add("packages/a_b.go:12 v1.2.3 https://x/?a=b 不要 12,345 \\ C:\\a\xff")
	f.Fuzz(func(t *testing.T, text string) {
		at := 0
		exact.Scan(text, func(w string, k exact.Kind, from int) bool {
			if from < at || text[from:from+len(w)] != w || w == "" || k == exact.None || !utf8.ValidString(w) {
				t.Fatalf("Scan(%q) found %q (%v) behind byte %d", text, w, k, at)
			}
			at = from + len(w)
			exact.IsKey(text, from, len(w))
			return true
		})
		for s := range exact.Sentences(text) {
			if !strings.Contains(text, s) || len(s) > 410 {
				t.Fatalf("Sentences(%q) found %q", text, s)
			}
			exact.SenseOf(s)
		}
	})
}
