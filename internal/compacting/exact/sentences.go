package exact

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sense says why a sentence holds for longer than the moment.
type Sense uint8

// The senses, the most binding first.
const (
	Plain    Sense = iota
	Rule           // what always or never is to be done, what somebody prefers
	Task           // what is still to be done
	Decision       // what was chosen
	Negation       // what is not so, or does not work
)

func (s Sense) String() string {
	names := [...]string{"plain", "rule", "task", "decision", "negation"}
	if int(s) >= len(names) {
		return "plain"
	}
	return names[s]
}

// longestSentence bounds what is kept of one sentence, in bytes.
const longestSentence = 400

// Sentences yields the sentences of text, as they stand in it, without the marks of lists and quotes in front of them. One
// that is too long to be quoted is cut at a clause.
func Sentences(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.SplitSeq(text, "\n") {
			line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "-*>#•·|"))
			for line != "" {
				n := sentenceEnd(line)
				s := strings.TrimSpace(line[:n])
				line = strings.TrimSpace(line[n:])
				if utf8.RuneCountInString(s) >= 4 && !yield(s) {
					return
				}
			}
		}
	}
}

// sentenceEnd returns the length of the first sentence of line, at most longestSentence bytes.
func sentenceEnd(line string) int {
	clause := 0
	for i, r := range line {
		next := i + utf8.RuneLen(r)
		if i >= longestSentence {
			if clause > longestSentence/3 {
				return clause
			}
			return i
		}
		switch r {
		case '。', '！', '？', '；', '।', '॥', '…':
			return next
		case '.', '!', '?', ';':
			if next >= len(line) || line[next] == ' ' || line[next] == '\t' {
				if r != '.' || !abbreviates(line[:i]) {
					return next
				}
			}
		case ',', '，', '、', ':', '：':
			if next >= len(line) || r > 127 || line[next] == ' ' {
				clause = next
			}
		}
	}
	return len(line)
}

// abbreviates reports whether the full stop behind head belongs to an abbreviation or the number of a list.
func abbreviates(head string) bool {
	word := head[strings.LastIndexByte(head, ' ')+1:]
	if len(word) <= 2 && strings.Trim(word, "0123456789") == "" {
		return word == head // "1." at the beginning
	}
	switch strings.ToLower(word) {
	case "e.g", "i.e", "etc", "vs", "no", "nr", "mr", "mrs", "dr", "st", "approx":
		return true
	}
	return false
}

// SenseOf returns why a sentence is worth keeping; Plain when it says nothing lasting. It goes by the words of a few languages, so it misses some
// and now and then takes one that is none.
func SenseOf(sentence string) Sense {
	if strings.HasSuffix(sentence, "?") || strings.HasSuffix(sentence, "？") {
		return Plain
	}
	low := " " + strings.Map(plainApostrophe, strings.ToLower(sentence)) + " "
	f := firstsOf(low)
	for _, s := range senses {
		for _, cue := range s.cues {
			if f.may(cue) && holds(low, cue) {
				return s.sense
			}
		}
	}
	return Plain
}

// cue is one of the words by which a sense is known.
type cue struct {
	text string
	// worded says that its script has words: it stands as words of its own.
	worded bool
}

// senses are the cues of each sense, the most binding first.
var senses = [...]struct {
	sense Sense
	cues  []cue
}{{Rule, cuesOf(ruleCues)}, {Task, cuesOf(taskCues)}, {Decision, cuesOf(decisionCues)}, {Negation, cuesOf(negationCues)}}

func cuesOf(texts []string) []cue {
	out := make([]cue, len(texts))
	for i, text := range texts {
		first, _ := utf8.DecodeRuneInString(text)
		out[i] = cue{text, joins(first) || first < utf8.RuneSelf}
	}
	return out
}

// firsts are the bytes with which something begins in a text: a word, or any sign at all. Few cues begin with one of them.
type firsts struct{ word, sign [256]bool }

func firstsOf(low string) *firsts {
	f := &firsts{}
	inside := false // a word
	for i, r := range low {
		f.sign[low[i]] = true
		if !inside {
			f.word[low[i]] = true
		}
		inside = wordly(r)
	}
	return f
}

func (f *firsts) may(c cue) bool {
	if c.worded {
		return f.word[c.text[0]]
	}
	return f.sign[c.text[0]]
}

func plainApostrophe(r rune) rune {
	if r == '’' {
		return '\''
	}
	return r
}

// holds reports whether low has a cue in it: as words of its own where the script has words.
func holds(low string, c cue) bool {
	for from := 0; ; {
		i := strings.Index(low[from:], c.text)
		if i < 0 {
			return false
		}
		i += from
		if !c.worded {
			return true
		}
		before, _ := utf8.DecodeLastRuneInString(low[:i])
		after, _ := utf8.DecodeRuneInString(low[i+len(c.text):])
		if !wordly(before) && !wordly(after) {
			return true
		}
		from = i + len(c.text)
	}
}

func wordly(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r >= 'A' && r <= 'Z'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}
