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
func Text(q core.Query, l Limits) string {
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
		half := l.PromptChars / 2
		return Head(prompt, half) + "\n" + tail(prompt, half)
	}
	if len(prompt) >= l.ShortPrompt {
		return prompt
	}
	room := l.ContextChars
	for _, role := range []message.Role{message.Assistant, message.User} {
		for _, e := range slices.Backward(rest) {
			text := spoken(e, role)
			if text == "" || text == strings.TrimSpace(q.Prompt) {
				continue
			}
			text = Head(text, room)
			room -= len(text)
			prompt += "\n" + text
			break
		}
	}
	return strings.TrimSpace(prompt)
}

// spoken returns the text of an entry that someone in that role said in the conversation.
func spoken(e core.Entry, role message.Role) string {
	if e.Role != role || e.Type != core.TypeMessage {
		return ""
	}
	return strings.TrimSpace(e.Text())
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
