package engine_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// TestRoleThatNobodyKnows: a store may hold what others wrote, under a role that no host hands over. What it costs is told with the name of that role, like that of
// any other, also where it is shortened.
func TestRoleThatNobodyKnows(t *testing.T) {
	f := newFixture(t)
	m := message.New("a guest of the house", strings.Repeat("word ", 900))
	if _, err := f.store.Append(t.Context(), []core.Entry{{
		ID: "foreign", Key: "foreign", Agent: f.id.Agent, Session: f.id.Session, Role: m.Role,
		Type: core.TypeMessage, Message: m, Fingerprint: message.Fingerprint(m), Tokens: wordCounter(m.Text()) + wordCounter(string(m.Role)) + 4,
	}}); err != nil {
		t.Fatal(err)
	}
	f.ingest(user("hello"))
	res := f.assemble(1000)
	if len(res.Messages) != 2 || !strings.Contains(res.Messages[0].Text(), " shortened") {
		t.Fatalf("shown: %q: nothing is tested", shown(res))
	}
	cost := 0
	for _, m := range res.Messages {
		cost += wordCounter(m.Text()) + wordCounter(string(m.Role)) + 4
	}
	if res.EstimatedTokens != cost {
		t.Errorf("%d tokens, the messages cost %d", res.EstimatedTokens, cost)
	}
}
