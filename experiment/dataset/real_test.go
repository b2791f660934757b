package dataset_test

import (
	"testing"

	"github.com/contextengine/contextengine/experiment/dataset"
	"github.com/contextengine/contextengine/internal/datadir"
)

func TestRealFiles(t *testing.T) {
	for file, least := range map[string][2]int{
		"pi/large-session.jsonl":         {1, 700},
		"tau-bench/airline-dev.json":     {100, 2000},
		"locomo/locomo-dev.json":         {5, 1500},
		"multilingual/team_chat_zh.json": {1, 500},
		"beam/10/chat.json":              {1, 100},
	} {
		t.Run(file, func(t *testing.T) {
			sessions, err := dataset.Open(datadir.File(t, file), dataset.Options{})
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, s := range sessions {
				for _, m := range s.Messages {
					n++
					if m.Raw == nil {
						t.Fatalf("%s: a message has no original bytes", s.Name())
					}
				}
			}
			if len(sessions) != least[0] || n < least[1] {
				t.Errorf("%d sessions with %d messages, want %d with at least %d", len(sessions), n, least[0], least[1])
			}
		})
	}
}
