package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// TestMessageOfManyBlocks: a message whose texts are too much together is shortened, however small each of them is: its beginning and its end stay.
func TestMessageOfManyBlocks(t *testing.T) {
	blocks := func(n, words int) (out []message.Part) {
		for i := range n {
			out = append(out, message.Part{Kind: message.Text, Text: fmt.Sprintf("block%d%s", i, strings.Repeat(" word", words-1))})
		}
		return out
	}
	for name, parts := range map[string][]message.Part{
		"many of a word":      blocks(1200, 1),
		"two that have room":  blocks(2, 300),
		"small and large":     append(blocks(30, 2), blocks(1, 900)...),
		"an image in between": append(append(blocks(300, 1), message.Part{Kind: message.Image, Raw: []byte(`{"type":"image"}`)}), blocks(300, 1)...),
	} {
		for _, role := range []message.Role{message.User, message.Assistant} {
			if role == message.Assistant && strings.HasPrefix(name, "an image") {
				continue // only what a user shows is put away
			}
			t.Run(name+" of "+string(role), func(t *testing.T) {
				f := newFixture(t)
				f.ingest(user("earlier"), message.Message{Role: role, Parts: parts})
				if role == message.Assistant {
					f.ingest(user("and now?"))
				}
				res, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 500})
				if err != nil {
					t.Fatal(err)
				}
				if res.EstimatedTokens > 500 {
					t.Errorf("the prompt costs %d of 500", res.EstimatedTokens)
				}
				var shown string
				for _, m := range res.Messages {
					for i := range m.Parts {
						if m.Parts[i].Kind == message.Text && m.Parts[i].Text == "" {
							t.Error("an empty text is shown")
						}
					}
					shown += m.Text()
				}
				last := parts[len(parts)-1].Text
				if !strings.Contains(shown, "block0") || !strings.HasSuffix(strings.TrimSuffix(shown, "and now?"), last[strings.LastIndexByte(last, ' ')+1:]) || strings.Count(shown, "shortened") != 1 {
					t.Errorf("shown are %d words, %d notes: %.60s ... %s", len(strings.Fields(shown)), strings.Count(shown, "shortened"), shown, shown[max(0, len(shown)-60):])
				}
			})
		}
	}
}
