package summary_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/compacting/compactingtest"
)

func TestDigestSaysWhatHappened(t *testing.T) {
	es := compactingtest.Conversation(12)
	es[0].Message = message.New(message.User, "\nMove invoice INV-2031/77 to /srv/data/ledger_v2.sqlite, at most 1,499.50 EUR.\nThanks")
	s := compactingtest.New(es, 1200, 5)
	cfg := config()
	cfg.ChunkTokens = 10000
	mustCompact(t, newCompactor(t, cfg, nil), s)
	if len(s.Summaries) != 1 {
		t.Fatalf("%d summaries, want 1", len(s.Summaries))
	}
	text := s.Summaries[0].Text
	for _, want := range []string{
		"[Digest, made without a model, of ", ", 2031-03-04 09:00 to ",
		"\n- user: Move invoice INV-2031/77 to /srv/data/ledger_v2.sqlite, at most 1,499.50 EUR.\n",
		"subagent: The review of turn 6 found nothing.", "\nTools: ", "bash ", "failed)", "\nExact: ", "retryBudget", "src/module_",
		"Last answer: Request 10",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the digest lacks %q:\n%s", want, text)
		}
	}
}

func TestMentionsAreExactOrAbsent(t *testing.T) {
	es := compactingtest.Conversation(30)
	names := map[string]bool{}
	for i := range es {
		if es[i].Role == message.User {
			name := fmt.Sprintf("pkg/größe_%d/Datei.%d.go", i, i*37)
			names[name] = true
			es[i].Message = message.New(message.User, "Look at `"+name+"`.")
		}
	}
	for _, most := range []int{64, 100, 200, 333, 500} {
		s := compactingtest.New(es, 2000, 5)
		s.SummaryTokens = most
		mustCompact(t, newCompactor(t, config(), nil), s)
		seen := 0
		for _, sum := range s.Summaries {
			_, line, _ := strings.Cut(sum.Text, "\nExact: ")
			line, _, _ = strings.Cut(line, "\n")
			for item := range strings.SplitSeq(line, " ") {
				if strings.Contains(item, "pkg") || strings.Contains(item, "Datei") {
					seen++
					if !names[item] {
						t.Errorf("bound %d: mention %q is not what was written", most, item)
					}
				}
			}
		}
		if seen == 0 && most >= 200 {
			t.Errorf("bound %d: nothing is mentioned: %q", most, s.Summaries[0].Text)
		}
	}
}
