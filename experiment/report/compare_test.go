package report_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
	"github.com/contextengine/contextengine/experiment/report"
)

func TestWindowFromExplainsEveryToken(t *testing.T) {
	t.Parallel()
	s := conversation(60)
	res := s.answer(30, 60, true, 5, 9)
	c := report.WindowFrom(7, 3, 8000, res, s.lookup)
	sum := 0
	for _, p := range c.In {
		sum += p.Tokens
	}
	if sum != res.EstimatedTokens || c.Tokens != res.EstimatedTokens {
		t.Errorf("pieces cost %d, the call says %d, the engine %d", sum, c.Tokens, res.EstimatedTokens)
	}
	var recalled, out int
	for _, p := range c.In {
		if p.Reason == window.ReasonRecalled {
			recalled++
			if p.Text == "" || p.Source != "lexical" || p.Role == "" {
				t.Errorf("recalled piece %+v says too little", p)
			}
		}
	}
	for _, p := range c.Out {
		out += p.Count
	}
	if recalled != 2 || out != 31 {
		t.Errorf("%d recalled and %d out, want 2 and 31", recalled, out)
	}
}

func TestWindowFromWithoutChoices(t *testing.T) {
	t.Parallel()
	c := report.WindowFrom(1, 1, 100, core.AssembleResult{EstimatedTokens: 40, Choices: []window.Choice{{Message: 9, Entry: "x", Reason: window.OutRule}}}, nil)
	if len(c.In) != 1 || c.In[0].Tokens != 40 || len(c.Out) != 1 {
		t.Errorf("got %+v", c)
	}
}

func TestWindowFromKeepsExcerptsShort(t *testing.T) {
	t.Parallel()
	m := message.New(message.Tool, strings.Repeat("ж\x00", 5<<20))
	c := report.WindowFrom(1, 1, 100, core.AssembleResult{Messages: []message.Message{m}, Choices: []window.Choice{{Message: 0, Count: 1, Reason: window.ReasonTail}}}, nil)
	if n := len(c.In[0].Text); n == 0 || n > 2000 {
		t.Errorf("an excerpt of %d bytes", n)
	}
}

// shown is a prompt of entries whose text is their id.
func shown(out []window.Choice, entries ...string) core.AssembleResult {
	r := core.AssembleResult{}
	for i, e := range entries {
		id, text, cut := strings.Cut(e, ":")
		if !cut {
			text = id
		}
		r.Messages = append(r.Messages, message.New(message.User, text))
		c := window.Choice{Message: i, Entry: id, Count: 1, Reason: window.ReasonTail, Tokens: 1}
		r.EstimatedTokens++
		if cut {
			c.Stub = window.Clipped
		}
		r.Choices = append(r.Choices, c)
	}
	r.Choices = append(r.Choices, out...)
	return r
}

func rows(t report.TurnCompare) []string {
	var out []string
	for _, r := range t.Rows {
		s := [...]string{"=", "A", "B", "~"}[r.Difference]
		switch {
		case r.Difference != report.OnlyB:
			s += r.A.Entry
		default:
			s += r.B.Entry
		}
		if len(r.What) > 0 {
			s += " " + strings.Join(r.What, ",")
		}
		out = append(out, s)
	}
	return out
}

func TestCompareTurns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		a, b []string
		want []string
	}{
		"equal":     {[]string{"1", "2"}, []string{"1", "2"}, []string{"=1", "=2"}},
		"only one":  {[]string{"1", "2", "4"}, []string{"2", "3", "4"}, []string{"A1", "=2", "B3", "=4"}},
		"clipped":   {[]string{"1", "2"}, []string{"1", "2:short"}, []string{"=1", "~2 length,text"}},
		"elsewhere": {[]string{"1", "2", "3"}, []string{"2", "3", "1"}, []string{"~1 place", "=2", "=3"}},
		"nothing":   {nil, []string{"1"}, []string{"B1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := rows(report.CompareTurns("t", report.Turn{Arm: "a", Result: shown(nil, tc.a...)}, report.Turn{Arm: "b", Result: shown(nil, tc.b...)}))
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCompareTurnsAcrossStores(t *testing.T) {
	t.Parallel()
	out := []window.Choice{{Message: -1, Entry: "b0", Count: 1, Reason: window.OutRule}}
	c := report.CompareTurns("t",
		report.Turn{Result: shown(nil, "a0", "a1"), IDs: []string{"a0", "a1"}},
		report.Turn{Result: shown(out, "b1:a1"), IDs: []string{"b0", "b1"}})
	if d := cmp.Diff([]string{"Aa0", "~a1 length"}, rows(c)); d != "" {
		t.Error(d)
	}
	if c.Rows[0].B == nil || c.Rows[0].B.Reason != window.OutRule {
		t.Error("the reason of the arm that leaves the entry out is lost")
	}
}
