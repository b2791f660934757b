package report_test

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
	"github.com/contextengine/contextengine/experiment/report"
)

// hostile is what a conversation may hold and a page must not obey.
const hostile = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"> \x00\x1b[31m \u202Eright to left\u202C & 中文 ไทย"

// sample is a report with every kind of section.
func sample() report.Report {
	return report.Report{
		Title:     "Recent history against hybrid recall",
		Subtitle:  "Two arms over 40 conversations: how much of the evidence reaches the window, at what cost and how fast.",
		Generated: time.Date(2026, 5, 4, 9, 30, 0, 0, time.UTC),
		Facts: []report.Fact{
			{Name: "Data", Value: "locomo, development half"}, {Name: "Questions", Value: "986"}, {Name: "Seed", Value: "7"},
			{Name: "Command", Value: "contextengine evaluate locomo --config recent --config hybrid"},
		},
		Sections: []report.Section{
			report.Verdicts{Title: "What the figures say", Caption: "Paired bootstrap over conversations, 95 % intervals.", Items: []report.Verdict{
				{Text: "hybrid finds more evidence: better by 14.2 points at 2k tokens, 95 % 12.9 to 15.6.", Detail: "Recall 91.4 against 77.2 over 986 questions in 40 conversations.", Tone: report.Better},
				{Text: "hybrid is slower: 1.9 ms more per call at p95, 95 % 1.6 to 2.3.", Detail: "Both stay under 10 ms.", Tone: report.Worse},
				{Text: "Temporal questions: no difference shown (1.1 points, 95 % −0.8 to 3.0).", Tone: report.Undecided},
				{Text: "The embedder was down for 12 calls; they were answered by the lexical part alone.", Tone: report.Warning},
			}},
			recallCurves(), categories(), latencies(), figures(), composition(), compareTurns(),
			report.Note{Title: "How it was measured", Paragraphs: []string{
				"Recall is the share of a question's evidence messages that are in the window. A question without evidence counts when nothing is recalled.",
				"Hostile text is shown as text: " + hostile,
			}},
		},
	}
}

func recallCurves() report.LineChart {
	c := report.LineChart{
		Title: "Recall against budget", Caption: "Evidence that reaches the window. Shaded: 95 % confidence interval over conversations.",
		XLabel: "recall budget", XUnit: "tokens", YLabel: "Evidence recall", YUnit: "%", LogX: true,
	}
	for i, name := range []string{"recent", "lexical", "hybrid", "hybrid <wide & deep>"} {
		s := report.Series{Name: name}
		for k, x := range []float64{256, 512, 1024, 2048, 4096, 8192} {
			y := 97 - (52-float64(i)*10)*math.Exp(-float64(k)*(0.28+0.07*float64(i)))
			half := 2.6 - 0.25*float64(k)
			s.Points = append(s.Points, report.Point{X: x, Y: y, Low: y - half, High: y + half*0.9})
		}
		c.Series = append(c.Series, s)
	}
	return c
}

func categories() report.BarChart {
	c := report.BarChart{
		Title: "Recall by category", Caption: "At 2,048 tokens. Whiskers: 95 % confidence interval over conversations.",
		Label: "Evidence recall", Unit: "%", Arms: []string{"recent", "lexical", "hybrid"},
	}
	for i, name := range []string{"Single-hop", "Multi-hop", "Temporal", "Open domain", "Adversarial"} {
		g := report.BarGroup{Name: name, Count: 420 - 70*i}
		for k := range 3 {
			v := 58 + float64(k)*13 - float64(i)*4.3
			g.Values = append(g.Values, report.Value{Value: v, Low: v - 2 - float64(i), High: v + 2 + float64(i)})
		}
		c.Groups = append(c.Groups, g)
	}
	c.Groups[4].Values[0] = report.Value{Value: math.NaN()}
	return c
}

func latencies() report.Latency {
	return report.Latency{Title: "Time to assemble", Caption: "One thread, warm.", Arms: []report.ArmLatency{
		{Arm: "recent", P50: 0.42, P95: 0.91, Count: 4210}, {Arm: "lexical", P50: 0.88, P95: 1.74, Count: 4210}, {Arm: "hybrid", P50: 1.31, P95: 2.86, Count: 4210},
	}}
}

func figures() report.Table {
	t := report.Table{Title: "All figures", Caption: "Sort by any column.", Columns: []report.Column{
		{Name: "Arm"}, {Name: "Category"}, {Name: "Recall at 2k", Unit: "%"}, {Name: "Window", Unit: "tokens"}, {Name: "Assemble p50", Unit: "ms"}, {Name: "Index", Unit: "MB"},
	}}
	for i, arm := range []string{"recent", "lexical", "hybrid"} {
		for k, cat := range []string{"Single-hop", "Multi-hop", "Temporal", "Open domain"} {
			v := 58 + float64(i)*13 - float64(k)*4.3
			index := report.Number(float64(i)*104.5+float64(k)*9.25, 1)
			if i == 0 {
				index = report.Number(math.NaN(), 1)
			}
			t.Rows = append(t.Rows, []report.Cell{
				report.Text(arm), report.Text(cat), report.Estimate(report.Value{Value: v, Low: v - 2.1, High: v + 2.2}, 1),
				report.Count(900 + 7777*i + 311*k), report.Number(0.42+0.44*float64(i), 2), index,
			})
		}
	}
	return t
}

// session is a conversation of so many messages with an answer of an engine for a call in it.
type session struct {
	messages []message.Message
	ids      []string
}

func conversation(n int) session {
	var s session
	for i := range n {
		role := []message.Role{message.User, message.Assistant, message.Tool}[i%3]
		text := fmt.Sprintf("Message %d: the deployment of service %d failed with code E%04d in v1.%d.0.", i, i%7, 1000+i, i%9)
		switch {
		case i == 5:
			text = hostile
		case i%3 == 2:
			text = strings.Repeat(fmt.Sprintf("log line %d of the build; ", i), 60)
		}
		m := message.New(role, text)
		s.messages, s.ids = append(s.messages, m), append(s.ids, fmt.Sprintf("e%03d", i))
	}
	return s
}

func (s session) lookup(id string) (message.Message, bool) {
	for i := range s.ids {
		if s.ids[i] == id {
			return s.messages[i], true
		}
	}
	return message.Message{}, false
}

// answer is the window behind message end: a summary when it is long, the newest entries from start on, and what was recalled.
func (s session) answer(start, end int, summary bool, recalled ...int) core.AssembleResult {
	r := core.AssembleResult{SystemPromptAddition: "Older history can be recalled.", Stepped: end%16 == 0}
	add := func(m message.Message, c window.Choice) {
		c.Message, c.Count = len(r.Messages), 1
		r.Messages, r.Choices = append(r.Messages, m), append(r.Choices, c)
		r.EstimatedTokens += c.Tokens
	}
	if summary && start > 0 {
		add(message.New(message.User, fmt.Sprintf("Summary of the first %d messages: deployments failed, the cause was a missing migration.", start)),
			window.Choice{Entry: "sum-1", Reason: window.ReasonSummary, Tokens: 240})
		r.Choices = append(r.Choices, window.Choice{Message: -1, Count: start, Reason: window.OutCompacted})
	} else if start > 0 {
		add(message.New(message.User, fmt.Sprintf("[%d earlier messages are not shown]", start)), window.Choice{Reason: window.ReasonNote, Tokens: 18})
		r.Choices = append(r.Choices, window.Choice{Message: -1, Count: start, Reason: window.OutBudget, Tokens: 180 * start})
	}
	for i := start; i < end; i++ {
		c := window.Choice{Entry: s.ids[i], Reason: window.ReasonTail, Tokens: 60 + 37*(i%5)}
		m := s.messages[i]
		if i%3 == 2 && !summary {
			c.Stub, c.Tokens = window.Clipped, 48
			m = message.New(m.Role, m.Text()[:120]+" […]")
		}
		add(m, c)
	}
	if len(recalled) > 0 {
		at := len(r.Messages)
		var block strings.Builder
		for _, i := range recalled {
			block.WriteString("> " + s.messages[i].Text() + "\n")
			r.Choices = append(r.Choices, window.Choice{Message: at, Entry: s.ids[i], Count: 1, Reason: window.ReasonRecalled, Score: 0.5 + float64(i)/100, Source: "lexical"})
		}
		add(message.New(message.User, block.String()), window.Choice{Reason: window.ReasonNote, Tokens: 90 * len(recalled)})
		r.RecallAt, r.RecallLen = at, 1
		r.Choices = append(r.Choices, window.Choice{Message: -1, Entry: s.ids[1], Count: 1, Reason: window.OutAllowance, Tokens: 130, Score: 0.21, Source: "lexical"})
	}
	r.EstimatedTokens += 12 // the addition
	return r
}

func composition() report.WindowComposition {
	s := conversation(96)
	w := report.WindowComposition{Title: "The window over a session", Caption: "Each step is one model call. Pick a call to see which entries are in, why, and what they cost."}
	for i := range 48 {
		end := 2*i + 2
		start := 0
		if end > 32 {
			start = (end - 32) / 16 * 16
		}
		var recalled []int
		if start > 8 {
			recalled = []int{3, 5, 7}
		}
		w.Calls = append(w.Calls, report.WindowFrom(i+1, end/3+1, 8000, s.answer(start, end, start > 32, recalled...), s.lookup))
	}
	return w
}

func compareTurns() report.TurnCompare {
	a, b := conversation(60), conversation(60)
	for i := range b.ids {
		b.ids[i] = fmt.Sprintf("other-%d", i)
	}
	return report.CompareTurns("Turn 20 under both arms",
		report.Turn{Arm: "recent", Budget: 8000, Result: a.answer(28, 60, false), IDs: a.ids, Lookup: a.lookup},
		report.Turn{Arm: "hybrid", Budget: 8000, Result: b.answer(36, 60, true, 5, 9, 30), IDs: b.ids, Lookup: b.lookup})
}
