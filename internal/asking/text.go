// Package asking turns what a retriever is asked into the text that a searcher is asked.
package asking

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// Limits bound the text, in bytes.
type Limits struct {
	// PromptChars bounds the part that is the prompt.
	PromptChars int
	// ShortPrompt is the length below which a prompt does not stand alone; ContextChars bounds what is then added.
	ShortPrompt, ContextChars int
}

// Text says what to look for: the prompt, or the newest user message where there is none. A prompt too short to stand alone
// ("yes, do that") is completed by what was said last, the assistant before the user. Longer ones are not: on long
// conversations a single unrelated sentence behind a question costs a third of what it would find.
// Of prompts longer than l.PromptChars the beginning and the end count.
//
// What the prompt says about time ("last Tuesday") is added as the dates it means at q.Now, and their months, see [Dates]; without such
// an expression nothing is.
func Text(q core.Query, l Limits) string {
	text := words(q, l)
	if dates := Dates(text.prompt, q.Now); len(dates) > 0 {
		return text.all + "\n" + strings.Join(withMonths(dates), " ")
	}
	return text.all
}

// withMonths adds the months that days are in: who is wrong about the day is mostly right about the month, and what is talked about of a day was
// often said on another.
func withMonths(dates []string) []string {
	out := slices.Clone(dates)
	for _, d := range dates {
		if len(d) == len(dayWord) && !slices.Contains(out, d[:len(monthWord)]) {
			out = append(out, d[:len(monthWord)])
		}
	}
	return out
}

// wording is what is looked for: the prompt, and it with what completes it.
type wording struct{ prompt, all string }

func words(q core.Query, l Limits) wording {
	prompt := strings.TrimSpace(q.Prompt)
	rest := q.Recent
	if prompt == "" {
		for i, e := range slices.Backward(rest) {
			if prompt = spoken(e, message.User); prompt != "" {
				rest = rest[:i]
				break
			}
		}
	}
	if len(prompt) > l.PromptChars {
		prompt = Ends(prompt, l.PromptChars)
		return wording{prompt, prompt}
	}
	if len(prompt) >= l.ShortPrompt {
		return wording{prompt, prompt}
	}
	room, all := l.ContextChars, prompt
	for _, role := range []message.Role{message.Assistant, message.User} {
		for _, e := range slices.Backward(rest) {
			text := spoken(e, role)
			if text == "" || text == strings.TrimSpace(q.Prompt) {
				continue
			}
			text = Head(text, room)
			room -= len(text)
			all += "\n" + text
			break
		}
	}
	return wording{prompt, strings.TrimSpace(all)}
}

// spoken returns the text of an entry that someone in that role said in the conversation.
func spoken(e core.Entry, role message.Role) string {
	if e.Role != role || e.Type != core.TypeMessage {
		return ""
	}
	return strings.TrimSpace(e.Said())
}

// Ends returns the first and the last n/2 bytes of a text that is longer than n.
func Ends(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Head(s, n/2) + "\n" + tail(s, n/2)
}

// Head returns at most n bytes from the beginning of s, and tail from its end; neither splits a character.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := len(s) - n
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}
