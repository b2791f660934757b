package tiktoken_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/models/tiktoken"
)

var _ core.TokenCounter = (*tiktoken.Counter)(nil).Count

func TestNewNamesKnownAndNearest(t *testing.T) {
	t.Parallel()
	for name, near := range map[string]string{
		"o200k": "o200k_base", "O200K_BASE": "o200k_base", "cl100k-base": "cl100k_base", "cl100": "cl100k_base",
		strings.Repeat("x", 1<<20): "", "": "",
	} {
		_, err := tiktoken.New(name)
		if !errors.Is(err, core.ErrInvalid) {
			t.Errorf("New(%.20q) = %v, want ErrInvalid", name, err)
			continue
		}
		for _, known := range tiktoken.Encodings() {
			if !strings.Contains(err.Error(), known) {
				t.Errorf("New(%.20q) = %.200v, does not list %q", name, err, known)
			}
		}
		if want := `did you mean "` + near; !strings.Contains(err.Error(), want) {
			t.Errorf("New(%.20q) = %.200v, want %q in it", name, err, want)
		}
	}
	for _, name := range tiktoken.Encodings() {
		if got := mustNew(t, name).Encoding(); got != name {
			t.Errorf("Encoding() = %q, want %q", got, name)
		}
	}
}

func TestForModel(t *testing.T) {
	t.Parallel()
	for encoding, models := range map[string][]string{
		"o200k_base": {"gpt-4o", "gpt-4o-mini", "gpt-4o-2024-08-06", "chatgpt-4o-latest", "gpt-4.1", "gpt-4.1-nano",
			"gpt-4.5-preview", "gpt-5", "gpt-5-mini", "gpt-5.1", "o1", "o1-preview", "o3-mini", "o4-mini",
			"openai/gpt-4o", "GPT-5", "ft:gpt-4o:team:name:1"},
		"cl100k_base": {"gpt-4", "gpt-4-turbo", "gpt-4-0613", "gpt-3.5-turbo", "gpt-35-turbo", "gpt-3.5-turbo-16k",
			"text-embedding-3-small", "text-embedding-3-large", "text-embedding-ada-002"},
		"": {"", "mistral-large", "llama3.1", "o100", "gpt-2", "gpt-50", "gpt-45", "bge-m3", "davinci"},
	} {
		for _, model := range models {
			got, ok := tiktoken.ForModel(model)
			if got != encoding || ok != (encoding != "") {
				t.Errorf("ForModel(%q) = %q, %v, want %q", model, got, ok, encoding)
			}
		}
	}
}

func TestAtLeast(t *testing.T) {
	t.Parallel()
	o200k, cl100k := mustNew(t, "o200k_base").Count, mustNew(t, "cl100k_base").Count
	both := tiktoken.AtLeast(cl100k, o200k)
	var differs bool
	for _, text := range []string{"", "plain words", "漢字仮名交じり文", "\u0301\u0301", strings.Repeat("Ab", 99)} {
		a, b := o200k(text), cl100k(text)
		differs = differs || a != b
		if got := both(text); got != max(a, b) {
			t.Errorf("AtLeast(%q) = %d, want the larger of %d and %d", text, got, a, b)
		}
	}
	if !differs {
		t.Error("the encodings agree on every sample, nothing was tested")
	}
	if got := tiktoken.AtLeast()("text"); got != 0 {
		t.Errorf("AtLeast() of nothing = %d, want 0", got)
	}
}

func TestInvalidUTF8CountsAsReplacement(t *testing.T) {
	t.Parallel()
	counter := mustNew(t, tiktoken.DefaultEncoding)
	for _, text := range []string{"\xff", "a\xc3", "\xed\xa0\x80", "ok \xf0\x9f\x98 end", "\x80 \x80\t\x80",
		strings.Repeat("\xfe\xffa", 1000), strings.Repeat("x", 600) + "\xc3 tail"} {
		if got, want := counter.Count(text), counter.Count(string([]rune(text))); got != want || got == 0 {
			t.Errorf("Count(%.20q) = %d, want %d as for U+FFFD", text, got, want)
		}
	}
}

func TestConcurrentCounts(t *testing.T) {
	t.Parallel()
	texts := []string{"short text", strings.Repeat("a", 5000), strings.Repeat("words and ", 500), "漢字 " + strings.Repeat("x", 700)}
	want := make([]int, len(texts))
	for i, text := range texts {
		want[i] = mustNew(t, tiktoken.DefaultEncoding).Count(text)
	}
	counter := mustNew(t, tiktoken.DefaultEncoding)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				got := make([]int, len(texts))
				for i, text := range texts {
					got[i] = counter.Count(text)
				}
				if !slices.Equal(got, want) {
					t.Errorf("concurrent counts = %v, want %v", got, want)
				}
			}
		})
	}
	wg.Wait()
}
