package lexical_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// TestBEAM holds the ranking to what it reached on chats with an assistant that answers at length.
func TestBEAM(t *testing.T) {
	var all tally
	for n := 2; n <= 20; n += 2 {
		var batches []struct {
			Turns [][]struct {
				Role, Content string
				ID            json.Number
				Anchor        string `json:"time_anchor"`
			}
		}
		var probes map[string][]struct {
			Question string
			Source   json.RawMessage `json:"source_chat_ids"`
		}
		readData(t, &batches, "beam/"+strconv.Itoa(n)+"/chat.json")
		readData(t, &probes, "beam/"+strconv.Itoa(n)+"/pq.json")
		var entries []core.Entry
		known := map[string]bool{}
		at := time.Time{}
		for b, batch := range batches {
			for _, group := range batch.Turns {
				for _, turn := range group {
					if d, err := time.Parse("January-2-2006", turn.Anchor); err == nil {
						at = d
					}
					at = at.Add(time.Minute)
					m := message.New(message.Role(turn.Role), turn.Content)
					id := turn.ID.String()
					known[id] = true
					entries = append(entries, core.Entry{
						ID: id, Agent: fmt.Sprintf("agent-%d", n), Session: fmt.Sprintf("batch-%d", b), Seq: int64(len(entries)),
						Role: m.Role, Type: core.TypeMessage, Time: at, Key: id, Message: m,
					})
				}
			}
		}
		var questions []question
		for _, kind := range slices.Sorted(maps.Keys(probes)) {
			for _, p := range probes[kind] {
				q := question{text: p.Question, evidence: map[string]bool{}}
				for _, id := range regexp.MustCompile(`\d+`).FindAllString(string(p.Source), -1) {
					if known[id] {
						q.evidence[id] = true
					}
				}
				if len(q.evidence) > 0 {
					questions = append(questions, q)
				}
			}
		}
		measure(t, &all, entries, questions, func(h core.Hit) string {
			if h.Passage != "" {
				return string(h.Entry.Role) + ": " + h.Passage
			}
			return string(h.Entry.Role) + ": " + h.Entry.Text()
		})
	}
	t.Log(all.String())
	if got := all.mean(all.at10); got < 60 {
		t.Errorf("recall within 10 hits = %.1f, want at least 60", got)
	}
	if got := all.mean(all.k4); got < 80 {
		t.Errorf("recall within 4,000 tokens = %.1f, want at least 80", got)
	}
}
