package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// hashed is a sound embedder: a vector of the letters of a text.
type hashed struct {
	embed func(ctx context.Context, texts []string, sound func([]string) [][]float32) ([][]float32, error)
	name  func() string
	size  func() int
}

func letters(texts []string) [][]float32 {
	out := make([][]float32, len(texts))
	for i, s := range texts {
		out[i] = make([]float32, 16)
		out[i][0] = 1
		for j := range len(s) {
			out[i][1+int(s[j])%15] += float32(s[j]%7) + 1
		}
	}
	return out
}

func (h *hashed) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if h.embed != nil {
		return h.embed(ctx, texts, letters)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("letters: %w", err)
	}
	return letters(texts), nil
}

func (h *hashed) Model() string {
	if h.name != nil {
		return h.name()
	}
	return "letters"
}

func (h *hashed) Dimensions() int {
	if h.size != nil {
		return h.size()
	}
	return 16
}

// completes is a completer around the suite's model.
type completes func(ctx context.Context, req core.CompletionRequest, sound core.Completer) (core.Completion, error)

func (f completes) Complete(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
	return f(ctx, req, &conformance.Model{})
}

// tableModels are broken counters, embedders and completers, each caught by the check that names the rule.
func tableModels() []broken {
	var out []broken
	opts := func(id string) []conformance.Option {
		return []conformance.Option{conformance.WithExactly(10, 20260301), conformance.WithoutShrinking(), conformance.WithFirst(), conformance.WithPatience(time.Second), conformance.WithClaims(id)}
	}
	counter := func(id, name string, f func() core.TokenCounter) {
		out = append(out, broken{class: "counter: " + id, name: name, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
			t.Helper()
			return conformance.ExamineCounter(t, func(testing.TB) core.TokenCounter { return f() }, append(opts(id), only...)...)
		}})
	}
	pure := func(id, name string, f core.TokenCounter) { counter(id, name, func() core.TokenCounter { return f }) }
	pure("count.number", "negative for long texts", func(s string) int { return cheap(s) * (1 - len(s)/200*2) })
	pure("count.number", "one for nothing", func(s string) int { return cheap(s) + 1 })
	pure("count.number", "nothing for less than four bytes", func(s string) int { return len(s) / 4 })
	pure("count.any", "panics over odd bytes", func(s string) int {
		if !utf8.ValidString(s) {
			panic("broken: no text")
		}
		return cheap(s)
	})
	pure("count.any", "odd bytes are free", func(s string) int { return utf8.RuneCountInString(s) - countOf(s) })
	for _, special := range []string{"<|endoftext|>", "<|fim_prefix|>", "<|endofprompt|>", "</s>", "[MASK]"} {
		pure("count.any", special+" is free", func(s string) int { return cheap(strings.ReplaceAll(s, special, "")) })
	}
	pure("count.any", "hangs over a long word", func(s string) int {
		if len(s) > 1<<16 {
			select {}
		}
		return cheap(s)
	})
	counter("count.pure", "more each time", func() core.TokenCounter {
		var n atomic.Int64
		return func(s string) int { return cheap(s) + int(n.Add(1)/4)*min(len(s), 1) }
	})
	counter("count.pure", "what was counted is free", func() core.TokenCounter {
		var known sync.Map
		return func(s string) int {
			if _, ok := known.LoadOrStore(s, true); ok {
				return min(len(s), 1)
			}
			return cheap(s)
		}
	})
	var made atomic.Int64
	counter("count.pure", "another counter, another count", func() core.TokenCounter {
		more := int(made.Add(1))
		return func(s string) int { return cheap(s) + more*min(len(s), 1) }
	})
	counter("count.concurrent", "the text of another call", func() core.TokenCounter {
		var text atomic.Value
		return func(s string) int {
			text.Store(s)
			time.Sleep(20 * time.Microsecond)
			now, _ := text.Load().(string)
			return cheap(now)
		}
	})
	pure("count.grows", "never more than a thousand", func(s string) int { return min(cheap(s), 1000) })

	pure("count.long", "estimated from ten thousand bytes on", func(s string) int {
		if len(s) > 10000 {
			return len(s) / 12
		}
		return cheap(s)
	})
	for _, most := range []int{100_000, 150_000, 300_000, 500_000} {
		pure("count.long", fmt.Sprintf("the first %d bytes alone", most), func(s string) int { return cheap(s[:min(len(s), most)]) })
		pure("count.long", fmt.Sprintf("%d bytes at most, and a little for the rest", most), func(s string) int { return cheap(s[:min(len(s), most)]) + max(len(s)-most, 0)/1000 })
	}
	counter("count.alike", "remembered by length and beginning", func() core.TokenCounter {
		var known sync.Map
		return func(s string) int {
			n, _ := known.LoadOrStore(fmt.Sprint(len(s), s[:min(len(s), 16)]), realCount(s))
			return n.(int) //nolint:forcetypeassert // nothing else is stored
		}
	})
	counter("count.alike", "remembered by length, beginning and end", func() core.TokenCounter {
		var known sync.Map
		return func(s string) int {
			n, _ := known.LoadOrStore(fmt.Sprint(len(s), s[:min(len(s), 64)], s[max(len(s)-64, 0):]), realCount(s))
			return n.(int) //nolint:forcetypeassert // nothing else is stored
		}
	})
	for name, same := range map[string]func(string) string{
		"trimmed": strings.TrimSpace, "in lower case": strings.ToLower, "by its words": func(s string) string { return strings.Join(strings.Fields(s), " ") },
		"without what is no text": func(s string) string { return strings.ToValidUTF8(s, "") },
	} {
		counter("count.alike", "remembered "+name, func() core.TokenCounter {
			var known sync.Map
			return func(s string) int {
				n, _ := known.LoadOrStore(same(s), realCount(s)+strings.Count(s, "T")+strings.Count(s, "\xff"))
				return n.(int) //nolint:forcetypeassert // nothing else is stored
			}
		})
	}
	counter("count.alike", "one more for every five hundred", func() core.TokenCounter {
		var n atomic.Int64
		return func(s string) int { return cheap(s) + int(n.Add(1)/500)*min(len(s), 1) }
	})

	embedder := func(id, name string, h func() *hashed) {
		out = append(out, broken{class: "embedder: " + id, name: name, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
			t.Helper()
			return conformance.ExamineEmbedder(t, func(testing.TB) core.Embedder { return h() }, append(opts(id), only...)...)
		}})
	}
	vectors := func(id, name string, f func(texts []string, sound func([]string) [][]float32) [][]float32) {
		embedder(id, name, func() *hashed {
			return &hashed{embed: func(ctx context.Context, texts []string, sound func([]string) [][]float32) ([][]float32, error) {
				return f(texts, sound), ctx.Err()
			}}
		})
	}
	vectors("embed.shape", "the last one missing", func(t []string, s func([]string) [][]float32) [][]float32 { v := s(t); return v[:max(len(v)-1, 0)] })
	vectors("embed.shape", "a short one among them", func(t []string, s func([]string) [][]float32) [][]float32 {
		v := s(t)
		if len(v) > 1 {
			v[1] = v[1][:8]
		}
		return v
	})
	vectors("embed.shape", "NaN for what is not ASCII", func(t []string, s func([]string) [][]float32) [][]float32 {
		v := s(t)
		for i := range t {
			if utf8.RuneCountInString(t[i]) < len(t[i]) {
				v[i][3] = float32(math.NaN())
			}
		}
		return v
	})
	vectors("embed.shape", "none for a blank text", func(t []string, s func([]string) [][]float32) [][]float32 {
		v := s(t)
		for i := range t {
			if strings.TrimSpace(t[i]) == "" {
				v[i] = nil
			}
		}
		return v
	})
	vectors("embed.shape", "NaN for a blank text", func(t []string, s func([]string) [][]float32) [][]float32 {
		v := s(t)
		for i := range t {
			if strings.TrimSpace(t[i]) == "" {
				v[i][3] = float32(math.NaN())
			}
		}
		return v
	})
	vectors("embed.many", "the first hundred", func(t []string, s func([]string) [][]float32) [][]float32 { return s(t[:min(len(t), 100)]) })
	vectors("embed.many", "the same once", func(t []string, s func([]string) [][]float32) [][]float32 {
		seen := map[string]bool{}
		return s(slices.DeleteFunc(slices.Clone(t), func(text string) bool { again := seen[text]; seen[text] = true; return again }))
	})
	vectors("embed.many", "a second batch backwards", func(t []string, s func([]string) [][]float32) [][]float32 {
		v := s(t)
		slices.Reverse(v[min(len(v), 32):])
		return v
	})
	embedder("embed.many", "remembered by length and beginning", func() *hashed {
		var known sync.Map
		return &hashed{embed: func(ctx context.Context, texts []string, sound func([]string) [][]float32) ([][]float32, error) {
			v := sound(texts)
			for i, s := range texts {
				old, _ := known.LoadOrStore(fmt.Sprint(len(s), s[:min(len(s), 24)]), slices.Clone(v[i]))
				v[i] = slices.Clone(old.([]float32)) //nolint:forcetypeassert // nothing else is stored
			}
			return v, ctx.Err()
		}}
	})
	vectors("embed.shape", "neighbours that are the same once", func(t []string, s func([]string) [][]float32) [][]float32 { return s(slices.Compact(slices.Clone(t))) })
	vectors("embed.shape", "the same twice once", func(t []string, s func([]string) [][]float32) [][]float32 {
		slices.Sort(t)
		return s(slices.Compact(t))
	})
	embedder("embed.many", "refuses more than 2048 texts", func() *hashed {
		return &hashed{embed: func(ctx context.Context, texts []string, sound func([]string) [][]float32) ([][]float32, error) {
			if len(texts) > 2048 {
				return nil, core.ErrInvalid
			}
			return sound(texts), ctx.Err()
		}}
	})
	vectors("embed.order", "backwards", func(t []string, s func([]string) [][]float32) [][]float32 { v := s(t); slices.Reverse(v); return v })
	vectors("embed.order", "all of the first", func(t []string, s func([]string) [][]float32) [][]float32 {
		v := s(t)
		for i := range v {
			v[i] = v[0]
		}
		return v
	})
	vectors("cancel.embed", "goes on", func(t []string, s func([]string) [][]float32) [][]float32 { return s(t) })
	out[len(out)-1].find = func(t *testing.T, only ...conformance.Option) []conformance.Finding {
		t.Helper()
		return conformance.ExamineEmbedder(t, func(testing.TB) core.Embedder {
			return &hashed{embed: func(_ context.Context, texts []string, sound func([]string) [][]float32) ([][]float32, error) {
				return sound(texts), nil
			}}
		}, append(opts("cancel.embed"), only...)...)
	}
	refuses := func(name string, bad func(string) bool) {
		embedder("embed.long", name, func() *hashed {
			return &hashed{embed: func(ctx context.Context, texts []string, sound func([]string) [][]float32) ([][]float32, error) {
				if slices.ContainsFunc(texts, bad) {
					return nil, core.ErrInvalid
				}
				return sound(texts), ctx.Err()
			}}
		})
	}
	refuses("refuses more than 8 KiB", func(s string) bool { return len(s) > 8<<10 })
	refuses("refuses what is no UTF-8", func(s string) bool { return !utf8.ValidString(s) })
	for _, most := range []int{12_000, 20_000, 200_000} {
		embedder("embed.long", fmt.Sprintf("one number more from %d bytes on", most), func() *hashed {
			return &hashed{embed: func(ctx context.Context, texts []string, sound func([]string) [][]float32) ([][]float32, error) {
				v := sound(texts)
				for i := range v {
					if len(texts[i]) > most {
						v[i] = append(v[i], 0)
					}
				}
				return v, ctx.Err()
			}}
		})
	}
	refuses("refuses NUL", func(s string) bool { return strings.Contains(s, "\x00") })
	embedder("embed.cut", "looks at its context beforehand alone", func() *hashed {
		return &hashed{embed: func(ctx context.Context, texts []string, sound func([]string) [][]float32) ([][]float32, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			time.Sleep(2 * long)
			return sound(texts), nil
		}}
	})
	embedder("embed.cut", "what is cut short is unavailable", func() *hashed {
		return &hashed{embed: func(ctx context.Context, texts []string, sound func([]string) [][]float32) ([][]float32, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			select {
			case <-ctx.Done():
				return nil, core.ErrUnavailable
			case <-time.After(2 * long):
				return sound(texts), nil
			}
		}}
	})
	embedder("embed.named", "no name", func() *hashed { return &hashed{name: func() string { return "" }} })
	embedder("embed.named", "another name each time", func() *hashed {
		var n atomic.Int64
		return &hashed{name: func() string { return fmt.Sprintf("letters-%d", n.Add(1)) }}
	})
	embedder("embed.concurrent", "busy", func() *hashed {
		var in sync.Mutex
		return &hashed{embed: func(_ context.Context, texts []string, sound func([]string) [][]float32) ([][]float32, error) {
			if !in.TryLock() {
				return nil, errors.New("broken: busy")
			}
			defer in.Unlock()
			time.Sleep(time.Millisecond)
			return sound(texts), nil
		}}
	})
	embedder("embed.pure", "its own vectors", func() *hashed {
		var known sync.Map
		return &hashed{embed: func(_ context.Context, texts []string, sound func([]string) [][]float32) ([][]float32, error) {
			v := sound(texts)
			for i := range v {
				if old, ok := known.LoadOrStore(texts[i], v[i]); ok {
					v[i], _ = old.([]float32)
				}
			}
			return v, nil
		}}
	})

	// A buffer of its own, which the next call writes over.
	for name, fits := range map[string]func(have, need int) bool{
		"one buffer": func(int, int) bool { return true }, "a buffer that is long enough": func(have, need int) bool { return have >= need }, "a buffer of the same length": func(have, need int) bool { return have == need },
		"a buffer for fewer": func(have, need int) bool { return have > need },
	} {
		embedder("embed.pure", name, func() *hashed {
			var mu sync.Mutex
			var buffer [][]float32
			return &hashed{embed: func(ctx context.Context, texts []string, sound func([]string) [][]float32) ([][]float32, error) {
				mu.Lock()
				defer mu.Unlock()
				v := sound(texts)
				if !fits(len(buffer), len(v)) {
					buffer = v
					return v, ctx.Err()
				}
				for i := range min(len(v), len(buffer)) {
					copy(buffer[i], v[i])
					v[i] = buffer[i]
				}
				buffer = append(buffer, v[min(len(v), len(buffer)):]...)
				return v, ctx.Err()
			}}
		})
	}

	completer := func(id, name string, f func() completes) {
		out = append(out, broken{class: "completer: " + id, name: name, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
			t.Helper()
			return conformance.ExamineCompleter(t, func(testing.TB) core.Completer { return f() }, append(opts(id), only...)...)
		}})
	}
	completer("complete.answers", "negative figures", func() completes {
		return func(ctx context.Context, req core.CompletionRequest, s core.Completer) (core.Completion, error) {
			c, err := s.Complete(ctx, req)
			c.InputTokens = -1
			return c, err
		}
	})
	completer("complete.answers", "refuses what is not ASCII", func() completes {
		return func(ctx context.Context, req core.CompletionRequest, s core.Completer) (core.Completion, error) {
			if utf8.RuneCountInString(req.Prompt) < len(req.Prompt) {
				return core.Completion{}, core.ErrInvalid
			}
			return s.Complete(ctx, req)
		}
	})
	completer("complete.bare", "a bound is needed", func() completes {
		return func(ctx context.Context, req core.CompletionRequest, s core.Completer) (core.Completion, error) {
			if req.MaxTokens <= 0 {
				return core.Completion{}, core.ErrInvalid
			}
			return s.Complete(ctx, req)
		}
	})
	completer("complete.bare", "an endless prompt in its error", func() completes {
		return func(ctx context.Context, req core.CompletionRequest, s core.Completer) (core.Completion, error) {
			if len(req.Prompt) > 8000 {
				return core.Completion{}, fmt.Errorf("broken: too long: %q", req.Prompt)
			}
			return s.Complete(ctx, req)
		}
	})
	completer("complete.cancel", "goes on", func() completes {
		return func(ctx context.Context, req core.CompletionRequest, s core.Completer) (core.Completion, error) {
			return s.Complete(context.WithoutCancel(ctx), req)
		}
	})
	completer("complete.cancel", "the prompt in an error", func() completes {
		return func(ctx context.Context, req core.CompletionRequest, s core.Completer) (core.Completion, error) {
			c, err := s.Complete(ctx, req)
			if err != nil {
				err = fmt.Errorf("asked %q: %w", req.Prompt, err)
			}
			return c, err
		}
	})
	completer("complete.cut", "looks at its context beforehand alone", func() completes {
		return func(ctx context.Context, req core.CompletionRequest, s core.Completer) (core.Completion, error) {
			if err := ctx.Err(); err != nil {
				return core.Completion{}, err
			}
			time.Sleep(2 * long)
			return s.Complete(context.WithoutCancel(ctx), req)
		}
	})
	shortened := func(name string, as func(req core.CompletionRequest, err error) error) {
		completer("complete.cut", name, func() completes {
			return func(ctx context.Context, req core.CompletionRequest, s core.Completer) (core.Completion, error) {
				if err := ctx.Err(); err != nil {
					return core.Completion{}, err
				}
				select {
				case <-ctx.Done():
					return core.Completion{}, as(req, ctx.Err())
				case <-time.After(2 * long):
					return s.Complete(ctx, req)
				}
			}
		})
	}
	shortened("the prompt in the error of what is cut short", func(req core.CompletionRequest, err error) error {
		return fmt.Errorf("asked %q: %w", req.Prompt, err)
	})
	shortened("the system text in the error of what is cut short", func(req core.CompletionRequest, err error) error {
		return fmt.Errorf("told %q: %w", req.System, err)
	})
	shortened("what is cut short is unavailable", func(core.CompletionRequest, error) error { return core.ErrUnavailable })
	shortened("what is cut short is an answer", func(core.CompletionRequest, error) error { return nil })
	completer("complete.bound", "no bound", func() completes {
		return func(ctx context.Context, req core.CompletionRequest, s core.Completer) (core.Completion, error) {
			req.MaxTokens = 0
			return s.Complete(ctx, req)
		}
	})
	completer("complete.bound", "a bound of at least sixteen", func() completes {
		return func(ctx context.Context, req core.CompletionRequest, s core.Completer) (core.Completion, error) {
			req.MaxTokens = max(req.MaxTokens, 16)
			return s.Complete(ctx, req)
		}
	})
	completer("complete.bound", "twice the bound", func() completes {
		return func(ctx context.Context, req core.CompletionRequest, s core.Completer) (core.Completion, error) {
			req.MaxTokens *= 2
			return s.Complete(ctx, req)
		}
	})
	completer("complete.model", "another question's model stays", func() completes {
		var mu sync.Mutex
		own := "model"
		return func(ctx context.Context, req core.CompletionRequest, s core.Completer) (core.Completion, error) {
			mu.Lock()
			defer mu.Unlock()
			own = cmp.Or(req.Model, own)
			c, err := s.Complete(ctx, req)
			c.Model = own
			return c, err
		}
	})
	completer("complete.model", "a model that is unknown stays", func() completes {
		var bad atomic.Bool
		return func(ctx context.Context, req core.CompletionRequest, s core.Completer) (core.Completion, error) {
			if req.Model != "" || bad.Load() {
				bad.Store(true)
				return core.Completion{}, fmt.Errorf("broken: no such model: %w", core.ErrInvalid)
			}
			return s.Complete(ctx, req)
		}
	})
	completer("complete.concurrent", "the answer to the last question", func() completes {
		var last atomic.Value
		return func(ctx context.Context, req core.CompletionRequest, s core.Completer) (core.Completion, error) {
			last.Store(req.Prompt)
			time.Sleep(time.Millisecond)
			req.Prompt, _ = last.Load().(string)
			return s.Complete(ctx, req)
		}
	})
	completer("complete.concurrent", "busy", func() completes {
		var in sync.Mutex
		return func(ctx context.Context, req core.CompletionRequest, s core.Completer) (core.Completion, error) {
			if !in.TryLock() {
				return core.Completion{}, core.ErrUnavailable
			}
			defer in.Unlock()
			time.Sleep(time.Millisecond)
			return s.Complete(ctx, req)
		}
	})
	return out
}

// long is how long what takes long takes.
const long = 15 * time.Millisecond

// realCount depends on more of a text than its length, as real counters do.
func realCount(s string) int {
	n := 0
	for _, r := range s {
		if r == ' ' || r > 127 {
			n++
		}
	}
	return cheap(s) + n
}

// countOf counts the bytes of a text that are none.
func countOf(s string) int {
	n := 0
	for _, r := range s {
		if r == utf8.RuneError {
			n++
		}
	}
	return n
}
