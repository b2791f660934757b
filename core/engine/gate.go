package engine

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// asking decides, without a model, whether a turn asks for something that the window does not show. On turns that bring what they need recall is wasted.
//
// A short question asks. Any other short text does when one of its words is said by a candidate and nowhere in the window; of a long one, such as notes
// or a file, only the sentences that ask or point back count so, because the rest brings what it speaks of.
type asking struct {
	// certain says that the turn asks whatever the window shows.
	certain bool
	// focus is what counts of the text, rest what it says besides.
	focus, rest string
}

const (
	// shortAsk is how long a text is that counts as a whole, in bytes.
	shortAsk = 400
	// gateCandidates is how many candidates are looked at when it is not certain that a turn asks.
	gateCandidates = 12
	// minWord is how many letters or digits a word has that names something, prefixWord how many of them tell words apart. In scripts without blanks
	// two letters are a word.
	minWord, prefixWord = 4, 6
	// maxAskWords bounds the words that are looked for.
	maxAskWords = 64
)

// askingOf reads what a prompt asks.
func askingOf(prompt string) asking {
	if len(prompt) <= shortAsk {
		return asking{certain: asks(prompt), focus: prompt}
	}
	var a asking
	var focus, rest strings.Builder
	for text := prompt; text != ""; {
		end := strings.IndexFunc(text, func(r rune) bool { return strings.ContainsRune(sentenceEnds, r) })
		if end < 0 {
			end = len(text)
		} else {
			_, n := utf8.DecodeRuneInString(text[end:])
			end += n
		}
		b := &rest
		if asks(text[:end]) {
			b = &focus
		}
		b.WriteString(text[:end])
		b.WriteByte('\n')
		text = text[end:]
	}
	a.focus, a.rest = focus.String(), rest.String()
	return a
}

const (
	sentenceEnds  = ".!?\n。！？؟।"
	questionMarks = "?？؟՞፧"
)

// asks reports whether a sentence is a question, or points back.
func asks(sentence string) bool {
	if strings.ContainsAny(sentence, questionMarks) {
		return true
	}
	lower := strings.ToLower(sentence)
	if first := strings.Fields(lower); len(first) > 0 && slices.Contains([]string{"who", "whose", "what", "when", "where", "which", "why", "how"}, first[0]) {
		return true // people leave out the mark
	}
	return slices.ContainsFunc([]string{
		"remember", "remind", "recall", "earlier", "previous", "last time", "again", "mentioned", "told you", "i said", "you said", "we said", "look up",
	}, func(pointer string) bool { return strings.Contains(lower, pointer) })
}

// misses reports whether a candidate says a word that is asked for and that nothing in front of the turn says.
func (a *asking) misses(f *frame, c *call, candidates []core.Candidate) bool {
	asked := make(map[string]bool)
	eachWord(a.focus, func(w string) bool {
		asked[w] = false
		return len(asked) < maxAskWords
	})
	found := 0
	for i := range candidates {
		text := candidates[i].Text
		if text == "" {
			text = candidates[i].Entry.Text()
		}
		eachWord(text, func(w string) bool {
			if offered, ok := asked[w]; ok && !offered {
				asked[w] = true
				found++
			}
			return found < len(asked)
		})
	}
	// What is left of the words are those that are not shown.
	show := func(text string) {
		if found > 0 {
			eachWord(text, func(w string) bool {
				if asked[w] {
					asked[w] = false
					found--
				}
				return found > 0
			})
		}
	}
	show(a.rest)
	for i := range f.v.Kept {
		show(f.v.Kept[i].Text)
	}
	end := f.newestTurn(c.hosted())
	for n := range f.visible {
		if it := f.item(n); f.place(n) < end {
			eachText(&it.msg, show)
		}
	}
	for i := range f.s.lead {
		eachText(&f.s.lead[i].msg, show)
	}
	return found > 0
}

// eachText visits what a message says in words.
func eachText(m *message.Message, visit func(string)) {
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case message.Text, message.ToolResult:
			visit(p.Text)
		case message.ToolCall:
			visit(p.Args)
		}
	}
}

// eachWord visits the words of a text that name something, in lower case and cut, until visit returns false.
func eachWord(text string, visit func(string) bool) {
	text = strings.ToLower(text)
	start, letters, cut, before := -1, 0, 0, -1
	flush := func(end int) bool {
		from := start
		start = -1
		if from < 0 || letters < minWord {
			return true
		}
		if cut > 0 {
			end = cut
		}
		return visit(text[from:end])
	}
	for i, r := range text {
		if dense(r) {
			if !flush(i) || before >= 0 && !visit(text[before:i+utf8.RuneLen(r)]) {
				return
			}
			before = i
			continue
		}
		before = -1
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			if !flush(i) {
				return
			}
			continue
		}
		if start < 0 {
			start, letters, cut = i, 0, 0
		}
		if letters == prefixWord {
			cut = i
		}
		letters++
	}
	flush(len(text))
}

// dense reports whether a letter belongs to a script that is written without blanks.
func dense(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
