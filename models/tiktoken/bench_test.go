package tiktoken

import (
	"strings"
	"testing"
)

const (
	benchChat = "Could you look at why the nightly job failed? It says \"connection reset\" after 30 s, " +
		"and the retry in run.go line 212 never fires. I'd rather not raise the timeout again; last week it hid a real leak. " +
		"The log is in /tmp/job.log (about 4 MB). Thanks — and please keep the change small, we ship on Friday! " +
		"Anna can review it tomorrow before noon, she knows the scheduler best."
	benchJSON = `{"id": "call_7Hq2", "type": "function", "function": {"name": "search_flights", "arguments": ` +
		`"{\"origin\": \"HAM\", \"destination\": \"LIS\", \"date\": \"2024-05-17\", \"max_stops\": 1}"}},` + "\n" +
		`{"results": [{"flight": "XY1042", "price": 187.5, "seats": 12, "departs": "2024-05-17T06:40:00+02:00"}, ` +
		`{"flight": "XY0077", "price": 214.0, "seats": null, "departs": "2024-05-17T13:05:00+02:00"}], "partial": false}`
	benchCode = "func (s *Shelf) Put(ctx context.Context, id string, data []byte) error {\n" +
		"\tif err := ctx.Err(); err != nil {\n\t\treturn fmt.Errorf(\"shelf: put %q: %w\", id, err)\n\t}\n\n" +
		"\ts.mu.Lock()\n\tdefer s.mu.Unlock()\n\tif _, found := s.items[id]; found {\n\t\treturn ErrConflict // keep the first\n\t}\n" +
		"\ts.items[id] = slices.Clone(data)\n\ts.size += int64(len(data))\n\treturn nil\n}\n"
	benchCJK = "昨天的夜间任务又失败了，日志里说连接被重置。我不想再把超时时间调大，上周那样做掩盖了真正的泄漏问题。" +
		"昨夜のバッチ処理がまた失敗しました。再試行の設定を確認していただけますか？어젯밤 작업이 다시 실패했습니다. 로그를 확인해 주세요."
)

// BenchmarkCount counts with this package and with the library, side by side.
func BenchmarkCount(b *testing.B) {
	c, err := New(DefaultEncoding)
	if err != nil {
		b.Fatal(err)
	}
	r := referenceOf(b, DefaultEncoding)
	for _, bench := range []struct{ name, text string }{
		{"chat", benchChat},
		{"JSON", benchJSON},
		{"code", benchCode},
		{"CJK", benchCJK},
		{"hindi", strings.Repeat("कल रात का काम फिर विफल हो गया। ", 10)},
		{"chat1MiB", strings.Repeat(benchChat+"\n", 1<<20/(len(benchChat)+1))},
		{"letters100k", strings.Repeat("a", 100_000)},
		{"blanks100k", strings.Repeat(" ", 100_000)},
		{"mixed100k", strings.Repeat("qzjxkvbw", 12_500)},
	} {
		for label, count := range map[string]func(string) int{"tiktoken": c.Count, "library": r.count} {
			b.Run(bench.name+"/"+label, func(b *testing.B) {
				b.SetBytes(int64(len(bench.text)))
				b.ReportAllocs()
				for b.Loop() {
					count(bench.text)
				}
			})
		}
	}
}

// BenchmarkRealTexts counts all texts of the measurement data once in each round.
func BenchmarkRealTexts(b *testing.B) {
	c, err := New(DefaultEncoding)
	if err != nil {
		b.Fatal(err)
	}
	r := referenceOf(b, DefaultEncoding)
	var texts []string
	size := 0
	realTexts(b, func(text string) {
		texts = append(texts, text)
		size += len(text)
	})
	for label, count := range map[string]func(string) int{"tiktoken": c.Count, "library": r.count} {
		b.Run(label, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for _, text := range texts {
					count(text)
				}
			}
		})
	}
}

// BenchmarkLoad loads the vocabulary anew in each round.
func BenchmarkLoad(b *testing.B) {
	b.Run("tiktoken", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := build(DefaultEncoding, o200kRule); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := newReference(DefaultEncoding, o200kWords); err != nil {
				b.Fatal(err)
			}
		}
	})
}
