package lexical

import (
	"regexp"
	"strings"
)

// maxFramed is how long a question is, in bytes, that is looked through for how it asks; longer ones are more than a question.
const maxFramed = 1000

// bare returns a question without what it says about the asking: "Can you list the order in which I brought up ... throughout our conversations?" The words are
// those of many messages, and of none that is looked for.
func bare(text string) string {
	if len(text) > maxFramed {
		return text
	}
	return frames.ReplaceAllString(text, " ")
}

// frames are ways to ask, in English.
var frames = regexp.MustCompile(`(?i)` + strings.Join([]string{
	// where it was said
	`\b(?:throughout|across|in|during|over|from|of) (?:all )?(?:of )?(?:our|my|these|past|previous) (?:past |previous |earlier |entire |whole )?(?:conversation|chat|discussion|session|message)s?\b`,
	`\b(?:across|throughout|in) all (?:the )?(?:conversation|chat|discussion|session|message)s\b`,
	// by whom
	`\b(?:i|we|you)(?:['’]ve| have| had)? ?(?:been )?(?:mention(?:ed|ing)?|said|told you|brought up|discuss(?:ed|ing)?|talked about|talking about|asked about|shared?|covered|say)\b`,
	// in which form it is wanted
	`\bthe order in which\b`,
	`\bin (?:chronological |the right |the correct )?order(?:$|[,.;?!])`,
	`\bmention only(?: and only)? \w+(?: items?| things?| points?)?\b`,
	`(?:^|\b(?:can|could|would|will) you )(?:please )?(?:list|give|tell|show|walk|summari[sz]e|remind|describe|explain|share|provide) (?:me )?(?:through )?`,
	`\b(?:an? )?(?:(?:comprehensive|clear|complete|detailed|thorough|brief|concise|short|quick|full) )?summary of\b`,
	`\b(?:different|various) (?:aspect|thing|topic|way|idea|detail|concept|area)s\b(?: of\b| related to\b)?`,
}, "|"))
