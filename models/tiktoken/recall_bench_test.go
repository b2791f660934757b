package tiktoken

import (
	"encoding/base32"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// quotations are as many as a recall block has: a line with a date, a role and an entry's id, which is never seen again, and some 60 words.
type quotations [50]string

// inventor makes words as uneven in frequency as a language's: roots that are ordinary words, then roots with beginnings and endings, most of which
// nobody ever wrote.
type inventor struct {
	rng   *rand.Rand
	zipf  *rand.Zipf
	words []string
}

func newInventor(rng *rand.Rand) *inventor {
	roots := strings.Fields(`the of and to in that it is was for on with as his her at by be have from this not are but or had which one you they we
		all when there would their what so out if about who get go me make can like time no just him know take people into year your good some could
		them see other than then now look only come its over think also back after use two how our work first well way even new want because any
		these give day most us train river bread garden window paper stone light music doctor summer bridge money letter kitchen market`)
	beginnings := []string{"", "re", "un", "over", "out", "under", "fore", "mis"}
	endings := []string{"", "s", "ing", "ed", "er", "ly", "able", "ness", "less", "ful"}
	n := &inventor{rng: rng}
	for _, b := range beginnings {
		for _, e := range endings {
			for _, r := range roots {
				n.words = append(n.words, b+r+e)
			}
		}
	}
	for _, first := range roots {
		for _, second := range roots {
			n.words = append(n.words, first+second)
		}
	}
	n.zipf = rand.NewZipf(rng, 1.1, 20, uint64(len(n.words)-1))
	return n
}

func (n *inventor) text() string {
	var b strings.Builder
	for range 50 + n.rng.IntN(21) {
		b.WriteByte(' ')
		b.WriteString(n.words[n.zipf.Uint64()])
	}
	return b.String() + "."
}

// header is the line above a quotation. Ids are of small letters here; other stores name entries with capitals.
func header(rng *rand.Rand, capitals bool) string {
	id := []byte("\x01\x98abcd0123456789")
	for i := 4; i < len(id); i++ {
		id[i] = byte(rng.Uint32())
	}
	name := base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(id)
	if !capitals {
		name = strings.ToLower(name)
	}
	return fmt.Sprintf("[2025-%02d-%02d %02d:%02d %s #e%s]\n>", 1+rng.IntN(12), 1+rng.IntN(28), rng.IntN(24), rng.IntN(60),
		[]string{"user", "assistant"}[rng.IntN(2)], name)
}

// next gives every quotation a new header.
func (q *quotations) next(rng *rand.Rand, texts []string, round int) {
	for i := range q {
		q[i] = header(rng, round%2 == 1) + texts[(round*len(q)+i)%len(texts)] + "\n"
	}
}

// BenchmarkRecall counts a recall block in each round: 50 quotations of made-up words, and of real ones. In between, unless the name says "warm", the
// processor's nearest caches lose what they hold, as they do between two turns.
func BenchmarkRecall(b *testing.B) {
	c, err := New(DefaultEncoding)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	run := func(name string, text func() string) {
		texts := make([]string, 20_000)
		for i := range texts {
			texts[i] = text()
		}
		var block quotations
		other := make([]byte, 8<<20)
		for _, warm := range []bool{false, true} {
			if warm {
				name += "/warm"
			}
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for round := 0; b.Loop(); round++ {
					b.StopTimer()
					for at := 0; !warm && at < len(other); at += 64 {
						other[at]++
					}
					block.next(rng, texts, round)
					b.StartTimer()
					for _, text := range &block {
						c.Count(text)
					}
				}
			})
		}
	}
	run("made-up", newInventor(rng).text)
	var words []string
	realTexts(b, func(text string) { words = append(words, strings.Fields(text)...) })
	run("real", func() string {
		at := rng.IntN(len(words) - 70)
		return " " + strings.Join(words[at:at+50+rng.IntN(21)], " ")
	})
}
