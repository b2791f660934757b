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
	readData(t, &samples, "locomo", "locomo-dev.json")
	var all tally
	byKind := map[int]*tally{}
	turnID := regexp.MustCompile(`D:?(\d+):(\d+)`)
	for i, s := range samples {
		entries := locomoEntries(t, fmt.Sprintf("agent-%d", i), s.Conversation)
		var questions []question
		known := map[string]bool{}
		for _, e := range entries {
			known[e.ID] = true
		}
		for _, qa := range s.QA {
			if qa.Category > 4 {
				continue
			}
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
			q.also = byKind[qa.Category]
			questions = append(questions, q)
		}
		measure(t, &all, entries, questions, func(h core.Hit) string { return h.Entry.Message.Name + ": " + h.Entry.Text() })
	}
	t.Log("all ", all.String())
	for _, k := range []int{1, 2, 3, 4} {
		t.Logf("category %d: %s", k, byKind[k])
	}
	if got := all.mean(all.at10); got < 76 {
		t.Errorf("recall within 10 hits = %.1f, want at least 76", got)
	}
	if got := all.mean(all.k2); got < 88 {
		t.Errorf("recall within 2,000 tokens = %.1f, want at least 88", got)
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
