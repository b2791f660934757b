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

// refusal is what a server says about a request that it does not accept.
type refusal struct {
	// text names fields and why they were refused; empty when the server does not say, or when it quotes what it was sent.
	text string
	// most is the largest limit the server accepts, 0 when it does not say.
	most int
	// extra says that the server does not know a field.
	extra bool
}

// problem is one element of the detail of a FastAPI server.
type problem struct {
	Type string            `json:"type"`
	Loc  []json.RawMessage `json:"loc"`
	Msg  string            `json:"msg"`
	Ctx  struct {
		Le json.Number `json:"le"`
	} `json:"ctx"`
}

// readRefusal reads the answer to a request that was refused, without the input it echoes.
func readRefusal(body, sent []byte, key string) refusal {
	var answer struct {
		Detail []json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return refusal{}
	}
	var r refusal
	var out []string
	for _, raw := range answer.Detail[:min(len(answer.Detail), maxDetails)] {
		var p problem
		if json.Unmarshal(raw, &p) != nil {
			p.Ctx.Le = "" // of another kind; the rest is read
		}
		field := p.field()
		r.extra = r.extra || p.Type == "extra_forbidden" || field == "body.source"
		if n, err := p.Ctx.Le.Int64(); err == nil && n > 0 && n <= maxLimit && strings.HasSuffix(field, ".limit") {
			r.most = int(n)
		}
		text := printable(field + ": " + builtIn(p.Msg))
		if text != ": " && !repeats(text, sent, key) {
			out = append(out, text)
		}
	}
	r.text = strings.Join(out, "; ")
	return r
}

// field returns the path of the field. Elements that are not plain names may be keys of what was sent or stored.
func (p problem) field() string {
	var loc []string
	for _, raw := range p.Loc {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			s = string(raw) // an index
		}
		if s == "" || len(s) > 40 || strings.ContainsFunc(s, func(r rune) bool { return r != '_' && !isAlnum(r) }) {
			s = "?"
		}
		loc = append(loc, s)
	}
	return strings.Join(loc, ".")
}

func isAlnum(r rune) bool {
	return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// builtIn returns a message of the server's framework as it is, and only the beginning of others: those may quote what they were
// given, or what is stored.
func builtIn(msg string) string {
	for _, own := range []string{"Value error", "Assertion failed"} {
		if strings.HasPrefix(msg, own) {
			return own
		}
	}
	for _, known := range []string{
		"Field required", "Input should be ", "String should ", "List should ", "Dictionary should ", "Data should ",
		"Extra inputs are not permitted", "JSON decode error", "Value should ", "Object has no attribute",
	} {
		if strings.HasPrefix(msg, known) {
			return msg
		}
	}
	if msg == "" {
		return ""
	}
	return "refused"
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
