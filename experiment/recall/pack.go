package recall

import (
	"math"
	"strings"
	"unicode"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment/questions"
)

// tokensRule says how tokens are counted.
const tokensRule = `ceil(1.3 x words) of "speaker: text"`

// packer knows what the quotations of one conversation cost and which words they hold. One goroutine at a time uses it.
type packer struct {
	unit  questions.Unit
	words map[string]int32
	known map[string]quotation
}

// quotation is a candidate as it would be packed.
type quotation struct {
	cost  int
	words []int32 // distinct
}

func newPacker(unit questions.Unit) *packer {
	return &packer{unit: unit, words: make(map[string]int32), known: make(map[string]quotation)}
}

// quote returns what a candidate costs and holds.
func (p *packer) quote(c core.Candidate) quotation {
	text := c.Text
	if p.unit == questions.WholeMessage || text == "" {
		text = c.Entry.Text()
	}
	speaker := c.Entry.Message.Name
	if speaker == "" {
		speaker = string(c.Entry.Role)
	}
	line := speaker + ": " + text
	q, ok := p.known[line]
	if !ok {
		q = quotation{cost: int(math.Ceil(1.3 * float64(len(strings.Fields(line))))), words: p.distinct(line)}
		p.known[line] = q
	}
	return q
}

// word returns the number that stands for a word.
func (p *packer) word(w string) int32 {
	id, ok := p.words[w]
	if !ok {
		id = int32(len(p.words))
		p.words[w] = id
	}
	return id
}

// distinct returns the words of a text, each once.
func (p *packer) distinct(text string) []int32 {
	var out []int32
	seen := make(map[int32]bool)
	for _, w := range wordsOf(text) {
		id := p.word(w)
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// wordsOf cuts a text into words: runs of letters, digits and marks in lower case. In scripts that put no spaces between words every character is one.
func wordsOf(text string) []string {
	var out []string
	start := -1
	text = strings.ToLower(text)
	end := func(i int) {
		if start >= 0 {
			out = append(out, text[start:i])
			start = -1
		}
	}
	for i, r := range text {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
			end(i)
			out = append(out, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			if start < 0 {
				start = i
			}
		default:
			end(i)
		}
	}
	end(len(text))
	return out
}

// pack fills a budget with quotations in their order, skipping what does not fit, and tells which went in and what they cost together.
func pack(quotes []quotation, budget int) (in []bool, cost int) {
	in = make([]bool, len(quotes))
	for i, q := range quotes {
		if cost+q.cost <= budget {
			in[i] = true
			cost += q.cost
		}
	}
	return in, cost
}

// score fills a question's recall from its candidates. ids names a candidate's message as evidence does.
func (p *packer) score(out *QuestionResult, measures []Measure, q questions.Question, candidates []core.Candidate, ids map[string]string) {
	wanted := make(map[string]bool, len(q.Evidence))
	for _, id := range q.Evidence {
		wanted[id] = true
	}
	var answer map[int32]bool
	if words := p.distinct(q.Answer); len(words) > 0 {
		answer = make(map[int32]bool, len(words))
		for _, w := range words {
			answer[w] = true
		}
	}
	quotes := make([]quotation, len(candidates))
	for i, c := range candidates {
		quotes[i] = p.quote(c)
	}
	share := func(in []bool) float64 {
		found := make(map[string]bool, len(wanted))
		for i, c := range candidates {
			if id := ids[c.Entry.ID]; in[i] && wanted[id] {
				found[id] = true
			}
		}
		return float64(len(found)) / float64(len(wanted))
	}
	for _, m := range measures {
		if m.Kind == ByDepth {
			in := make([]bool, len(candidates))
			for i := range min(m.At, len(in)) {
				in[i] = true
			}
			out.Recall = append(out.Recall, share(in))
			continue
		}
		in, cost := pack(quotes, m.At)
		out.Recall = append(out.Recall, share(in))
		out.Packed = append(out.Packed, cost)
		if answer == nil {
			continue
		}
		held := make(map[int32]bool, len(answer))
		for i, quote := range quotes {
			if !in[i] {
				continue
			}
			for _, w := range quote.words {
				if answer[w] {
					held[w] = true
				}
			}
		}
		out.AnswerTokens = append(out.AnswerTokens, float64(len(held))/float64(len(answer)))
	}
}
