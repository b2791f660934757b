package lexical_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// TestLoCoMo holds the ranking to what it reached on long conversations between two people.
func TestLoCoMo(t *testing.T) {
	var samples []struct {
		Conversation map[string]json.RawMessage
		QA           []struct {
			Question string
			Evidence []string
			Category int
		}
	}
	readData(t, &samples, "locomo/locomo-dev.json")
	var all, answered tally
	const adversarial = 5 // the category of questions that are asked of the wrong person
	byKind := map[int]*tally{}
	turnID := regexp.MustCompile(`D:?(\d+):(\d+)`)
	for i, s := range samples {
		entries := locomoEntries(t, fmt.Sprintf("agent-%d", i), s.Conversation)
		var questions []question
		var one tally
		known := map[string]bool{}
		for _, e := range entries {
			known[e.ID] = true
		}
		for _, qa := range s.QA {
			q := question{text: qa.Question, evidence: map[string]bool{}}
			for _, ev := range qa.Evidence {
				for _, m := range turnID.FindAllStringSubmatch(ev, -1) {
					turn, _ := strconv.Atoi(m[2])
					if id := fmt.Sprintf("D%s-%d", m[1], turn); known[id] {
						q.evidence[id] = true
					}
				}
			}
			if len(q.evidence) == 0 {
				continue
			}
			if byKind[qa.Category] == nil {
				byKind[qa.Category] = &tally{}
			}
			q.also = []*tally{byKind[qa.Category]}
			if qa.Category < adversarial {
				q.also = append(q.also, &answered, &one)
			}
			questions = append(questions, q)
		}
		measure(t, &all, entries, questions, func(h core.Hit) string { return h.Entry.Message.Name + ": " + h.Entry.Text() })
		t.Logf("conversation %d: %s", i, &one)
	}
	t.Logf("categories 1 to 4: %s", &answered)
	t.Logf("with adversarial: %s", &all)
	for k := 1; k <= adversarial; k++ {
		t.Logf("category %d: %s", k, byKind[k])
	}
	for _, r := range []struct {
		what      string
		got, want float64
	}{
		{"recall within 10 hits", answered.mean(answered.at10), 81},
		{"recall within 1,000 tokens", answered.mean(answered.k1), 86.5},
		{"recall within 2,000 tokens", answered.mean(answered.k2), 90.5},
		{"recall within 10 hits, adversarial questions included", all.mean(all.at10), 80},
	} {
		if r.got < r.want {
			t.Errorf("%s = %.1f, want at least %.1f", r.what, r.got, r.want)
		}
	}
}

// locomoEntries makes an entry of each turn of a conversation.
func locomoEntries(t *testing.T, agent string, conversation map[string]json.RawMessage) []core.Entry {
	t.Helper()
	var out []core.Entry
	for n := 1; ; n++ {
		name := fmt.Sprintf("session_%d", n)
		raw, ok := conversation[name]
		if !ok {
			if _, more := conversation[fmt.Sprintf("session_%d", n+1)]; more {
				continue
			}
			return out
		}
		var turns []struct {
			Speaker, Text string
			ID            string `json:"dia_id"`
			Caption       string `json:"blip_caption"`
		}
		var date string
		if err := json.Unmarshal(raw, &turns); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(conversation[name+"_date_time"], &date); err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse("3:04 pm on 2 January, 2006", date)
		if err != nil {
			t.Fatal(err)
		}
		for i, turn := range turns {
			text := turn.Text
			if turn.Caption != "" {
				text += " [image: " + turn.Caption + "]"
			}
			m := message.New(message.User, text)
			m.Name = turn.Speaker
			out = append(out, core.Entry{
				ID: strings.ReplaceAll(turn.ID, ":", "-"), Agent: agent, Session: name, Seq: int64(i), Role: m.Role,
				Type: core.TypeMessage, Time: at.Add(time.Duration(i) * time.Minute), Key: turn.ID, Message: m,
			})
		}
	}
}
