package summary

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting"
)

// The causes for which an answer is dropped.
const (
	causeEmpty   = "empty answer"
	causeRefusal = "refusal"
	causeLonger  = "longer than the source"
	causeGarbage = "garbage"
)

// leastAnswer is what an answer has to say, in tokens.
const leastAnswer = 4

// reasoning is what some models write before their answer.
var reasoning = regexp.MustCompile(`(?s)^\s*<(think|thinking|analysis|reasoning)>.*?</(think|thinking|analysis|reasoning)>`)

// accept returns the usable text of an answer within q's limit, or why there is none.
func (w *work) accept(a core.Completion, q question) (text, cause string) {
	if !plausible(a.Text) {
		return "", causeGarbage
	}
	text = strings.TrimSpace(reasoning.ReplaceAllString(clean(a.Text), ""))
	switch {
	case text == "":
		return "", causeEmpty
	case refused(a.StopReason, text):
		return "", causeRefusal
	}
	n := w.c.Count(text)
	switch {
	case n >= q.sourceTokens:
		return "", causeLonger
	case n*400 < q.sourceTokens || n < leastAnswer && q.sourceTokens > leastCost:
		return "", causeEmpty // "Done." for an hour of work
	case n > q.limit:
		text = compacting.Clip(text, q.limit, w.c.Count)
	}
	if strings.TrimSpace(text) == "" {
		return "", causeEmpty
	}
	return text, ""
}

// refused recognises an answer that is about the task and not about the source. Long answers that begin with an apology are
// summaries of one.
func refused(stop, text string) bool {
	switch strings.ToLower(stop) {
	case "content_filter", "refusal", "safety":
		return true
	}
	if len(text) > 600 {
		return false
	}
	head := strings.ToLower(strings.ReplaceAll(text, "’", "'"))
	for _, opening := range []string{
		"i'm sorry", "i am sorry", "sorry,", "i cannot", "i can't", "i can not", "i'm unable", "i am unable", "i'm not able", "i am not able",
		"i won't", "i will not", "as an ai", "unfortunately, i", "i apologize", "i must decline",
	} {
		if strings.HasPrefix(head, opening) {
			return true
		}
	}
	return false
}

// plausible reports whether text looks like something a person could read: valid, mostly letters and digits, and not
// the same few words over and over.
func plausible(text string) bool {
	var total, readable, bad int
	for i, r := range text {
		switch {
		case r == utf8.RuneError:
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				bad++
			}
		case unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r':
			bad++
		case unicode.IsSpace(r):
			continue
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			readable++
		}
		total++
	}
	if total == 0 {
		return true // empty, which is told apart elsewhere
	}
	if bad*50 > total || readable*10 < total*4 {
		return false
	}
	words := strings.Fields(text)
	if len(words) < 60 {
		return true
	}
	distinct := make(map[string]struct{}, len(words))
	for _, word := range words {
		distinct[word] = struct{}{}
	}
	return len(distinct)*12 > len(words)
}
