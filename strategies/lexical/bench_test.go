package lexical_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/cputime"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// synthetic makes entries of so many words, with words as unevenly spread as in a language, and the bytes of their text.
func synthetic(n, words int) (entries []core.Entry, size int) {
	rng := rand.New(rand.NewPCG(3, 4))
	zipf := rand.NewZipf(rng, 1.1, 20, 30_000)
	entries = make([]core.Entry, n)
	for i := range entries {
		var b strings.Builder
		for range words/2 + rng.IntN(words) {
			fmt.Fprintf(&b, "w%xq ", zipf.Uint64())
		}
		entries[i] = entry(fmt.Sprintf("entry%021d", i), fmt.Sprintf("s%d", i/200), int64(i), b.String())
		entries[i].Time = noon.Add(time.Duration(i) * time.Minute)
		size += b.Len()
	}
	return entries, size
}

// processor begins to measure processor time, which says the same on a busy machine; what it returns reports it.
func processor(b *testing.B) func() {
	b.Helper()
	begun := cputime.Used(b)
	return func() { b.ReportMetric(float64((cputime.Used(b)-begun).Nanoseconds())/float64(b.N), "cpu-ns/op") }
}

// BenchmarkAdd measures one entry of one passage; the index starts over every 20,000.
func BenchmarkAdd(b *testing.B) {
	entries, _ := synthetic(20_000, 24)
	b.ReportAllocs()
	var x *lexical.Index
	for i := 0; b.Loop(); i++ {
		if i%len(entries) == 0 {
			x = newIndex(b, &listStore{})
			if err := x.Load(b.Context(), "ada"); err != nil {
				b.Fatal(err)
			}
		}
		if err := x.Appended(b.Context(), entries[i%len(entries):][:1]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSearch measures queries of eight words, in passages of one entry each; with 50 hits, which are fetched.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000, 370_000} {
		b.Run(fmt.Sprintf("passages=%d", n), func(b *testing.B) {
			entries, _ := synthetic(n, 24)
			x := newIndex(b, newMapStore(entries))
			if err := x.Load(b.Context(), "ada"); err != nil {
				b.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(5, 6))
			queries := make([]string, 64)
			for i := range queries {
				words := strings.Fields(entries[rng.IntN(n)].Text())
				queries[i] = strings.Join(words[:8], " ")
			}
			b.ReportAllocs()
			defer processor(b)()
			for i := 0; b.Loop(); i++ {
				q := core.SearchQuery{Scope: core.Scope{Agent: "ada"}, Text: queries[i%len(queries)], Limit: 50}
				if _, err := x.Search(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkQuestions measures the questions of the development chats over their messages, and over copies of them in which every fifth word is
// another one.
func BenchmarkQuestions(b *testing.B) {
	for _, n := range []int{1_050, 38_000} {
		entries, questions := chats(b, n)
		x := newIndex(b, newMapStore(entries))
		if err := x.Load(b.Context(), "ada"); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("passages=%d", lexical.Passages(x, "ada")), func(b *testing.B) {
			b.ReportAllocs()
			defer processor(b)()
			for i := 0; b.Loop(); i++ {
				if err := lexical.Rank(b.Context(), x, "ada", questions[i%len(questions)], 50); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRestore measures what the first search after a start waits for: reading an index of 100,000 entries of 60 words from its file.
func BenchmarkRestore(b *testing.B) {
	entries, text := synthetic(100_000, 60)
	x := newIndex(b, newMapStore(entries))
	if err := x.Load(b.Context(), "ada"); err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "image")
	if err := lexical.WriteImage(x, "ada", path); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := lexical.ReadImage(path); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(info.Size())/float64(text), "file/text")
	b.ReportMetric(float64(lexical.Bytes(x, "ada"))/float64(text), "memory/text")
}

// BenchmarkMemory measures what the index takes of 100,000 entries that were added one after the other, as a multiple of their text, which has
// no more than the words in it: about 5.6 bytes each.
func BenchmarkMemory(b *testing.B) {
	for _, words := range []int{60, 24} {
		b.Run(fmt.Sprintf("words=%d", words), func(b *testing.B) {
			entries, text := synthetic(100_000, words)
			store := newMapStore(entries)
			for b.Loop() {
				x := newIndex(b, store)
				if err := x.Load(b.Context(), "ada"); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(lexical.Bytes(x, "ada"))/float64(text), "memory/text")
			}
			b.ReportMetric(float64(text)/float64(len(entries)), "text-bytes")
		})
	}
}

// chats returns n messages made of the development chats, and their questions.
func chats(b *testing.B, n int) (entries []core.Entry, questions []string) {
	b.Helper()
	var all [][]string
	for c := 2; c <= 20; c += 2 {
		var batches []struct {
			Turns [][]struct{ Role, Content string }
		}
		var probes map[string][]struct{ Question string }
		readData(b, &batches, fmt.Sprintf("beam/%d/chat.json", c))
		readData(b, &probes, fmt.Sprintf("beam/%d/pq.json", c))
		for _, batch := range batches {
			for _, group := range batch.Turns {
				for _, turn := range group {
					all = append(all, strings.SplitAfter(turn.Content, " "))
				}
			}
		}
		for _, kind := range probes {
			for _, p := range kind {
				questions = append(questions, p.Question)
			}
		}
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for i := range n {
		var text strings.Builder
		for j, w := range all[i%len(all)] {
			if other := all[rng.IntN(len(all))]; i >= len(all) && j%5 == 0 {
				w = other[rng.IntN(len(other))]
			}
			text.WriteString(w)
		}
		e := entry(fmt.Sprintf("entry%021d", i), fmt.Sprintf("s%d", i/50), int64(i), text.String())
		entries = append(entries, e)
	}
	return entries, questions
}
