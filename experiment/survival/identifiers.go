package survival

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// word matches what can be an identifier, before isIdentifier looks at it.
var word = regexp.MustCompile(`[A-Za-z0-9_./@~+:#-]{4,}`)

var (
	marked = regexp.MustCompile(`[0-9_/.@]`)
	camel  = regexp.MustCompile(`[a-z][A-Z]`)
	letter = regexp.MustCompile(`[A-Za-z]`)
	// number is an order number, a phone number, a date: digits that stand for something.
	number = regexp.MustCompile(`^[0-9][0-9-]{4,}[0-9]$`)
)

// Identifiers returns the distinct ids, paths and symbols of text, in order: words of at least four characters with a letter and a
// digit, underscore, slash, dot or at sign, or with a capital inside; and numbers of six digits and more.
func Identifiers(text string) []string {
	var out []string
	seen := make(map[string]bool)
	for _, w := range word.FindAllString(text, -1) {
		w = strings.Trim(w, ".:,#-+")
		if len(w) < 4 || len(w) > 160 || seen[w] || !identifier(w) {
			continue
		}
		seen[w] = true
		out = append(out, w)
	}
	return out
}

func identifier(w string) bool {
	if !letter.MatchString(w) {
		return number.MatchString(w)
	}
	return marked.MatchString(w) || camel.MatchString(w)
}

// said returns everything a message says: texts, results, and the arguments of calls both as they are written and decoded.
func said(m message.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		switch p.Kind {
		case message.Text, message.ToolResult:
			b.WriteString(p.Text + "\n")
		case message.ToolCall:
			b.WriteString(p.Name + "\n" + p.Args + "\n")
			for _, s := range Arguments(p.Args) {
				b.WriteString(s + "\n")
			}
		}
	}
	return b.String()
}

// Arguments returns the strings and numbers in the arguments of a call, by key.
func Arguments(args string) []string {
	var v any
	dec := json.NewDecoder(strings.NewReader(args))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return []string{args}
	}
	return flatten(nil, v)
}

func flatten(out []string, v any) []string {
	switch v := v.(type) {
	case string:
		return append(out, v)
	case json.Number:
		return append(out, v.String())
	case []any:
		for _, e := range v {
			out = flatten(out, e)
		}
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			out = flatten(out, v[k])
		}
	}
	return out
}

// Needed returns the identifiers that are needed behind a cut: in the arguments of a later call, said before the cut, and not said again before their use.
// An argument of more than longArgs bytes is a text that the agent writes, and not a reference; longArgs 0 takes all.
func Needed(msgs []message.Message, cut, longArgs int) []string {
	var before, since strings.Builder
	for _, m := range msgs[:cut] {
		before.WriteString(said(m))
	}
	old := before.String()
	var out []string
	seen := make(map[string]bool)
	for _, m := range msgs[cut:] {
		for _, call := range m.Calls() {
			for _, arg := range Arguments(call.Args) {
				if longArgs > 0 && len(arg) > longArgs {
					continue
				}
				for _, id := range Identifiers(arg) {
					if seen[id] {
						continue
					}
					if strings.Contains(old, id) && !strings.Contains(since.String(), id) {
						seen[id] = true
						out = append(out, id)
					}
				}
			}
		}
		since.WriteString(said(m))
	}
	return out
}
