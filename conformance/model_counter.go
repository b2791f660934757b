package conformance

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

func counterChecks() []Check {
	return []Check{
		{ID: "count.number", Promise: 1, Suite: SuiteCounter, model: countNumber,
			Rule: "a count is 0 for no text and at least 1 for any other"},
		{ID: "count.any", Promise: 9, Suite: SuiteCounter, model: countAny, once: true,
			Rule: "any bytes are a text: none of them make a counter panic or hang, and none is free"},
		{ID: "count.pure", Promise: 6, Suite: SuiteCounter, model: countPure,
			Rule: "the same text costs the same, whatever was counted before, and whichever of two counters is asked"},
		{ID: "count.concurrent", Promise: 6, Suite: SuiteCounter, model: countConcurrent,
			Rule: "several texts at the same time cost what each of them costs alone"},
		{ID: "count.grows", Promise: 1, Suite: SuiteCounter, model: countGrows,
			Rule: "a text that goes on and on costs more and more"},
		{ID: "count.long", Promise: 1, Suite: SuiteCounter, model: countLong, once: true,
			Rule: "a text of any length costs more than its first half, and a long one that is much the same all through costs in proportion"},
		{ID: "count.alike", Promise: 6, Suite: SuiteCounter, model: countAlike, once: true,
			Rule: "texts of the same length, beginning and end cost what each of them costs alone, and thousands of texts later the same"},
	}
}

// quoteShort quotes the beginning of a text.
func quoteShort(s string) string {
	const shown = 60
	if len(s) <= shown {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q and %d bytes more", s[:shown], len(s)-shown)
}

// number describes what is wrong with the count of a text, if anything.
func (r *modelRun) number(s string) string {
	n := r.count(s)
	if n < 0 || (n == 0) != (s == "") {
		return fmt.Sprintf("%s costs %d tokens", quoteShort(s), n)
	}
	return ""
}

func countNumber(r *modelRun) string {
	for _, s := range append(slices.Clone(r.texts), "", " ", "\n") {
		if text := r.number(s); text != "" {
			return text
		}
	}
	return ""
}

// specialTokens are what encodings and models keep for themselves. In a message they are text like any other.
var specialTokens = []string{
	"<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|begin_of_text|>", "<s>", "</s>", "<pad>", "<unk>",
	"[INST]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "<|endoftext|><|endoftext|>",
}

func countAny(r *modelRun) string {
	texts := append(prompts(), strings.Repeat("\xff", 5000), strings.Repeat("ab", 100000), strings.Repeat(" ", 70000), strings.Repeat("\n", 9000), strings.Repeat("🏳️‍🌈", 4000), "\xe4\xb8", "\xed\xa0\x80")
	texts = append(texts, specialTokens...)
	for b := range 256 {
		texts = append(texts, string([]byte{byte(b)}))
	}
	for _, s := range texts {
		if text := r.number(s); text != "" {
			return text
		}
	}
	return ""
}

func countPure(r *modelRun) string {
	var first []int
	for _, s := range r.texts {
		first = append(first, r.count(s))
	}
	other := &modelRun{tb: r.tb, watch: r.watch}
	r.open(other)
	for round := range 3 {
		for i := range r.texts {
			at := i
			if round == 1 {
				at = len(r.texts) - 1 - i
			}
			// A copy: what is the same text need not be the same memory.
			if n := r.count(strings.Clone(r.texts[at])); n != first[at] {
				return fmt.Sprintf("%s costs %d tokens, then %d", quoteShort(r.texts[at]), first[at], n)
			}
			if n := other.count(r.texts[at]); n != first[at] {
				return fmt.Sprintf("%s costs %d tokens, another counter says %d", quoteShort(r.texts[at]), first[at], n)
			}
		}
	}
	return ""
}

func countConcurrent(r *modelRun) string {
	want := map[string]int{}
	for _, s := range r.texts {
		want[s] = r.count(s)
	}
	return atOnce(8, func(i int) string {
		for n := range 6 * len(r.texts) {
			s := r.texts[(n*(i+1)+i)%len(r.texts)]
			if got := r.count(s); got != want[s] {
				return fmt.Sprintf("%s costs %d tokens, while others are counted %d", quoteShort(s), want[s], got)
			}
		}
		return ""
	})
}

func countGrows(r *modelRun) string {
	for _, s := range r.texts {
		if strings.TrimSpace(s) == "" || len(s) > 2000 {
			continue // a run of spaces may be a token
		}
		last := 0
		for _, times := range []int{1, 16, 256} {
			n := r.count(strings.Repeat(s+" the budget report\n", times))
			if n <= last {
				return fmt.Sprintf("%s %d times over costs %d tokens, fewer times %d", quoteShort(s), times, n, last)
			}
			last = n
		}
	}
	return ""
}

// longest is how much text a counter is asked for, and from even bytes on a text costs in proportion: twice as much is at least twice the cost, allowing for estimates.
const (
	longest = 900_000
	even    = 20_000
	twice   = 1.6
)

// countLong counts beginnings of one text, each less than half of the next.
func countLong(r *modelRun) string {
	for _, kind := range []textKind{textPlain, textCode, textCJK, textEmoji, textDense} {
		whole := makeText("long", kind, 60000, 0, nil)
		whole += strings.Repeat(whole, longest/len(whole))
		last, before := 0, 0
		for _, n := range []int{900, 2000, 4200, 9000, 20000, 45000, 95000, 200000, 420000, longest} {
			for !utf8.RuneStart(whole[n]) {
				n--
			}
			tokens := r.count(whole[:n])
			if tokens <= last {
				return fmt.Sprintf("%d bytes of a %s text cost %d tokens, the first %d of them %d", n, kind, tokens, before, last)
			}
			if before >= even && float64(tokens) < twice*float64(last) {
				return fmt.Sprintf("%d bytes of a %s text that is the same all through cost %d tokens, the first %d of them %d", n, kind, tokens, before, last)
			}
			last, before = tokens, n
		}
	}
	return ""
}

// manyTexts are counted before the first ones are counted again.
const manyTexts = 2500

// countAlike counts texts that differ in their middle alone, each with a counter that knows none of the others, and all of them with one counter.
func countAlike(r *modelRun) string {
	const around = 300
	head, tail := makeText("head", textPlain, around, 1, nil), makeText("tail", textPlain, around, 2, nil)
	var texts []string
	for _, middle := range []string{ // of 96 bytes each
		strings.Repeat("a", 96), strings.Repeat("%&~^\n\t", 16), strings.Repeat("数据库", 10) + "abcdef", strings.Repeat(" the word", 10) + "s done", strings.Repeat("9f8e7d", 16),
	} {
		texts = append(texts, middle, middle+tail, head+middle, head+middle+tail)
	}
	// What a memory must not take for the same.
	texts = append(texts, tail, "\n\n\n"+tail, tail+" \t \t ", strings.ReplaceAll(tail, " ", " \n "), strings.ToUpper(tail), tail+"\xff\xfe\xff\xfe\xff")
	alone := make([]int, len(texts))
	for i, s := range texts {
		fresh := &modelRun{tb: r.tb, watch: r.watch}
		r.open(fresh)
		alone[i] = fresh.count(s)
	}
	again := func(when string) string {
		for i, s := range texts {
			if n := r.count(s); n != alone[i] {
				return fmt.Sprintf("a text of %d bytes, the end of it %q, costs %d tokens alone, and %d %s", len(s), s[max(len(s)-20, 0):], alone[i], n, when)
			}
		}
		return ""
	}
	if text := again("after others of its length"); text != "" {
		return text
	}
	for i := range manyTexts {
		if text := r.number(makeText(markOf(7, i), textPlain, 3, i, nil)); text != "" {
			return text
		}
	}
	return again(fmt.Sprintf("after %d others", manyTexts))
}
