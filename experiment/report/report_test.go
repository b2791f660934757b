package report_test

import (
	"bytes"
	"errors"
	"html"
	"math"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/contextengine/contextengine/experiment/report"
)

func write(t *testing.T, r report.Report) string {
	t.Helper()
	var buf bytes.Buffer
	n, err := r.WriteTo(&buf)
	if err != nil {
		t.Fatal(err)
	}
	if n != int64(buf.Len()) {
		t.Errorf("WriteTo returned %d, wrote %d", n, buf.Len())
	}
	return buf.String()
}

func of(sections ...report.Section) report.Report {
	return report.Report{Title: "t", Sections: sections}
}

func TestSameReportSameBytes(t *testing.T) {
	t.Parallel()
	first, second := write(t, sample()), write(t, sample())
	if first != second {
		t.Error("two pages of the same report differ")
	}
}

func TestPageAsksForNothing(t *testing.T) {
	t.Parallel()
	page := write(t, sample())
	if i := regexp.MustCompile(`(?i)https?:|//cdn|@import|url\([^#]|\ssrc=["']|<link|<iframe|<object`).FindStringIndex(strings.ReplaceAll(page, "img src=x", "")); i != nil {
		t.Errorf("the page names something outside: %q", page[max(i[0]-40, 0):min(i[1]+60, len(page))])
	}
	for _, want := range []string{"default-src 'none'", "script-src 'sha256-", "style-src 'sha256-"} {
		if !strings.Contains(html.UnescapeString(page), want) {
			t.Errorf("the policy lacks %q", want)
		}
	}
	if strings.Contains(page, " style=") || strings.Contains(page, "unsafe") {
		t.Error("the page needs a weaker policy")
	}
}

func TestHostileTextIsText(t *testing.T) {
	t.Parallel()
	tags := func(s string) int { return strings.Count(s, "<script") + strings.Count(s, "<img") }
	text := func(s string) report.Report {
		c := recallCurves()
		c.Title, c.Caption, c.XLabel, c.YLabel, c.XUnit = s, s, s, s, s
		c.Series[0].Name = s
		b := categories()
		b.Title, b.Label, b.Unit, b.Arms[0], b.Groups[0].Name = s, s, s, s, s
		l := latencies()
		l.Arms[0].Arm, l.Unit = s, s
		w := composition()
		w.Calls[0].In[0].Text, w.Calls[0].In[0].Entry, w.Calls[0].In[0].Source, w.Calls[0].Degraded = s, s, s, s
		w.Calls[0].In[0].Role, w.Calls[0].In[0].Reason, w.Calls[0].In[0].Stub = "x", "odd", "odd"
		p := compareTurns()
		p.A.Arm, p.Rows[0].A.Text = s, s
		return report.Report{Title: s, Subtitle: s, Facts: []report.Fact{{Name: s, Value: s}}, Sections: []report.Section{
			c, b, l, w, p, report.Note{Title: s, Paragraphs: []string{s}}, report.Verdicts{Title: s, Items: []report.Verdict{{Text: s, Detail: s}}},
			report.Table{Title: s, Caption: s, Columns: []report.Column{{Name: s, Unit: s}}, Rows: [][]report.Cell{{report.Text(s)}}},
		}}
	}
	tame, wild := write(t, text("tame")), write(t, text(hostile))
	if tags(tame) != tags(wild) {
		t.Errorf("%d scripts and images with hostile text, %d without", tags(wild), tags(tame))
	}
	if strings.ContainsAny(wild, "\x00\x1b\u202e") {
		t.Error("control characters reach the page")
	}
	if !utf8.ValidString(write(t, text("a\xff\xfe\x80"))) {
		t.Error("bytes that are no text reach the page")
	}
}

func TestFileStaysBounded(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("ж", 3<<20)
	w := report.WindowComposition{Title: "w"}
	for i := range 2000 {
		c := report.WindowCall{Number: i + 1, Turn: i, Budget: 1000}
		for k := range 60 {
			c.In = append(c.In, report.Piece{Entry: strings.Repeat("e", 9), Count: 1, Tokens: i*60 + k, Text: big[:2000]})
		}
		w.Calls = append(w.Calls, c)
	}
	tb := report.Table{Title: "tb", Columns: []report.Column{{Name: "c"}}}
	for range 5000 {
		tb.Rows = append(tb.Rows, []report.Cell{report.Text(big[:400])})
	}
	page := write(t, of(w, tb, report.Note{Paragraphs: []string{big}}))
	if len(page) > 24<<20 {
		t.Errorf("page of %d bytes", len(page))
	}
	for _, want := range []string{"Left out of this file", "of 2000 calls", "first 2000 of 5000 rows"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	if _, err := (report.Report{}).WriteTo(&bytes.Buffer{}); !errors.Is(err, report.ErrEmpty) {
		t.Errorf("an empty report: %v", err)
	}
	for name, s := range map[string]report.Section{
		"short row":      report.Table{Columns: []report.Column{{Name: "a"}, {Name: "b"}}, Rows: [][]report.Cell{{report.Count(1)}}},
		"no columns":     report.Table{},
		"values to arms": report.BarChart{Arms: []string{"a"}, Groups: []report.BarGroup{{}}},
		"log of zero":    report.LineChart{LogX: true, Series: []report.Series{{Points: []report.Point{{X: 0, Y: 1}}}}},
	} {
		var buf bytes.Buffer
		if _, err := of(s).WriteTo(&buf); err == nil || buf.Len() > 0 {
			t.Errorf("%s: error %v, %d bytes written", name, err, buf.Len())
		}
	}
}

func TestNothingToDraw(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	page := write(t, of(
		report.LineChart{Title: "a", Series: []report.Series{{Name: "s", Points: []report.Point{{X: nan, Y: 1}, {X: 1, Y: math.Inf(1)}}}}},
		report.BarChart{Title: "b", Arms: []string{"x"}, Groups: []report.BarGroup{{Name: "g", Values: []report.Value{{Value: nan}}}}},
		report.Latency{Title: "c"}, report.WindowComposition{Title: "d"}, report.TurnCompare{Title: "e"}, report.Verdicts{}, report.Note{},
	))
	if n := strings.Count(page, "nothing to draw"); n != 3 {
		t.Errorf("%d of 3 charts say that there is nothing to draw", n)
	}
}

func TestOddCharts(t *testing.T) {
	t.Parallel()
	one := report.LineChart{Title: "one point", Series: []report.Series{{Name: "s", Points: []report.Point{{X: 3, Y: 3}}}}}
	flat := report.LineChart{Title: "flat", Series: []report.Series{{Name: "s", Points: []report.Point{{X: 1, Y: 0}, {X: 2, Y: 0}}}}}
	below := report.BarChart{Title: "below zero", Arms: []string{"a"}, Groups: []report.BarGroup{{Name: "g", Values: []report.Value{{Value: -3, Low: -4, High: -2}}}}}
	many := report.LineChart{Title: "many"}
	for range 20 {
		s := report.Series{Name: "s"}
		for k := range 100 {
			s.Points = append(s.Points, report.Point{X: float64(100 - k), Y: 1e7 * float64(k)})
		}
		many.Series = append(many.Series, s)
	}
	call := report.WindowComposition{Title: "one call", Calls: []report.WindowCall{{Number: 1, Budget: 10, Tokens: 5}}}
	page := write(t, of(one, flat, below, many, call))
	if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") || regexp.MustCompile(`-?\d{7,} `).MatchString(page) {
		t.Error("a coordinate is not a number, or out of reach")
	}
}

func FuzzHostileText(f *testing.F) {
	for _, s := range []string{hostile, "", "a\xffb", "]]>", "<!--", "{{.}}", "\u2028"} {
		f.Add(s)
	}
	page := func(tb testing.TB, s string) string {
		tb.Helper()
		var buf bytes.Buffer
		r := report.Report{Title: s, Sections: []report.Section{
			report.Note{Title: s, Paragraphs: []string{s}},
			report.LineChart{Title: s, XLabel: s, YUnit: s, Series: []report.Series{{Name: s, Points: []report.Point{{X: 1, Y: 1}, {X: 2, Y: 2}}}}},
			report.WindowComposition{Calls: []report.WindowCall{{Budget: 9, In: []report.Piece{{Entry: s, Text: s, Source: s, Tokens: 1}}}}},
			report.TurnCompare{Rows: []report.CompareRow{{Difference: report.OnlyA, A: &report.Piece{Text: s}}}},
		}}
		if _, err := r.WriteTo(&buf); err != nil {
			tb.Fatal(err)
		}
		return strings.ReplaceAll(buf.String(), "<wbr>", "") // where names may break depends on them
	}
	elements := regexp.MustCompile(`<[a-zA-Z!/]`)
	f.Fuzz(func(t *testing.T, s string) {
		tame := "tame"
		if strings.TrimSpace(s) == "" {
			return // an empty title has no heading
		}
		got := page(t, s)
		if a, b := len(elements.FindAllString(page(t, tame), -1)), len(elements.FindAllString(got, -1)); a != b {
			t.Errorf("%d elements with this text, %d with another", b, a)
		}
		if !utf8.ValidString(got) {
			t.Error("not UTF-8")
		}
	})
}
