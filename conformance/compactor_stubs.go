package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// stubbed describes a stub that shows nothing, or says something else than it costs.
func stubbed(c core.Compaction, patches []core.Patch) string {
	of := map[string]core.Entry{}
	for _, e := range c.Entries {
		of[e.ID] = e
	}
	for _, p := range patches {
		for id, s := range p.Stubs {
			e := of[id]
			for i := range s.Texts {
				if i < 0 || i >= len(e.Message.Parts) {
					return fmt.Sprintf("the stub of entry %q has a text for part %d, it has %d", id, i, len(e.Message.Parts))
				}
				// A mask says what was there and a clip keeps head and tail; texts that go with others may be left out.
				if p := e.Message.Parts[i]; window.Blank(s.Texts[i]) && !window.Blank(p.Text) && (s.Kind == window.Masked || p.Kind == message.ToolResult) {
					return fmt.Sprintf("the stub of entry %q shows nothing in the place of part %d, a %s", id, i, p.Kind)
				}
				if !utf8.ValidString(s.Texts[i]) && utf8.ValidString(e.Message.Text()) {
					return fmt.Sprintf("the stub of entry %q holds half a character: %.80q", id, s.Texts[i])
				}
			}
			if window.Blank(strings.Join(slices.Collect(maps.Values(s.Texts)), "")) {
				return fmt.Sprintf("the stub of entry %q shows nothing in the place of %d parts", id, len(s.Texts))
			}
			if least, most := costsOf(e, c.Count, c.Stubs[id].Texts, s.Texts); s.Tokens < least || s.Tokens > most {
				return fmt.Sprintf("the stub of entry %q says it costs %d tokens, as it is shown then it costs %d to %d", id, s.Tokens, least, most)
			}
			if s.Kind != window.Clipped && s.Kind != window.Masked {
				return fmt.Sprintf("the stub of entry %q is of kind %q", id, s.Kind)
			}
		}
	}
	return ""
}

// halved describes a replacement that holds half a character where no entry does.
func halved(c core.Compaction, patches []core.Patch) string {
	if slices.ContainsFunc(c.Entries, func(e core.Entry) bool { return !utf8.ValidString(e.Message.Text()) }) {
		return ""
	}
	for _, p := range patches {
		for _, rep := range p.Replace {
			if !utf8.ValidString(rep.Text) {
				return fmt.Sprintf("a replacement holds half a character: %.80q", rep.Text)
			}
		}
	}
	return ""
}

// costsOf are the least and the most that an entry costs where texts of stubs, the later ones over the earlier, stand in the place of its parts. Where the texts of several parts
// are counted together that is a token less for each further one. At the most it costs what it did besides its texts, and those; names may count, and a message a little more.
func costsOf(e core.Entry, count core.TokenCounter, stubs ...map[int]string) (least, most int) {
	texts := map[int]string{}
	for _, s := range stubs {
		maps.Copy(texts, s)
	}
	shown := message.Shorten(e.Message, texts, true)
	const more = 4 // what is counted where a provider's overhead is not known
	counted, besides := 0, 0
	for _, p := range e.Message.Parts {
		besides += count(p.Name) + 2 // each part may cost a token of its own, and one where it is counted by itself
		if p.Kind == message.Image || p.Kind == message.Other || p.Kind == message.Thinking || len(message.Inside(p)) > 0 {
			besides += e.Tokens // what is no text may cost anything, less than the entry did
		}
	}
	for _, p := range shown.Parts {
		n := 0
		switch p.Kind {
		case message.Image: // the least is what it costs everywhere
			n = window.ImageTokens
		case message.Text, message.ToolResult:
			n = count(p.Text)
		case message.ToolCall:
			n = count(p.Name + p.Args)
		}
		if least += n; n > 0 {
			counted++
		}
	}
	besides += max(e.Tokens-count(e.Message.Text()), messageTokens) + more
	return messageTokens + least - max(counted-1, 0), besides + least
}
