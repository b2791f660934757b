package conformance

import (
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

func shapeChecks() []Check {
	return []Check{
		{ID: "patch.shapes", Promise: 1, Suite: SuiteCompactor, compactor: patchShapes, Needs: []Need{NeedOwner}, once: true,
			Rule: "a stub names parts by their index in the message, shows something whatever the part begins with, and costs what is shown then: images and calls beside it, and what was shortened before"},
		{ID: "patch.scripts", Promise: 1, Suite: SuiteCompactor, compactor: patchScripts, Needs: []Need{NeedOwner}, once: true,
			Rule: "in every script a text is no larger than allowed and holds no half characters, and what it repeats of an earlier summary ends with that one"},
	}
}

// shape is a call as some hosts write it, with its results.
type shape struct {
	name  string
	parts []message.Part // of the assistant; calls are numbered later
	// results are the texts that come back, in one message.
	results []string
	// short are the results that were shortened before.
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
	for _, front := range []string{"\n", " \n\t\n", "\r\n\r\n", "\u200b\n", "\n\n\n  "} {
		out = append(out,
			shape{name: fmt.Sprintf("a result behind %q", front), parts: []message.Part{call}, results: []string{front + words(200)}},
			shape{name: fmt.Sprintf("an answer behind %q", front), parts: []message.Part{text(front + words(200))}})
	}
	for _, sizes := range [][2]int{{60, 200}, {200, 400}, {20, 800}, {400, 800}} {
		little, much := words(sizes[0]), words(sizes[1])
		out = append(out,
			shape{name: "a result shortened before beside a longer one", parts: two, results: []string{little, much}, short: []int{0}},
			shape{name: "a result shortened before behind a longer one", parts: two, results: []string{much, little}, short: []int{1}},
			shape{name: "two results shortened before and a longer one", parts: append(two, call), results: []string{little, much, little}, short: []int{0, 2}})
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
	const times, newest = 9, 4
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
		if len(s.results) == 0 {
			continue
		}
		back := message.Message{Role: message.Tool}
		for i, text := range s.results {
			back.Parts = append(back.Parts, message.Part{Kind: message.ToolResult, CallID: ids[i], Name: "sh", Text: text})
		}
		r.add(2*g+1, back)
		if e := r.entries[len(r.entries)-1]; len(s.short) > 0 {
			st := window.Stub{Kind: window.Clipped, Texts: map[int]string{}, Tokens: e.Tokens}
			for _, i := range s.short {
				st.Texts[i] = "this is […] of it"
				st.Tokens += cheapCount(st.Texts[i]) - cheapCount(s.results[i])
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
	return r.inMoods(func() string {
		for kind := range textKinds {
			r.pieces = make([]piece, 24)
			for i := range r.pieces {
				r.pieces[i] = piece{Text: kind, Size: 60}
			}
			for _, most := range []int{60, 300} {
				c := r.rich(true)
				c.SummaryTokens = most
				patches, text := r.run(c)
				if text == "" {
					text = r.legal(c, patches)
				}
				if text == "" {
					text = halved(c, patches)
				}
				if text == "" && most > 60 { // where texts are small, not all has room
					text = r.included(c, patches)
				}
				if text != "" {
					return fmt.Sprintf("messages of %s, a text may cost %d tokens: %s", kind, most, text)
				}
			}
		}
		return ""
	})
}
