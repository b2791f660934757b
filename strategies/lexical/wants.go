package lexical

import "strings"

// wantsOf says whether a passage of what a person said tells what they want in general; alone says that it is all of the message.
func wantsOf(text string, alone bool) (m meta) {
	if alone && isRule(text) {
		m |= ruling
	}
	if strings.Contains(text, "prefer") || strings.Contains(text, "Prefer") {
		m |= wishing
	}
	return m
}

// isRule reports whether a text begins as rules do that hold from now on, in English.
func isRule(text string) bool {
	text = strings.TrimSpace(text)
	if len(text) > len(ruleStarts[0]) && strings.EqualFold(text[:len("please ")], "please ") {
		text = text[len("please "):]
	}
	for _, start := range ruleStarts {
		if len(text) > len(start) && strings.EqualFold(text[:len(start)], start) {
			return true
		}
	}
	return false
}

// ruleStarts has the longest first.
var ruleStarts = []string{"in the future, ", "from now on", "in future, ", "whenever i ", "every time i ", "always ", "never ", "remember to "}

// sides says whose words or deeds a question speaks of, in English and lower case: those of the one who asks, or those of the assistant that is asked.
func sides(lower string) (mine, yours bool) {
	for _, s := range assistants {
		if strings.Contains(lower, s) {
			return false, true
		}
	}
	for word := range strings.FieldsFuncSeq(lower, func(r rune) bool { return (r < 'a' || r > 'z') && r != '\'' && r != '’' }) {
		word, _, _ = strings.Cut(strings.ReplaceAll(word, "’", "'"), "'")
		switch word {
		case "i", "me", "my", "mine", "myself":
			return true, false
		}
	}
	return false, false
}

// assistants is how one asks an assistant what it said.
var assistants = func() (out []string) {
	for verb := range strings.FieldsSeq("recommend suggest advise explain propose outline describe provide") {
		out = append(out, "did you "+verb, "you "+verb+"ed", "you "+verb+"d", "have you "+verb)
	}
	for _, verb := range []string{"said", "told", "gave"} {
		out = append(out, "you "+verb)
	}
	for noun := range strings.FieldsSeq("advice suggestion recommendation answer explanation") {
		out = append(out, "your "+noun)
	}
	return append(out, "did you say", "did you tell", "did you give", "did you mention", "you mentioned")
}()
