package engine_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestReplacedSystemMessage: what stood in front and was replaced is not recalled, also after a reset; who searches finds it.
func TestReplacedSystemMessage(t *testing.T) {
	p := &asking{}
	f := newFixture(t, func(_ *engine.Config, parts *engine.Parts) { parts.Retriever = p })
	system := func(text string) message.Message { return message.New(message.System, text) }
	said := []message.Message{user("hello"), assistant("hello to you")}
	f.assemble(4000, full, transcript("Go on.", append([]message.Message{system("The vault is called swordfish.")}, said...)...))
	now := append([]message.Message{system("Be brief.")}, said...)
	for what, list := range map[string][]message.Message{"replaced": now, "reset": now[:1]} {
		f.assemble(4000, full, transcript("Go on.", list...))
		f.everything(&p.proposer, f.id.Agent)
		got := shown(f.assemble(4000, full, transcript("What is the vault called?", list...)))
		if strings.Contains(got, "swordfish") {
			t.Errorf("%s: shown: %s", what, got)
		}
	}
}
