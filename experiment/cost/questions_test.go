package cost_test

import (
	"slices"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/questions"
	"github.com/contextengine/contextengine/internal/datadir"
)

// TestQuestionsStillRecall: the gate lets real questions through. Conversations between people stand in one session each, and every question about one is
// the next thing that is said; a message of its evidence counts when some of it stands in the prompt.
func TestQuestionsStillRecall(t *testing.T) {
	set, err := questions.Open(datadir.File(t, "locomo/locomo-dev.json"))
	if err != nil {
		t.Fatal(err)
	}
	count := counter(t)
	const budget = 8000
	shown := func(gate bool) (touched, needed, recalled, asked int) {
		a := arm("gate", count, func(c *engine.Config) { c.Recall.Gate = gate })
		for _, conv := range set.Conversations {
			id := core.SessionID{Agent: conv.ID, Session: "all"}
			sub, err := a.Open(t.Context(), experiment.NewSimHost(budget, func(message.Message) int { return 0 }), id)
			if err != nil {
				t.Fatal(err)
			}
			e := sub.Engine.(*engine.Engine)
			ids := map[string]string{}
			for _, s := range conv.Sessions {
				msgs := make([]message.Message, len(s.Messages))
				for i, m := range s.Messages {
					msgs[i] = m.Message
				}
				res, err := e.IngestBatch(t.Context(), core.IngestBatchRequest{Session: id, Messages: msgs})
				if err != nil {
					t.Fatal(err)
				}
				for i, entry := range res.IDs {
					ids[s.Messages[i].ID] = entry
				}
			}
			for _, q := range conv.Questions {
				if len(q.Evidence) == 0 {
					continue
				}
				res, err := e.Assemble(t.Context(), core.AssembleRequest{Session: id, Budget: budget, Prompt: q.Text})
				if err != nil {
					t.Fatal(err)
				}
				asked++
				if res.RecallLen > 0 {
					recalled++
				}
				in := map[string]bool{}
				for _, ch := range res.Choices {
					in[ch.Entry] = in[ch.Entry] || ch.Message >= 0
				}
				for _, e := range slices.Compact(slices.Sorted(slices.Values(q.Evidence))) {
					needed++
					if in[ids[e]] {
						touched++
					}
				}
			}
			if err := sub.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return touched, needed, recalled, asked
	}
	all, needed, _, asked := shown(false)
	gated, _, recalled, _ := shown(true)
	t.Logf("budget %d: of %d messages of evidence %d stand in the prompt without the gate, %d with it; %d of %d questions recall", budget, needed, all, gated, recalled, asked)
	if gated < all*995/1000 {
		t.Errorf("with the gate %d messages of evidence are in the prompts, without it %d", gated, all)
	}
}
