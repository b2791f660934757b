package summary

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/datadir"
)

// TestLoCoMoAnswersAreNotMarked bounds false alarms: what people answered about long conversations, many of them with dates that nobody said in so many words, and
// the conversations themselves.
func TestLoCoMoAnswersAreNotMarked(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(datadir.File(t, "locomo/locomo-dev.json"))
	if err != nil {
		t.Fatal(err)
	}
	var samples []struct {
		Conversation map[string]json.RawMessage
		QA           []struct{ Answer any }
	}
	if err := json.Unmarshal(raw, &samples); err != nil {
		t.Fatal(err)
	}
	answers, marked := 0, 0
	for _, s := range samples {
		var es []core.Entry
		for n := 1; s.Conversation[fmt.Sprintf("session_%d", n)] != nil; n++ {
			var when string
			var turns []struct{ Text string }
			if err := json.Unmarshal(s.Conversation[fmt.Sprintf("session_%d_date_time", n)], &when); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(s.Conversation[fmt.Sprintf("session_%d", n)], &turns); err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse("3:04 pm on 2 January, 2006", when)
			if err != nil {
				t.Fatal(err)
			}
			for _, turn := range turns {
				es = append(es, core.Entry{Time: at, Message: message.New(message.User, turn.Text)})
			}
		}
		var text strings.Builder
		for i := range es {
			text.WriteString(es[i].Text() + "\n")
		}
		c := claimsOf(text.String(), es)
		for i := range es {
			if got, n := c.check(es[i].Text()); n > 0 {
				t.Errorf("said, and marked: %q", got)
			}
		}
		for _, qa := range s.QA {
			if qa.Answer == nil {
				continue
			}
			answers++
			if _, n := c.check(fmt.Sprint(qa.Answer)); n > 0 {
				marked++
			}
		}
	}
	t.Logf("%d of %d answers marked", marked, answers)
	if marked*100 > answers {
		t.Errorf("%d of %d answers are marked, want at most one in a hundred", marked, answers)
	}
}
