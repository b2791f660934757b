package hybrid

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// queryText says what to look for: the prompt, or the newest user message where there is none. A prompt too short to stand alone
// ("yes, do that") is completed by what was said last, the assistant before the user. Longer ones are not: on long
// conversations a single unrelated sentence behind a question costs a third of what it would find.
// Of prompts longer than cfg.PromptChars the beginning and the end count.
func queryText(q core.Query, cfg Config) string {
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
	if len(prompt) > cfg.PromptChars {
		half := cfg.PromptChars / 2
		return head(prompt, half) + "\n" + tail(prompt, half)
	}
	if len(prompt) >= cfg.ShortPrompt {
		return prompt
	}
	room := cfg.ContextChars
	for _, role := range []message.Role{message.Assistant, message.User} {
		for _, e := range slices.Backward(rest) {
			text := spoken(e, role)
			if text == "" || text == strings.TrimSpace(q.Prompt) {
				continue
			}
			text = head(text, room)
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

// head returns at most n bytes from the beginning of s, and tail from its end; neither splits a character.
func head(s string, n int) string {
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
