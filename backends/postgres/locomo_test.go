package postgres_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/datadir"
)

// conversation is one of LoCoMo's, as its file has it.
type conversation struct {
	Conversation map[string]json.RawMessage
	QA           []struct {
		Question string
		Evidence []string
		Category int
	}
}

// TestRecall measures how much of the evidence for questions about long conversations a search finds, and holds it to what it reached.
func TestRecall(t *testing.T) {
	samples := readConversations(t)
	s := open(t, fresh(t))
	turnID := regexp.MustCompile(`D:?(\d+):(\d+)`)
	sum := map[int]float64{}
	var n float64
	var spent time.Duration
	for i, sample := range samples {
		agent := fmt.Sprintf("agent-%d", i)
		entries := conversationEntries(t, agent, sample.Conversation)
		mustAppend(t, s, entries...)
		known := map[string]bool{}
		for _, e := range entries {
			known[e.ID] = true
		}
		for _, qa := range sample.QA {
			evidence := map[string]bool{}
			for _, text := range qa.Evidence {
				for _, m := range turnID.FindAllStringSubmatch(text, -1) {
					if id := agent + "-" + m[1] + "-" + strings.TrimLeft(m[2], "0"); known[id] {
						evidence[id] = true
					}
				}
			}
			if qa.Category > 4 || len(evidence) == 0 {
				continue
			}
			n++
			start := time.Now()
			hits, err := s.Search(t.Context(), core.SearchQuery{Scope: core.Scope{Agent: agent}, Text: qa.Question, Limit: 50})
			if err != nil {
				t.Fatal(err)
			}
			spent += time.Since(start)
			for rank, h := range hits {
				if !evidence[h.Entry.ID] {
					continue
				}
				for _, limit := range []int{5, 10, 25, 50} {
					if rank < limit {
						sum[limit] += 1 / float64(len(evidence))
					}
				}
			}
		}
	}
	at := func(limit int) float64 { return 100 * sum[limit] / n }
	t.Logf("%.0f questions: R@5 %.1f, R@10 %.1f, R@25 %.1f, R@50 %.1f, %v a search", n, at(5), at(10), at(25), at(50), spent/time.Duration(n))
	if at(10) < 60 {
		t.Errorf("recall within 10 hits = %.1f, want at least 60", at(10))
	}
}

func readConversations(t *testing.T) []conversation {
	t.Helper()
	raw, err := os.ReadFile(datadir.File(t, "locomo/locomo-dev.json"))
	var out []conversation
	if err := errors.Join(err, json.Unmarshal(raw, &out)); err != nil {
		t.Fatal(err)
	}
	return out
}

// conversationEntries makes an entry of each turn of a conversation.
func conversationEntries(t *testing.T, agent string, conversation map[string]json.RawMessage) []core.Entry {
	t.Helper()
	var out []core.Entry
	for n := 1; n < 60; n++ {
		session := fmt.Sprintf("session_%d", n)
		if _, ok := conversation[session]; !ok {
			continue
		}
		var turns []struct {
			Speaker, Text string
			Caption       string `json:"blip_caption"`
		}
		var date string
		if err := errors.Join(json.Unmarshal(conversation[session], &turns), json.Unmarshal(conversation[session+"_date_time"], &date)); err != nil {
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
			id := fmt.Sprintf("%s-%d-%d", agent, n, i+1)
			out = append(out, core.Entry{
				ID: id, Agent: agent, Session: session, Seq: int64(i), Role: m.Role, Type: core.TypeMessage,
				Time: at.Add(time.Duration(i) * time.Minute), Key: id, Message: m,
			})
		}
	}
	return out
}
