package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// TestDescribeOfOneMessage: a session of one message began and ended with it.
func TestDescribeOfOneMessage(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("one"))
	d, err := f.engine.Describe(t.Context(), engine.DescribeRequest{Session: f.id})
	if at := f.entry("one").Time; err != nil || at.IsZero() || d.First != at || d.Last != at || d.Entries != 1 {
		t.Errorf("%+v, %v, want it from %v to %v", d, err, at, at)
	}
}

// TestExpandOfOneLongWord: a page of text that costs next to nothing begins with 32 bytes where there is no room beside the citation, and never with none.
func TestExpandOfOneLongWord(t *testing.T) {
	f := newFixture(t)
	f.ingest(user(strings.Repeat("x", 5000) + strings.Repeat(" y", 40)))
	entry := f.entry("xxx")
	fits := 0
	for tokens := 1; tokens <= 60; tokens++ {
		res, err := f.engine.Expand(t.Context(), engine.ExpandRequest{Session: f.id, ID: entry.ID, Tokens: tokens})
		if err != nil {
			continue // too few for the citation
		}
		if fits++; len(res.Found) != 1 || res.Found[0].Excerpt == "" || res.Next != len(res.Found[0].Excerpt) {
			t.Errorf("%d tokens: %d found, next %d", tokens, len(res.Found), res.Next)
			continue
		}
		// Beyond the 16 tokens of a citation one token stands for a tenth less than its share of the 5080 bytes.
		if want := max(max(tokens-16, 0)*5080*9/entry.Tokens/10, 32); tokens <= 17 && len(res.Found[0].Excerpt) != want {
			t.Errorf("%d tokens: %d bytes, want %d", tokens, len(res.Found[0].Excerpt), want)
		}
	}
	if fits < 44 {
		t.Errorf("%d of 60 fit", fits)
	}
}

// TestExpandWithoutRoomForACharacter: a page that has room for the citation and for no character of the text is refused: it would be followed by itself for ever.
func TestExpandWithoutRoomForACharacter(t *testing.T) {
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
		p.Counter = func(text string) int { return wordCounter(text) + 100*strings.Count(text, "😀") }
	})
	f.ingest(user(strings.Repeat("😀", 40)))
	id := f.entry("😀").ID
	for _, tokens := range []int{1, 18, 20, 22, 24, 26, 28, 32, 36, 40, 4000} {
		res, err := f.engine.Expand(t.Context(), engine.ExpandRequest{Session: f.id, ID: id, Tokens: tokens})
		if none := len(res.Found) == 0; none != errors.Is(err, core.ErrInvalid) || none != (tokens < 4000) || !none && res.Next == 0 {
			t.Errorf("%d tokens: %+v, %v", tokens, res, err)
		}
	}
}
