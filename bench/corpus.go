package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

const agent = "ada"

var noon = time.Date(2025, time.March, 4, 12, 0, 0, 0, time.UTC)

// corpus makes the i-th entries of conversations: 50 to 70 words each, of a vocabulary of 20,000 that is as uneven as a language's.
type corpus struct {
	rng  *rand.Rand
	zipf *rand.Zipf
	word []string
	n    int
}

func newCorpus(seed uint64) *corpus {
	rng := rand.New(rand.NewPCG(seed, 1))
	c := &corpus{rng: rng, zipf: rand.NewZipf(rng, 1.1, 20, 19_999)}
	c.word = vocabulary()
	return c
}

// vocabulary is 20,000 words that are put together as English ones are, and cost tokens like them: roots, the most frequent words, then roots with
// endings, then roots with beginnings and endings, then two roots.
func vocabulary() []string {
	roots := strings.Fields(`the to and of in is you that it for on was with as have be this are or at from one had by word but not what all were we when
		your can said there use an each which she do how their if will up other about out many then them these so some her would make like him into time
		has look two more write go see number no way could people my than first water been call who oil its now find long down day did get come made may
		part over new sound take only little work know place year live me back give most very after thing our just name good sentence man think say
		great where help through much before line right too mean old any same tell boy follow came want show also around form three small set put end
		does another well large must big even such because turn here why ask went men read need land different home us move try kind hand picture again
		change off play spell air away animal house point page letter mother answer found study still learn should world`)
	endings := []string{"", "s", "ing", "ed", "er", "ly", "able", "ness", "less", "ful"}
	beginnings := []string{"re", "un", "over", "out", "under", "fore"}
	words := slices.Clone(roots)
	for _, e := range endings[1:] {
		for _, r := range roots {
			words = append(words, r+e)
		}
	}
	for _, b := range beginnings {
		for _, e := range endings {
			for _, r := range roots {
				words = append(words, b+r+e)
			}
		}
	}
	for _, r := range roots {
		for _, q := range roots {
			if len(words) < 20_000 {
				words = append(words, r+q)
			}
		}
	}
	return words[:20_000]
}

func (c *corpus) text(words int) string {
	var b strings.Builder
	for i := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(c.word[c.zipf.Uint64()])
	}
	b.WriteByte('.')
	return b.String()
}

// message makes the next message: user and assistant in turn. It has the bytes that a host would have.
func (c *corpus) message() message.Message {
	role := message.User
	if c.n%2 == 1 {
		role = message.Assistant
	}
	m := message.New(role, c.text(50+c.rng.IntN(21)))
	m.Raw, _ = json.Marshal(map[string]string{"role": string(role), "content": m.Text()})
	m.Time = noon.Add(time.Duration(c.n) * time.Minute)
	c.n++
	return m
}

// entry makes the next entry; sessions have 200.
func (c *corpus) entry() core.Entry {
	n := c.n
	m := c.message()
	return core.Entry{
		ID: fmt.Sprintf("entry%021d", n), Agent: agent, Session: fmt.Sprintf("s%d", n/200), Seq: int64(n % 200), Turn: int64(n % 200 / 2), Role: m.Role,
		Type: core.TypeMessage, Time: m.Time, Tokens: 80, Key: fmt.Sprintf("s:%d:%d", n%200, n), Fingerprint: message.Fingerprint(m), Message: m,
	}
}

// sentence is what somebody asks: twelve words that follow each other in an entry.
func sentence(rng *rand.Rand, text string) string {
	words := strings.Fields(strings.TrimSuffix(text, "."))
	at := rng.IntN(max(len(words)-12, 1))
	return strings.Join(words[at:min(at+12, len(words))], " ")
}

// conversation is one of the development conversations, with questions and the ids of the entries that answer them.
type conversation struct {
	entries   []core.Entry
	questions []question
}

type question struct {
	text     string
	evidence map[string]bool
}

var turnID = regexp.MustCompile(`D:?(\d+):(\d+)`)

// conversations reads LoCoMo's development half, and of its questions those that have an answer.
func conversations(dir string) ([]conversation, error) {
	text, err := os.ReadFile(filepath.Join(dir, "locomo", "locomo-dev.json"))
	if err != nil {
		return nil, err
	}
	var samples []struct {
		Conversation map[string]json.RawMessage
		QA           []struct {
			Question string
			Evidence []string
			Category int
		}
	}
	if err := json.Unmarshal(text, &samples); err != nil {
		return nil, err
	}
	var out []conversation
	for i, s := range samples {
		c := conversation{}
		known := map[string]bool{}
		for n := 1; n <= 50; n++ {
			name := fmt.Sprintf("session_%d", n)
			var turns []struct {
				Speaker, Text string
				ID            string `json:"dia_id"`
				Caption       string `json:"blip_caption"`
			}
			var date string
			if s.Conversation[name] == nil || json.Unmarshal(s.Conversation[name], &turns) != nil ||
				json.Unmarshal(s.Conversation[name+"_date_time"], &date) != nil {
				continue
			}
			at, err := time.Parse("3:04 pm on 2 January, 2006", date)
			if err != nil {
				return nil, err
			}
			for k, t := range turns {
				if t.Caption != "" {
					t.Text += " [image: " + t.Caption + "]"
				}
				m := message.New(message.User, t.Text)
				m.Name = t.Speaker
				id := strings.ReplaceAll(t.ID, ":", "-")
				known[id] = true
				c.entries = append(c.entries, core.Entry{
					ID: id, Agent: fmt.Sprintf("agent-%d", i), Session: name, Seq: int64(k), Role: m.Role, Type: core.TypeMessage,
					Time: at.Add(time.Duration(k) * time.Minute), Key: t.ID, Message: m,
				})
			}
		}
		for _, qa := range s.QA {
			q := question{text: qa.Question, evidence: map[string]bool{}}
			for _, e := range qa.Evidence {
				for _, m := range turnID.FindAllStringSubmatch(e, -1) {
					turn, _ := strconv.Atoi(m[2])
					if id := fmt.Sprintf("D%s-%d", m[1], turn); known[id] {
						q.evidence[id] = true
					}
				}
			}
			if len(q.evidence) > 0 && qa.Category < 5 {
				c.questions = append(c.questions, q)
			}
		}
		out = append(out, c)
	}
	return out, nil
}
