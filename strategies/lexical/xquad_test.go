package lexical_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// TestXQuAD asks 1,190 questions in each of twelve languages: every sentence is a message, every paragraph a session, and the evidence is the sentence that holds
// the answer.
func TestXQuAD(t *testing.T) {
	for lang := range strings.FieldsSeq("ar de el en es hi ro ru th tr vi zh") {
		t.Run(lang, func(t *testing.T) {
			var set struct {
				Data []struct {
					Paragraphs []struct {
						Context string
						QAs     []struct {
							Question string
							Answers  []struct {
								Start int `json:"answer_start"`
							}
						}
					}
				}
			}
			readData(t, &set, "xquad/xquad."+lang+".json")
			var entries []core.Entry
			var asked []question
			for _, article := range set.Data {
				for _, p := range article.Paragraphs {
					session := fmt.Sprint("p", len(entries))
					var ends []int // of sentences, in characters
					add := func(from, to int, text string) {
						seq := int64(len(ends))
						entries = append(entries, core.Entry{
							ID: session + "-" + fmt.Sprint(seq), Agent: "x", Session: session, Seq: seq, Role: message.User, Type: core.TypeMessage,
							Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Message: message.New(message.User, strings.TrimSpace(text)),
						})
						ends = append(ends, to)
					}
					runes, from := []rune(p.Context), 0
					for i, r := range runes {
						last := i+1 == len(runes)
						blank := last || unicode.IsSpace(runes[i+1])
						if last || strings.ContainsRune("。।", r) || blank && strings.ContainsRune(".!?؟", r) && i-from > 30 {
							add(from, i+1, string(runes[from:i+1]))
							from = i + 1
						}
					}
					for _, qa := range p.QAs {
						for n, end := range ends {
							if qa.Answers[0].Start < end {
								asked = append(asked, question{text: qa.Question, evidence: map[string]bool{session + "-" + fmt.Sprint(n): true}})
								break
							}
						}
					}
				}
			}
			x := newIndex(t, newMapStore(entries))
			found := 0
			for _, q := range asked {
				hits, err := x.Search(t.Context(), core.SearchQuery{Scope: core.Scope{Agent: "x"}, Text: q.text, Limit: 10})
				if err != nil {
					t.Fatal(err)
				}
				for _, h := range hits {
					if q.evidence[h.Entry.ID] {
						found++
						break
					}
				}
			}
			r := 100 * float64(found) / float64(len(asked))
			t.Logf("%s: %d sentences, %d questions, R@10 %.1f", lang, len(entries), len(asked), r)
			if r < 94 {
				t.Errorf("R@10 %.1f, want at least 94", r)
			}
		})
	}
}
