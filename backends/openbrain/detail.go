package openbrain

import (
	"encoding/json"
	"strings"
	"unicode"
)

const (
	maxDetails   = 3
	maxDetail    = 160
	maxLeakCheck = 64 << 10
	leakWindow   = 12
)

// validationDetail names the fields a FastAPI server refused, and why, without the input it echoes. It is empty
// when the body does not say, or when what it says repeats what was sent.
func validationDetail(body, sent []byte, key string) string {
	var answer struct {
		Detail []struct {
			Loc []json.RawMessage `json:"loc"`
			Msg string            `json:"msg"`
		} `json:"detail"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	var out []string
	for _, d := range answer.Detail[:min(len(answer.Detail), maxDetails)] {
		var loc []string
		for _, raw := range d.Loc {
			var s string
			if json.Unmarshal(raw, &s) != nil {
				s = string(raw) // an index
			}
			loc = append(loc, s)
		}
		text := printable(strings.Join(loc, ".") + ": " + builtIn(d.Msg))
		if text != ": " && !repeats(text, sent, key) {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}

// builtIn cuts a message of the server's own validators short: unlike those of its framework, they may quote what they
// were given, or what is stored.
func builtIn(msg string) string {
	for _, own := range []string{"Value error", "Assertion failed"} {
		if strings.HasPrefix(msg, own) {
			return own
		}
	}
	return msg
}

// repeats reports whether text holds the key or a piece of what was sent.
func repeats(text string, sent []byte, key string) bool {
	if key != "" && strings.Contains(text, key) {
		return true
	}
	body := string(sent[:min(len(sent), maxLeakCheck)])
	for i := 0; i+leakWindow <= len(text); i++ {
		if strings.Contains(body, text[i:i+leakWindow]) {
			return true
		}
	}
	return false
}

// printable cuts s to a length fit for an error and drops what does not belong into one.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	return clip(s, maxDetail)
}
