package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"math"

	"github.com/wcharczuk/go-chart/v2"
)

// The most calls and pieces of one composition that are shown.
const (
	maxCalls  = 240
	maxPieces = 60000
)

// windowView is a composition as the template shows it.
type windowView struct {
	ID    string
	Chart *chartView
	// Data is what the page's script picks a call from.
	Data  template.JS
	Calls int
}

// windowData is read by the page's script, which knows the order of fields.
type windowData struct {
	// Pieces hold each distinct piece once: entry, role, reason, group, tokens, stub, count, score, source, text.
	Pieces [][]any    `json:"pieces"`
	Groups []string   `json:"groups"`
	Calls  []callData `json:"calls"`
}

type callData struct {
	Number   int    `json:"n"`
	Turn     int    `json:"t"`
	Budget   int    `json:"b"`
	Tokens   int    `json:"k"`
	Stepped  bool   `json:"s,omitempty"`
	Degraded string `json:"d,omitempty"`
	In       []int  `json:"in"`
	Out      []int  `json:"out"`
}

func groupNames() []string {
	return []string{"System", "Summaries", "Notes", "Pinned", "Recent history", "Recalled"}
}

func (w WindowComposition) prepare(p *page) (view, error) {
	out := view{Kind: "window", Title: w.Title, Caption: w.Caption}
	calls := w.sample(p)
	wv := &windowView{ID: p.id("window"), Calls: len(calls)}
	out.Window = wv
	if len(calls) == 0 {
		return out, nil
	}
	data, err := json.Marshal(w.data(p, calls)) // escapes <, > and &
	if err != nil {
		return view{}, fmt.Errorf("window composition %q: %w", w.Title, err)
	}
	wv.Data = template.JS(data) //nolint:gosec // JSON, with <, > and & escaped
	cv := &chartView{ID: p.id("chart"), YLabel: "Tokens in the window, by reason"}
	wv.Chart = cv
	sums := sumsOf(calls)
	for g, name := range groupNames() {
		if sums.has(g) {
			class := fmt.Sprintf("g%d", g)
			cv.Legend = append(cv.Legend, legendView{Name: name, Class: class, Kind: "bar", Swatch: barSwatch("area " + class)})
		}
	}
	last := calls[len(calls)-1]
	desc := fmt.Sprintf("Tokens of each model call, stacked by the reason they are in the window. %d calls; the last one costs %d of %d tokens.", len(calls), last.Tokens, last.Budget)
	if cv.Wide, err = sums.draw(calls, wideWidth, 300).render(w.Title, desc, cv.ID+"-w", "wide"); err != nil {
		return view{}, fmt.Errorf("window composition %q: %w", w.Title, err)
	}
	if cv.Narrow, err = sums.draw(calls, narrowWidth, 230).render(w.Title, desc, cv.ID+"-n", "narrow"); err != nil {
		return view{}, fmt.Errorf("window composition %q: %w", w.Title, err)
	}
	return out, nil
}

// sample bounds the calls, evenly, the first and the last among them.
func (w WindowComposition) sample(p *page) []WindowCall {
	n, pieces := len(w.Calls), 0
	for _, c := range w.Calls {
		pieces += len(c.In) + len(c.Out)
	}
	keep := min(n, maxCalls)
	if pieces > maxPieces {
		keep = max(2, min(keep, n*maxPieces/pieces))
	}
	if keep >= n {
		return w.Calls
	}
	p.omit("Window composition %q shows %d of %d calls, evenly chosen.", w.Title, keep, n)
	out := make([]WindowCall, 0, keep)
	for i := range keep {
		out = append(out, w.Calls[i*(n-1)/(keep-1)])
	}
	return out
}

// data lists every distinct piece once: most entries stay in the window for many calls.
func (w WindowComposition) data(p *page, calls []WindowCall) windowData {
	d := windowData{Groups: groupNames()}
	known := map[Piece]int{}
	number := func(pieces []Piece) []int {
		out := make([]int, 0, len(pieces))
		for _, pc := range pieces {
			i, ok := known[pc]
			if !ok {
				i = len(d.Pieces)
				known[pc] = i
				score := pc.Score
				if !finite(score) {
					score = 0
				}
				d.Pieces = append(d.Pieces, []any{
					clipLine(pc.Entry, 80), clipLine(string(pc.Role), 20), reasonWords(pc.Reason), reasonGroup(pc.Reason), pc.Tokens, stubWords(pc.Stub),
					pc.Count, math.Round(score*1000) / 1000, clipLine(pc.Source, 60), p.text(clipLine(pc.Text, maxShown)),
				})
			}
			out = append(out, i)
		}
		return out
	}
	for _, c := range calls {
		d.Calls = append(d.Calls, callData{
			Number: c.Number, Turn: c.Turn, Budget: c.Budget, Tokens: c.Tokens, Stepped: c.Stepped, Degraded: clipLine(c.Degraded, maxCell),
			In: number(c.In), Out: number(c.Out),
		})
	}
	return d
}

// callSums holds the tokens of each call by group.
type callSums [][6]int

func sumsOf(calls []WindowCall) callSums {
	out := make(callSums, len(calls))
	for i, c := range calls {
		for _, pc := range c.In {
			out[i][reasonGroup(pc.Reason)] += max(pc.Tokens, 0)
		}
	}
	return out
}

func (s callSums) has(group int) bool {
	for i := range s {
		if s[i][group] > 0 {
			return true
		}
	}
	return false
}

// draw stacks the groups as areas with steps, one step for each call. The position of a call is its place in the list.
func (s callSums) draw(calls []WindowCall, width, height int) *plot {
	n := len(calls)
	hi := 1
	for i, c := range calls {
		hi = max(hi, c.Budget)
		total := 0
		for _, v := range s[i] {
			total += v
		}
		hi = max(hi, total)
	}
	p := &plot{width: width, height: height, top: 10, left: 6, right: 16, y: niceAxis(0, float64(hi), height/60)}
	p.x = axis{min: 0, max: float64(n), name: "model call"}
	step := max(1, int(roundStep(float64(n)/float64(width/70), 1, 2, 5)))
	p.x.ticks = append(p.x.ticks, chart.Tick{Value: 0})
	for i := range n {
		if n > width/70 && calls[i].Number%step != 0 {
			continue
		}
		p.x.ticks = append(p.x.ticks, chart.Tick{Value: float64(i) + 0.5, Label: fmt.Sprint(calls[i].Number)})
	}
	p.x.ticks = append(p.x.ticks, chart.Tick{Value: float64(n)})
	p.draw = func(d *pen) {
		base := make([]int, n)
		for g, name := range groupNames() {
			if !s.has(g) {
				continue
			}
			var up, down []int
			most := 0
			for i := range n {
				top := base[i] + s[i][g]
				most = max(most, s[i][g])
				x0, y1 := d.at(float64(i), float64(top))
				x1, y0 := d.at(float64(i)+1, float64(base[i]))
				up = append(up, x0, y1, x1, y1)
				down = append(down, y0, x0, y0, x1) // turned around below
				base[i] = top
			}
			for k := len(down) - 1; k > 0; k -= 2 {
				up = append(up, down[k], down[k-1])
			}
			d.path(fmt.Sprintf("area g%d", g)+d.p.tip("%s: up to %s tokens", name, formatNumber(float64(most), 0)), true, nil, up...)
		}
		var line []int
		for i, c := range calls {
			x0, y := d.at(float64(i), float64(c.Budget))
			x1, _ := d.at(float64(i)+1, 0)
			line = append(line, x0, y, x1, y)
		}
		d.path("budget"+d.p.tip("Budget"), false, []float64{6, 4}, line...)
		_, bottom := d.at(0, 0)
		x0, top := d.at(0, p.y.max)
		x1, _ := d.at(1, 0)
		d.rect("cursor", x0, top, max(x1, x0+2), bottom)
	}
	return p
}
