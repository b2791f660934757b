package conformance

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

func shapeChecks() []Check {
	return []Check{
		{ID: "patch.shapes", Promise: 1, Suite: SuiteCompactor, compactor: patchShapes, Needs: []Need{NeedOwner}, once: true,
			Rule: "a stub names parts by their index in the message, shows something whatever the part begins with, blanks without end too, and costs what is shown then: images and calls beside it, and what was shortened before, of the same part and of others"},
		{ID: "patch.scripts", Promise: 1, Suite: SuiteCompactor, compactor: patchScripts, Needs: []Need{NeedOwner}, once: true,
			Rule: "in every script, whatever a token is to the task's counter, a text is no larger than allowed, also where earlier ones were allowed more, and holds no half characters, and what it repeats of an earlier summary ends with that one"},
	}
}

// shape is a call as some hosts write it, with its results.
type shape struct {
	name  string
	parts []message.Part // of the assistant; calls are numbered later
	// results are the texts that come back, in one message.
	results []string
	// back are the parts that come back in their place; results are numbered later.
	back []message.Part
	// short are the parts that come back and were shortened before.
	short []int
}

// shapes are messages in which parts are easily mistaken for one another.
func shapes() []shape {
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("this is what came of it ", n)) }
	text := func(s string) message.Part { return message.Part{Kind: message.Text, Text: s} }
	call := message.Part{Kind: message.ToolCall, Name: "sh", Args: `{"n":1}`}
	long := message.Part{Kind: message.ToolCall, Name: "sh", Args: `{"of":"` + words(60) + `"}`}
	image := message.Part{Kind: message.Image, Raw: []byte(`{"type":"image"}`)}
	thinking := message.Part{Kind: message.Thinking, Text: words(40), Signature: "c2ln"}
	two := []message.Part{call, call}
	out := []shape{
		{name: "a call before a long text", parts: []message.Part{call, text(words(120))}, results: []string{"ok"}},
		{name: "a long call before a long text", parts: []message.Part{long, text(words(120))}, results: []string{"ok"}},
		{name: "a long call between long texts", parts: []message.Part{text(words(90)), long, text(words(120))}, results: []string{"ok"}},
		{name: "thinking before a long call and a long text", parts: []message.Part{thinking, long, text(words(120))}, results: []string{words(90)}},
		{name: "an image before a long text", parts: []message.Part{image, text(words(120))}},
		{name: "an image behind a long text", parts: []message.Part{text(words(120)), image}},
		{name: "images around a long text", parts: []message.Part{image, text(words(120)), image}},
	}
	for _, front := range blanks() {
		out = append(out,
			shape{name: fmt.Sprintf("a result behind %d bytes as %.12q", len(front), front), parts: []message.Part{call}, results: []string{front + words(200)}},
			shape{name: fmt.Sprintf("an answer behind %d bytes as %.12q", len(front), front), parts: []message.Part{text(front + words(200))}})
		if len(front) > 40 {
			out = append(out, shape{name: fmt.Sprintf("a result around and before %d bytes as %.12q", len(front), front), parts: two,
				results: []string{words(100) + front + words(100) + front, "so: " + front + words(200) + front}})
		}
	}
	for _, sizes := range [][2]int{{60, 200}, {200, 400}, {20, 800}, {400, 800}} {
		little, much := words(sizes[0]), words(sizes[1])
		out = append(out,
			shape{name: "a result shortened before beside a longer one", parts: two, results: []string{little, much}, short: []int{0}},
			shape{name: "a result shortened before behind a longer one", parts: two, results: []string{much, little}, short: []int{1}},
			shape{name: "two results shortened before and a longer one", parts: append(two, call), results: []string{little, much, little}, short: []int{0, 2}})
	}
	return append(out, mixtures(two, text, image, words)...)
}

// blanks are texts of which nobody sees anything, as results of tools begin and end: a few, and more than anybody keeps of a text.
func blanks() []string {
	out := []string{"\n", " \n\t\n", "\r\n\r\n", "\u200b\n", "\n\n\n  "}
	for n, s := range []string{" ", "\n", "\t", "\r\n", "\u200b", "\u00a0", "\x00", "\ufeff\u2060", " \n\u200d"} {
		for _, size := range []int{70, 300, 2500} {
			if size == 300 || (n+size)%2 == 0 { // which of them are longest does not matter
				out = append(out, strings.Repeat(s, size/len(s)+1))
			}
		}
	}
	return out
}

// mixtures are messages of several kinds of parts, of which one was shortened before: what else is shortened of them is laid over that.
func mixtures(calls []message.Part, text func(string) message.Part, image message.Part, words func(int) string) []shape {
	result := func(s string) message.Part { return message.Part{Kind: message.ToolResult, Name: "sh", Text: s} }
	var out []shape
	for _, sizes := range [][2]int{{60, 120}, {300, 300}} {
		a, b := words(sizes[0]), words(sizes[1])
		for name, back := range map[string][]message.Part{
			"a result and a text":                {result(a), text(b)},
			"a text and a result":                {text(b), result(a)},
			"two results and a text":             {result(a), result(b), text(a)},
			"a text between results":             {result(a), text(b), result(a)},
			"a result between texts":             {text(a), result(b), text(b)},
			"a result, an image and a text":      {result(a), image, text(b)},
			"a text, thinking and a long result": {text(a), {Kind: message.Thinking, Text: a, Signature: "c2ln"}, result(b)},
		} {
			var shorts [][]int
			for i, p := range back {
				if p.Kind == message.Text || p.Kind == message.ToolResult {
					shorts = append(shorts, []int{i})
				}
			}
			for _, short := range shorts {
				n := 0
				for _, p := range back {
					if p.Kind == message.ToolResult {
						n++
					}
				}
				out = append(out, shape{name: fmt.Sprintf("%s, of which part %d was shortened before", name, short), parts: calls[:n], back: back, short: short})
			}
		}
	}
	return out
}

func patchShapes(r *compactorRun) string {
	for _, s := range shapes() {
		for _, tenths := range []int{3, 9} {
			c := r.shaped(s)
			c.Target = c.Tokens * tenths / 10
			text := r.trueTexts(c)
			if text == "" {
				text = stubbed(c, r.shown)
			}
			if text != "" {
				return fmt.Sprintf("%s, %d tenths may stay: %s", s.name, tenths, text)
			}
		}
	}
	return ""
}

// shaped is a task of one shape again and again.
func (r *compactorRun) shaped(s shape) core.Compaction {
	const times, newest = 13, 4 // more results than most keep as they are
	r.pieces, r.entries, r.groups, r.published = nil, nil, map[string]int{}, nil
	stubs := map[string]window.Stub{}
	for g := range times {
		r.add(2*g, message.New(message.User, fmt.Sprintf("%s: do it for the %dth time", markOf(0, g), g)))
		said := message.Message{Role: message.Assistant}
		var ids []string
		for _, p := range s.parts {
			if p.Kind == message.ToolCall {
				p.CallID = fmt.Sprintf("c%d.%d", g, len(ids))
				ids = append(ids, p.CallID)
			}
			said.Parts = append(said.Parts, p)
		}
		r.add(2*g+1, said)
		back := message.Message{Role: message.Tool, Parts: slices.Clone(s.back)}
		for _, text := range s.results {
			back.Parts = append(back.Parts, message.Part{Kind: message.ToolResult, Name: "sh", Text: text})
		}
		if len(back.Parts) == 0 {
			continue
		}
		for i := range back.Parts {
			if p := &back.Parts[i]; p.Kind == message.ToolResult {
				p.CallID, ids = ids[0], ids[1:]
			}
		}
		r.add(2*g+1, back)
		if e := r.entries[len(r.entries)-1]; len(s.short) > 0 {
			st := window.Stub{Kind: window.Clipped, Texts: map[int]string{}, Tokens: e.Tokens}
			for _, i := range s.short {
				st.Texts[i] = "this is […] of it"
				st.Tokens += r.count(st.Texts[i]) - r.count(back.Parts[i].Text)
			}
			stubs[e.ID] = st
		}
	}
	for g := range newest {
		r.add(2*times+g, message.New(message.User, "and now?"))
	}
	c := r.taskOf(true)
	c.Stubs, c.Protected = stubs, newest
	for i, e := range c.Entries {
		if st, ok := stubs[e.ID]; ok {
			c.Tokens += st.Tokens - c.Cost[i]
			c.Cost[i] = st.Tokens
		}
	}
	return c
}

func patchScripts(r *compactorRun) string {
	defer func() { r.counter = nil }()
	return r.inMoods(func() string {
		for kind := range textKinds {
			r.pieces = make([]piece, 24)
			for i := range r.pieces {
				r.pieces[i] = piece{Text: kind, Size: 60}
			}
			for _, t := range []struct {
				most    int
				counter core.TokenCounter
				counts  string
			}{{60, nil, "four bytes"}, {300, nil, "four bytes"}, {60, dearLetters, "four letters, or a byte of those that are not ASCII"}, {300, dearLetters, "four letters, or a byte of those that are not ASCII"}, {400, signs, "a sign"}} {
				r.counter = t.counter
				size := 60
				if t.counter != nil { // many that are small are listed in one text
					size = 4
				}
				for i := range r.pieces {
					r.pieces[i].Size = size
				}
				c := r.rich(true)
				c.SummaryTokens = t.most
				patches, text := r.run(c)
				if text == "" {
					text = r.legal(c, patches)
				}
				if text == "" {
					text = halved(c, patches)
				}
				if text == "" && t.counter != nil {
					text = r.progress(c, patches)
				}
				if text == "" && t.most > 60 && t.counter == nil { // where texts are small, not all has room
					text = r.included(c, patches)
				}
				if text != "" {
					return fmt.Sprintf("messages of %s, a text may cost %d tokens of %s: %s", kind, t.most, t.counts, text)
				}
			}
		}
		r.counter = nil
		return r.smallerTexts()
	})
}

// smallerTexts hands a compactor its own texts back where the next one may cost less than they do together, as when a smaller model takes over.
func (r *compactorRun) smallerTexts() string {
	const texts = 5
	own, text := r.ownTexts(texts)
	if text != "" || len(own) == 0 {
		return text
	}
	together := 0
	for _, s := range own {
		together += s.Tokens
	}
	for _, most := range []int{60, together / 3} {
		r.pieces = enoughPieces()
		c := r.task(true)
		for i, s := range own {
			s.ID = fmt.Sprintf("S-own-%d", i)
			c.Summaries, c.Tokens = append(c.Summaries, s), c.Tokens+s.Tokens
		}
		c.Target, c.SummaryTokens = c.Tokens/4, most
		patches, text := r.run(c)
		if text == "" {
			text = r.legal(c, patches)
		}
		if text == "" {
			text = r.progress(c, patches)
		}
		if text != "" {
			return fmt.Sprintf("behind %d of its own of %d tokens, a text may cost %d: %s", texts, together, most, text)
		}
	}
	return ""
}

// dearLetters is a counter for which each byte of a letter that is not ASCII is a token, as some vocabularies have it.
func dearLetters(s string) int {
	plain, dear := 0, 0
	for i := range len(s) {
		if s[i] < 0x80 {
			plain++
		} else {
			dear++
		}
	}
	return (plain+3)/4 + dear
}

// signs is a counter for which each sign is a token.
func signs(s string) int { return utf8.RuneCountInString(s) }
