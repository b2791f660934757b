package lexical_test

import (
	"testing"
	"time"
	"unicode"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/drawn"
)

// TestKnownItemChinese looks for messages of a Chinese group chat by two fragments of three characters each.
func TestKnownItemChinese(t *testing.T) {
	var chat struct {
		List []struct {
			ID      string    `json:"message_id"`
			Time    time.Time `json:"create_time"`
			Sender  string    `json:"sender_name"`
			Content string
		} `json:"conversation_list"`
	}
	readData(t, &chat, "multilingual/team_chat_zh.json")
	var entries []core.Entry
	for i, m := range chat.List {
		msg := message.New(message.User, m.Content)
		msg.Name = m.Sender
		entries = append(entries, core.Entry{
			ID: m.ID, Agent: "zh", Session: "chat", Seq: int64(i), Role: msg.Role, Type: core.TypeMessage,
			Time: m.Time, Key: m.ID, Message: msg,
		})
	}
	x := newIndex(t, newMapStore(entries))
	rng := drawn.Rand(t)
	asked, first := 0, 0
	for _, e := range entries {
		han := 0
		var starts []int
		text := []rune(e.Text())
		for i, r := range text {
			if unicode.Is(unicode.Han, r) {
				han++
				if i+2 < len(text) && unicode.Is(unicode.Han, text[i+1]) && unicode.Is(unicode.Han, text[i+2]) {
					starts = append(starts, i)
				}
			}
		}
		if han < 12 || len(starts) < 2 {
			continue
		}
		for range 40 { // so many that chance alone moves the share by a tenth of a percent
			a, b := starts[rng.IntN(len(starts))], starts[rng.IntN(len(starts))]
			if a == b {
				continue
			}
			asked++
			hits, err := x.Search(t.Context(), core.SearchQuery{
				Scope: core.Scope{Agent: "zh"}, Limit: 1, Text: string(text[a:a+3]) + " " + string(text[b:b+3]),
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(hits) == 1 && hits[0].Entry.ID == e.ID {
				first++
			}
		}
	}
	share := 100 * float64(first) / float64(asked)
	t.Logf("%.1f %% of %d queries find their message first", share, asked)
	if share < 98 {
		t.Errorf("%.1f %% of %d queries find their message first, want at least 98 %%", share, asked)
	}
}
