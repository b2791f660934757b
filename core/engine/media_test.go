package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/strategies/mask"
)

// gif is an image of one pixel.
const gif = "R0lGODlhAQABAAAAACw="

// imageBlock is an image as a host of each format has it.
func imageBlock(format string) string {
	switch format {
	case message.FormatOpenAI:
		return `{"type":"image_url","image_url":{"url":"data:image/gif;base64,` + gif + `"}}`
	case message.FormatAnthropic:
		return `{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"` + gif + `"}}`
	}
	return `{"type":"image","mimeType":"image/gif","data":"` + gif + `"}`
}

// pictured returns turns of a request with an image, some of them nothing else, a call whose result shows another one, and an answer.
func pictured(t *testing.T, format string, turns int) []message.Message {
	t.Helper()
	c, err := message.Lookup(format)
	if err != nil {
		t.Fatal(err)
	}
	var out []message.Message
	add := func(raw string, args ...any) {
		t.Helper()
		m, err := c.Decode(fmt.Appendf(nil, raw, args...))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	img := imageBlock(format)
	for i := range turns {
		if i%3 == 1 {
			add(`{"role":"user","content":[%s]}`, img)
		} else {
			add(`{"role":"user","content":[{"type":"text","text":"please look at number %d"},%s]}`, i, img)
		}
		switch format {
		case message.FormatOpenAI:
			add(`{"role":"assistant","content":null,"tool_calls":[{"id":"a%[1]d","type":"function","function":{"name":"see","arguments":"{}"}},{"id":"b%[1]d","type":"function","function":{"name":"see","arguments":"{}"}}]}`, i)
			add(`{"role":"tool","tool_call_id":"a%d","content":[{"type":"text","text":"seen first"},%s]}`, i, img)
			add(`{"role":"tool","tool_call_id":"b%d","content":"seen second"}`, i)
		case message.FormatAnthropic:
			add(`{"role":"assistant","content":[{"type":"tool_use","id":"a%[1]d","name":"see","input":{}},{"type":"tool_use","id":"b%[1]d","name":"see","input":{}}]}`, i)
			add(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a%[1]d","content":[{"type":"text","text":"seen first"},%[2]s]},{"type":"tool_result","tool_use_id":"b%[1]d","content":"seen second"}]}`, i, img)
		default:
			add(`{"role":"assistant","content":[{"type":"toolCall","id":"a%[1]d","name":"see","arguments":{}},{"type":"toolCall","id":"b%[1]d","name":"see","arguments":{}}],"stopReason":"toolUse"}`, i)
			add(`{"role":"toolResult","toolCallId":"a%d","toolName":"see","isError":false,"content":[{"type":"text","text":"seen first"},%s]}`, i, img)
			add(`{"role":"toolResult","toolCallId":"b%d","toolName":"see","isError":false,"content":[{"type":"text","text":"seen second"}]}`, i)
		}
		add(`{"role":"assistant","content":[{"type":"text","text":"number %d is fine"}],"stopReason":"stop"}`, i)
	}
	return out
}

// wire encodes what was assembled as a host does.
func wire(t *testing.T, res core.AssembleResult, format string) string {
	t.Helper()
	var b strings.Builder
	for _, m := range res.Messages {
		pieces := message.Split(m, format)
		if len(pieces) != 1 {
			t.Errorf("a message takes %d of the host's", len(pieces))
		}
		for _, p := range pieces {
			raw, err := message.Encode(p, format)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(raw)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// recost counts a prompt from its messages, an image as 1600.
func recost(t *testing.T, text string) int {
	t.Helper()
	return wordCounter(text) + 1600*strings.Count(text, gif)
}

func masking(t *testing.T, change func(*mask.Config)) func(*engine.Config, *engine.Parts) {
	t.Helper()
	cfg := mask.DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	m, err := mask.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return func(_ *engine.Config, p *engine.Parts) { p.Compactor = m }
}

func (f *fixture) forceCompact(budget int) core.CompactResult {
	f.t.Helper()
	res, err := f.engine.Compact(f.t.Context(), core.CompactRequest{Session: f.id, Budget: budget, Force: true})
	if err != nil {
		f.t.Fatal(err)
	}
	return res
}

func TestOldImagesLeaveTheWindow(t *testing.T) {
	const turns, budget = 9, 100000
	for _, format := range message.Formats() {
		t.Run(format, func(t *testing.T) {
			f := newFixture(t, masking(t, func(c *mask.Config) { c.KeepResults = 2 }))
			msgs := pictured(t, format, turns)
			f.ingest(msgs...)
			before := wire(t, f.assemble(budget), format)
			if n := strings.Count(before, gif); n != 2*turns {
				t.Fatalf("%d images are shown at first, want %d", n, 2*turns)
			}
			if again := wire(t, f.assemble(budget), format); again != before {
				t.Error("images leave without a compaction")
			}
			if res := f.forceCompact(12000); !res.Compacted {
				t.Fatalf("Compact = %+v", res)
			}
			res := f.assemble(budget)
			after := wire(t, res, format)
			if n := strings.Count(after, gif); n < 2 || n > 5 {
				t.Errorf("%d images are left, want those of the newest turns", n)
			}
			if n := strings.Count(after, "[image not shown: image/gif, 1x1, 14 bytes; entry "); n+strings.Count(after, gif) != 2*turns {
				t.Errorf("%d notes and %d images, of %d", n, strings.Count(after, gif), 2*turns)
			}
			for i := range turns {
				if i%3 != 1 && !strings.Contains(after, fmt.Sprintf("please look at number %d", i)) {
					t.Errorf("what the user said in turn %d is gone", i)
				}
			}
			if n := recost(t, after); res.EstimatedTokens < n {
				t.Errorf("%d tokens are estimated, %d words and images are shown", res.EstimatedTokens, n)
			}
			// The host hands the output back; nothing is new.
			stored := f.stored()
			back := f.assemble(budget, transcript("", res.Messages...))
			if got := wire(t, back, format); got != after || f.stored() != stored {
				t.Errorf("fed with its own output: %d entries more, the same bytes: %v", f.stored()-stored, got == after)
			}
			f.restart()
			if got := wire(t, f.assemble(budget, transcript("", msgs...)), format); got != after || f.stored() != stored {
				t.Errorf("after a restart, with the host's transcript: %d entries more, the same bytes: %v\n%s\n%s", f.stored()-stored, got == after, got, after)
			}
			if res := f.forceCompact(12000); res.TokensAfter > res.TokensBefore {
				t.Errorf("a second compaction: %+v", res)
			}
		})
	}
}

func TestPastedTextComesBackInPages(t *testing.T) {
	f := newFixture(t, masking(t, func(c *mask.Config) { c.PayloadTokens = 2000 }))
	var log strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&log, "line %d of the log\n", i)
	}
	text := "never touch the archive\n" + log.String() + "why does it fail?"
	ids := f.ingest(user(text), assistant("looking"), user("and now?"), assistant("now it works")).IDs
	f.assemble(100000)
	f.forceCompact(8000)
	got := shown(f.assemble(100000))
	if !strings.Contains(got, "never touch the archive") || !strings.Contains(got, "why does it fail?") || !strings.Contains(got, " tokens in all; entry "+ids[0]+" ...]") {
		t.Errorf("window = %.80q ... %.200q", got, got[max(0, len(got)-200):])
	}
	if n := wordCounter(got); n > 1100 {
		t.Errorf("%d words are shown", n)
	}
	d, err := f.engine.Describe(t.Context(), engine.DescribeRequest{Session: f.id})
	if err != nil || d.Shortened != 1 || !strings.Contains(d.Text, "> [... shortened, ") || !strings.Contains(d.Text, ids[0]) {
		t.Errorf("Describe = %q, %v", d.Text, err)
	}
	var read strings.Builder
	for offset, pages := 0, 0; ; pages++ {
		page, err := f.engine.Expand(t.Context(), engine.ExpandRequest{Session: f.id, ID: ids[0], Offset: offset, Tokens: 4000})
		if err != nil || page.Total != len(text) || pages > 100 {
			t.Fatalf("Expand at %d: total %d, %v", offset, page.Total, err)
		}
		read.WriteString(page.Found[0].Excerpt)
		if offset = page.Next; offset == 0 {
			break
		}
	}
	if read.String() != text {
		t.Errorf("the pages hold %d bytes, want the %d of the text", read.Len(), len(text))
	}
}

func TestImagesAreDescribed(t *testing.T) {
	f := newFixture(t, masking(t, func(c *mask.Config) { c.KeepImages = 0 }))
	msgs := pictured(t, message.FormatAnthropic, 4)
	doc, err := decoded(message.FormatAnthropic, `{"role":"user","content":[{"type":"document","title":"Rules","source":{"type":"text","media_type":"text/plain","data":"`+strings.Repeat("always write tests ", 200)+`"}},{"type":"text","text":"keep to these"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	ids := f.ingest(append([]message.Message{doc}, msgs...)...).IDs
	f.assemble(100000)
	f.forceCompact(16000)
	for id, want := range map[string][]string{
		ids[0]: {`(document: text/plain, 3800 bytes, "Rules") always write tests always`, "keep to these"},
		ids[1]: {"please look at number 0", "(image: image/gif, 1x1, 14 bytes; stored whole, its data is no text)"},
		ids[3]: {"seen first\n> (image: image/gif, 1x1, 14 bytes; stored whole, its data is no text)\n> seen second"},
	} {
		got, err := f.engine.Expand(t.Context(), engine.ExpandRequest{Session: f.id, ID: id, Tokens: 8000})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(got.Text, w) {
				t.Errorf("Expand(%s) = %.300q, want %q", id, got.Text, w)
			}
		}
	}
	d, err := f.engine.Describe(t.Context(), engine.DescribeRequest{Session: f.id})
	if err != nil || !strings.Contains(d.Text, "> [image not shown: image/gif, 1x1, 14 bytes; entry "+ids[1]+"]\n") {
		t.Errorf("Describe = %q, %v", d.Text, err)
	}
	found, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "document Rules"})
	if err != nil || len(found.Found) == 0 || found.Found[0].ID != ids[0] {
		t.Errorf("Search = %+v, %v", found, err)
	}
}

func decoded(format, raw string) (message.Message, error) {
	c, err := message.Lookup(format)
	if err != nil {
		return message.Message{}, err
	}
	return c.Decode([]byte(raw))
}

// Where the newest messages do not fit, images give way before any of the words.
func TestImagesGiveWayBeforeWords(t *testing.T) {
	f := newFixture(t)
	m, err := decoded(message.FormatOpenAI, `{"role":"user","content":[{"type":"text","text":"`+strings.Repeat("word ", 300)+`"},`+imageBlock(message.FormatOpenAI)+`]}`)
	if err != nil {
		t.Fatal(err)
	}
	f.ingest(m)
	res := f.assemble(1000)
	got := wire(t, res, message.FormatOpenAI)
	if strings.Contains(got, gif) || strings.Count(got, "word ") < 299 || !strings.Contains(got, "[image not shown: ") {
		t.Errorf("window = %s", got)
	}
	if again := wire(t, f.assemble(1000), message.FormatOpenAI); again != got {
		t.Errorf("again = %s", again)
	}
	got = wire(t, f.assemble(150), message.FormatOpenAI)
	if strings.Contains(got, gif) || !strings.Contains(got, "[image not shown: ") || !strings.Contains(got, "shortened") {
		t.Errorf("smaller still = %s", got)
	}
	var budget *core.BudgetError
	if _, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 10, PromptMode: core.PromptNone}); !errors.As(err, &budget) {
		t.Errorf("Assemble = %v, want a budget error", err)
	}
}

// What rules leave out has no room to give: a result whose call has left the window saves nothing, and the image that is shown gives way.
func TestWhatIsLeftOutGivesNoRoom(t *testing.T) {
	f := newFixture(t)
	const results = 5
	var list []message.Message
	add := func(raw string) {
		t.Helper()
		m, err := decoded(message.FormatOpenAI, raw)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	img := imageBlock(message.FormatOpenAI)
	add(`{"role":"user","content":"look"}`)
	var calls []string
	for i := range results {
		calls = append(calls, fmt.Sprintf(`{"id":"%d","type":"function","function":{"name":"see","arguments":"{}"}}`, i))
	}
	add(`{"role":"assistant","content":null,"tool_calls":[` + strings.Join(calls, ",") + `]}`)
	for i := range results {
		add(fmt.Sprintf(`{"role":"tool","tool_call_id":"%d","content":[{"type":"text","text":"seen"},%s]}`, i, img))
	}
	add(`{"role":"assistant","content":"this is what it shows"}`)
	f.ingest(list...)
	add(`{"role":"user","content":[{"type":"text","text":"the host's own line"},` + img + `]}`)
	got := wire(t, f.assemble(800, transcript("", append(list[results+3:], list[2:results+3]...)...)), message.FormatOpenAI)
	if !strings.Contains(got, "the host's own line") || !strings.Contains(got, "this is what it shows") || strings.Contains(got, gif) {
		t.Errorf("window = %s", got)
	}
}

// TestWordsBesideImages: a prompt with images that fills the budget gives way to what comes behind it, word by word.
func TestWordsBesideImages(t *testing.T) {
	prompt, err := decoded(message.FormatOpenAI, `{"role":"user","content":[{"type":"text","text":"look at this `+strings.Repeat("word ", 900)+`"},`+strings.Repeat(imageBlock(message.FormatOpenAI)+",", 3)+imageBlock(message.FormatOpenAI)+`]}`)
	if err != nil {
		t.Fatal(err)
	}
	for budget := 120; budget < 400; budget += 7 {
		f := newFixture(t)
		f.ingest(prompt)
		f.assemble(budget)
		for range 3 {
			f.ingest(user(""))
			f.assemble(budget)
		}
		f.ingest(user("and now?"))
		if got := shown(f.assemble(budget)); !strings.Contains(got, "and now?") {
			t.Errorf("budget %d: shown: %q", budget, got)
		}
	}
}
