package words

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Question decides, without a model, whether a turn asks for something that the window does not show. On turns that bring what they need recall is wasted.
//
// A short question asks. Any other short text does when one of its words is said by a candidate and nowhere in the window; of a long one, such as notes
// or a file, only the sentences that ask or point back count so, because the rest brings what it speaks of.
type Question struct {
	// Certain says that the turn asks whatever the window shows.
	Certain bool
	// focus is what counts of the text, rest what it says besides.
	focus, rest string
}

const (
	// shortAsk is how long a text is that counts as a whole, in bytes.
	shortAsk = 400
	// maxAskWords bounds the words that are looked for.
	maxAskWords = 64
	// betweenLooks is how much of a long text is read between two looks at ctx, in bytes.
	betweenLooks = 64 << 10
)

// Asked reads what a prompt asks. It stops with ctx's error when ctx ends.
func Asked(ctx context.Context, prompt string) (Question, error) {
	if len(prompt) <= shortAsk {
		return Question{Certain: asks(prompt), focus: prompt}, nil
	}
	var q Question
	look := len(prompt) // what is left when ctx is looked at next
	var focus, rest strings.Builder
	for text := prompt; text != ""; {
		if len(text) <= look {
			if err := ctx.Err(); err != nil {
				return Question{}, err
			}
			look = len(text) - betweenLooks
		}
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
	q.focus, q.rest = focus.String(), rest.String()
	return q, nil
}

const (
	sentenceEnds  = ".!?\n。！？؟।"
	questionMarks = "?？؟՞፧"
)

// asks reports whether a sentence is a question, or points back.
func asks(sentence string) bool {
	if sentence == "\n" {
		return false // as often as a text is long
	}
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

// Misses reports whether one of the offered texts says a word that is asked for and that none of the shown ones says. Each shown text comes behind a
// sketch of it, or of more.
func (q *Question) Misses(offered iter.Seq[string], shown iter.Seq2[Sketch, string]) bool {
	asked := make(map[string]bool)
	var first [256]bool // what words begin with: most of a window's words are told apart by it
	Each(q.focus, func(w string) bool {
		asked[w], first[w[0]] = false, true
		return len(asked) < maxAskWords
	})
	found := 0
	for text := range offered {
		Each(text, func(w string) bool {
			if there, ok := asked[w]; ok && !there {
				asked[w] = true
				found++
			}
			return found < len(asked)
		})
	}
	// What is left of the words are those that are not shown.
	show := func(text string) bool {
		Each(text, func(w string) bool {
			if first[w[0]] && asked[w] {
				asked[w] = false
				found--
			}
			return found > 0
		})
		return found > 0
	}
	if found == 0 || !show(q.rest) {
		return false
	}
	left := make(map[string]uint64, found) // with their hashes
	for w, there := range asked {
		if there {
			left[w] = hash(w)
		}
	}
	for sketch, text := range shown {
		for _, h := range left {
			if !sketch.may(h) {
				continue
			}
			if !show(text) {
				return false
			}
			maps.DeleteFunc(left, func(w string, _ uint64) bool { return !asked[w] })
			break
		}
	}
	return true
}
