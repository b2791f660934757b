package semantic

import (
	"strings"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// queryText says what to look for: the prompt, or the newest user message where there is none. A prompt that is too short to stand
// alone ("yes, do that") is filled up to contextChars bytes with what was said last, the assistant before the user.
// Of prompts longer than promptChars the beginning and the end count.
func queryText(q core.Query, promptChars, contextChars int) string {
	prompt := strings.TrimSpace(q.Prompt)
	rest := q.Recent
	if prompt == "" {
		for i := len(rest) - 1; i >= 0; i-- {
			if prompt = spoken(rest[i], message.User); prompt != "" {
				rest = rest[:i]
				break
			}
		}
	}
	if len(prompt) > promptChars {
		half := promptChars / 2
		return head(prompt, half) + "\n" + tail(prompt, half)
	}
	for _, role := range []message.Role{message.Assistant, message.User} {
		for i := len(rest) - 1; i >= 0; i-- {
			text := spoken(rest[i], role)
			if text == "" || text == strings.TrimSpace(q.Prompt) {
				continue
			}
			if room := contextChars - len(prompt); room > 0 {
				prompt += "\n" + head(text, room)
			}
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
