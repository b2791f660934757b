package mask_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
	"github.com/contextengine/contextengine/internal/compacting/compactingtest"
	"github.com/contextengine/contextengine/strategies/mask"
)

// shot is an image of one pixel.
const shot = `{"type":"image","mimeType":"image/gif","data":"R0lGODlhAQABAAAAACw="}`

// pictures returns a conversation in which every user's message and every first result shows an image.
func pictures(turns int) []core.Entry {
	es := compactingtest.Conversation(turns)
	first := true
	for i := range es {
		m := &es[i].Message
		if es[i].Type != core.TypeMessage || m.Role == message.Assistant || m.Role == message.Tool && !first {
			first = true
			continue
		}
		first = m.Role != message.Tool
		m.Parts = append(slices.Clone(m.Parts), message.Part{Kind: message.Image, Raw: []byte(shot)})
		es[i].Tokens += 1600
	}
	return es
}

func hasImage(e core.Entry) bool {
	return slices.ContainsFunc(e.Message.Parts, func(p message.Part) bool { return p.Kind == message.Image })
}

func TestOldImagesLeaveANote(t *testing.T) {
	for _, keep := range []int{0, 2, 5} {
		s := compactingtest.New(pictures(8), 10, 0)
		m := compactor(t, func(c *mask.Config) { c.KeepImages, c.KeepResults = keep, 1000 })
		p := compact(t, m, s)
		images, newest := 0, 0
		for i, e := range slices.Backward(s.Entries) {
			if !hasImage(e) {
				continue
			}
			images++
			st, ok := p.Stubs[e.ID]
			failed := e.Role == message.Tool && e.Message.Parts[0].IsError
			prompt := e.Role == message.User && newest == 0
			if prompt {
				newest = i
			}
			if want := images > keep && !failed && !prompt; ok != want {
				t.Errorf("keep %d: image %d from the end, of entry %d: put away %v, want %v", keep, images, i, ok, want)
			}
			if !ok {
				continue
			}
			at := len(e.Message.Parts) - 1
			want := "[image not shown: image/gif, 1x1, 14 bytes; entry " + e.ID + "]"
			if st.Kind != window.Clipped || len(st.Texts) != 1 || st.Texts[at] != want {
				t.Errorf("stub of %s = %+v, want part %d to be %s", e.ID, st, at, want)
			}
			if text := message.Shorten(e.Message, st.Texts, false).Text(); !strings.HasPrefix(text, e.Message.Text()) {
				t.Errorf("what was said in %s is not untouched: %q", e.ID, text)
			}
		}
		if p := compact(t, m.AsTier(), s); !p.Empty() {
			t.Errorf("keep %d: a second compaction changes %d more", keep, len(p.Stubs))
		}
	}
}

func TestImagesStayUntilTheTargetAsksForThem(t *testing.T) {
	s := compactingtest.New(pictures(10), 0, 0)
	s.Target = s.Tokens - 3000
	p := compact(t, compactor(t, nil), s)
	if len(p.Stubs) != 2 || s.Tokens > s.Target {
		t.Errorf("%d stubs, %d tokens of %d: two images are enough", len(p.Stubs), s.Tokens, s.Target)
	}
}

func TestBlocksThatAreNoContentStay(t *testing.T) {
	es := compactingtest.Conversation(5)
	es[0].Message.Parts = append(es[0].Message.Parts, message.Part{Kind: message.Other, Raw: []byte(`{"type":"cache_point"}`)})
	es[5].Message.Parts = append(es[5].Message.Parts, message.Part{Kind: message.Other, Raw: []byte(`{"type":"document","title":"Q3","source":{"type":"base64","media_type":"application/pdf","data":"` + strings.Repeat("QUFB", 2000) + `"}}`)})
	es[5].Tokens += 2030
	s := compactingtest.New(es, 10, 0)
	p := compact(t, compactor(t, func(c *mask.Config) { c.KeepImages, c.KeepResults = 0, 1000 }), s)
	if len(p.Stubs) != 1 || p.Stubs["e5"].Texts[1] != `[document not shown: application/pdf, 6000 bytes, "Q3"; entry e5]` {
		t.Errorf("stubs = %+v, want that of the document", p.Stubs)
	}
}

func TestAMaskedResultTakesTheImagesInsideAlong(t *testing.T) {
	es := compactingtest.Conversation(5)
	raw := `{"type":"tool_result","tool_use_id":"call-1-1","content":[{"type":"text","text":"seen"},{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"R0lGODlhAQABAAAAACw="}}]}`
	es[7].Message.Parts = []message.Part{{Kind: message.ToolResult, CallID: "call-1-1", Text: "seen", Raw: []byte(raw)}}
	es[7].Tokens = 1607
	s := compactingtest.New(es, 10, 0)
	p := compact(t, compactor(t, func(c *mask.Config) { c.KeepImages, c.KeepResults = 0, 2 }), s)
	want := "[tool result not shown: read, ok, 1607 tokens; entry e7]\n[image not shown: image/gif, 1x1, 14 bytes; entry e7]"
	if st := p.Stubs["e7"]; st.Kind != window.Masked || st.Texts[0] != want || st.Tokens > 60 {
		t.Errorf("stub = %+v, want %q", st, want)
	}
}

func paste(es []core.Entry, i int) {
	text := "Never deploy on Fridays.\n" + strings.Repeat("a line of a log\n", 4000) + "What went wrong here?"
	es[i].Message = message.New(message.User, text)
	es[i].Tokens = compactingtest.Count(text) + 6
}

func TestPastedTextKeepsHeadAndTail(t *testing.T) {
	es := compactingtest.Conversation(6)
	for _, i := range []int{0, 10, 25} {
		paste(es, i)
	}
	es[10].Message.Type = message.CompactionSummary
	s := compactingtest.New(es, 100, 2)
	m := compactor(t, func(c *mask.Config) { c.KeepResults = 1000 })
	p := compact(t, m, s)
	if len(p.Stubs) != 1 {
		t.Errorf("%d stubs, want one: a host's summary and the newest request stay", len(p.Stubs))
	}
	st := p.Stubs["e0"]
	text := st.Texts[0]
	size := compactingtest.Count(es[0].Message.Text())
	marker := fmt.Sprintf("\n[... shortened, %d tokens in all; entry e0 ...]\n", size)
	if st.Kind != window.Clipped || !strings.HasPrefix(text, "Never deploy on Fridays.\n") || !strings.HasSuffix(text, "What went wrong here?") || !strings.Contains(text, marker) {
		t.Errorf("stub = %s, %.60q ... %.60q", st.Kind, text, text[max(len(text)-60, 0):])
	}
	if n := compactingtest.Count(text); n > 5000 || n < 4500 {
		t.Errorf("%d tokens are left, want about half of 10000", n)
	}
	if p := compact(t, m.AsTier(), s); !p.Empty() {
		t.Errorf("a second compaction changes %d more", len(p.Stubs))
	}
	none := compactor(t, func(c *mask.Config) { c.KeepResults, c.PayloadTokens = 1000, 0 })
	if p := compact(t, none.AsTier(), compactingtest.New(es, 100, 2)); !p.Empty() {
		t.Errorf("0 clips nothing, got %d stubs", len(p.Stubs))
	}
	if p := compact(t, compactor(t, func(c *mask.Config) { c.KeepResults, c.PayloadTokens = 1000, size }).AsTier(), compactingtest.New(es, 100, 2)); !p.Empty() {
		t.Errorf("a text of just so many tokens stays, got %d stubs", len(p.Stubs))
	}
}

// What an earlier compaction shortened stays as it is when more of the entry goes.
func TestALaterStubKeepsTheEarlierOne(t *testing.T) {
	es := pictures(8)
	earlier := window.Stub{Kind: window.Clipped, Texts: map[int]string{0: "short"}, Tokens: 1610}
	s := compactingtest.New(es, 10, 0)
	c := s.Task()
	c.Stubs = map[string]window.Stub{"e0": earlier}
	c.Cost[0] = 1610
	m := compactor(t, func(c *mask.Config) { c.KeepImages, c.KeepResults = 0, 1000 })
	p, err := m.Compact(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if st := p.Stubs["e0"]; st.Texts[0] != "short" || !strings.HasPrefix(st.Texts[1], "[image not shown") || len(earlier.Texts) != 1 {
		t.Errorf("stub = %+v, earlier %+v", st, earlier)
	}
	c.Stubs = nil // nobody says what is shown of it
	if p, err = m.Compact(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if st, ok := p.Stubs["e0"]; ok {
		t.Errorf("stub = %+v, want none", st)
	}
}

func TestMediaKeysAreChecked(t *testing.T) {
	for _, change := range []func(*mask.Config){
		func(c *mask.Config) { c.KeepImages = -1 }, func(c *mask.Config) { c.KeepImages = 1001 }, func(c *mask.Config) { c.PayloadTokens = 999 },
	} {
		cfg := mask.DefaultConfig()
		change(&cfg)
		if _, err := mask.New(cfg); err == nil {
			t.Errorf("New(%+v) = nil, want an error", cfg)
		}
	}
}
