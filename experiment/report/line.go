package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
)

// chartView is a chart as the template shows it: drawn for a wide and for a narrow page, with a legend beside and its figures below.
type chartView struct {
	ID           string
	YLabel       string
	Wide, Narrow template.HTML
	Legend       []legendView
	Figures      *tableView
}

// legendView is an entry of a legend: Class is the series', Kind "line" or "bar".
type legendView struct {
	Name, Class, Kind string
	Swatch            template.HTML
}

// The sizes of charts in pixels of their own.
const (
	wideWidth, narrowWidth   = 1000, 340
	wideHeight, narrowHeight = 360, 270
	maxSeries                = 12
)

func (c LineChart) prepare(p *page) (view, error) {
	out := view{Kind: "chart", Title: c.Title, Caption: c.Caption}
	series, err := c.clean(p)
	if err != nil {
		return view{}, err
	}
	cv := &chartView{ID: p.id("chart"), YLabel: label(c.YLabel, c.YUnit)}
	out.Chart = cv
	if cv.Figures, err = c.figures(p, series); err != nil {
		return view{}, err
	}
	drawable := slices.ContainsFunc(series, func(s Series) bool { return len(s.Points) > 0 })
	if !drawable {
		return out, nil
	}
	for i, s := range series {
		cv.Legend = append(cv.Legend, legendView{Name: s.Name, Class: seriesClass(i), Kind: "line", Swatch: swatch(i)})
	}
	desc := c.describe(series)
	if cv.Wide, err = c.draw(series, wideWidth, wideHeight).render(c.Title, desc, cv.ID+"-w", "wide"); err != nil {
		return view{}, fmt.Errorf("line chart %q: %w", c.Title, err)
	}
	if cv.Narrow, err = c.draw(series, narrowWidth, narrowHeight).render(c.Title, desc, cv.ID+"-n", "narrow"); err != nil {
		return view{}, fmt.Errorf("line chart %q: %w", c.Title, err)
	}
	return out, nil
}

// clean returns the series with what can be drawn, in order.
func (c LineChart) clean(p *page) ([]Series, error) {
	series := c.Series
	if len(series) > maxSeries {
		p.omit("Chart %q shows the first %d of %d curves.", c.Title, maxSeries, len(series))
		series = series[:maxSeries]
	}
	out := make([]Series, len(series))
	for i, s := range series {
		out[i].Name = clipLine(s.Name, 80)
		for _, pt := range s.Points {
			if !finite(pt.X) || !finite(pt.Y) {
				continue
			}
			if c.LogX && pt.X <= 0 {
				return nil, fmt.Errorf("line chart %q: x value %g on a logarithmic axis", c.Title, pt.X)
			}
			out[i].Points = append(out[i].Points, pt)
		}
		slices.SortStableFunc(out[i].Points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
	}
	return out, nil
}

func (c LineChart) draw(series []Series, width, height int) *plot {
	translate := func(v float64) float64 { return v }
	if c.LogX {
		translate = math.Log2
	}
	var xs []float64
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, s := range series {
		for _, pt := range s.Points {
			xs = append(xs, pt.X)
			lo, hi = min(lo, pt.Y), max(hi, pt.Y)
			if v := pt.value(); v.hasInterval() {
				lo, hi = min(lo, v.Low), max(hi, v.High)
			}
		}
	}
	p := &plot{width: width, height: height, top: 10, left: 6, right: 18}
	p.x, p.y = valueAxis(xs, width-80, c.LogX, translate), niceAxis(lo, hi, height/60)
	if c.YUnit == "%" && hi <= 100 && p.y.max > 100 {
		p.y = niceAxis(lo, 100, height/60)
	}
	p.x.name = label(c.XLabel, c.XUnit)
	p.draw = func(d *pen) {
		for i, s := range series {
			d.band(i, s, translate)
		}
		for i, s := range series {
			d.curve(c, i, s, translate)
		}
	}
	return p
}

func (pt Point) value() Value { return Value{Value: pt.Y, Low: pt.Low, High: pt.High} }

// band fills the confidence intervals of a curve.
func (d *pen) band(i int, s Series, translate func(float64) float64) {
	var up, down []int
	for _, pt := range s.Points {
		if v := pt.value(); v.hasInterval() {
			x, high := d.at(translate(pt.X), v.High)
			_, low := d.at(translate(pt.X), v.Low)
			up, down = append(up, x, high), append([]int{x, low}, down...)
		}
	}
	d.path("band "+seriesClass(i), true, nil, append(up, down...)...)
}

func (d *pen) curve(c LineChart, i int, s Series, translate func(float64) float64) {
	var xy []int
	for _, pt := range s.Points {
		x, y := d.at(translate(pt.X), pt.Y)
		xy = append(xy, x, y)
	}
	d.path("line "+seriesClass(i), false, dashOf(i), xy...)
	size := 4
	if len(s.Points) > 60 {
		size = 2
	}
	for n, pt := range s.Points {
		tip := d.p.tip("%s: %s at %s", s.Name, withUnit(pt.value(), c.YUnit), withUnit(Value{Value: pt.X}, c.XUnit))
		d.symbol("mark "+seriesClass(i)+tip, i, xy[2*n], xy[2*n+1], size)
	}
}

func (c LineChart) describe(series []Series) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s against %s.", label(c.YLabel, c.YUnit), label(c.XLabel, c.XUnit))
	for _, sr := range series {
		if n := len(sr.Points); n > 0 {
			a, b := sr.Points[0], sr.Points[n-1]
			fmt.Fprintf(&s, " %s: %s at %s to %s at %s.", sr.Name, withUnit(a.value(), c.YUnit), withUnit(Value{Value: a.X}, c.XUnit),
				withUnit(b.value(), c.YUnit), withUnit(Value{Value: b.X}, c.XUnit))
		}
	}
	return s.String()
}

func (c LineChart) figures(p *page, series []Series) (*tableView, error) {
	t := Table{Title: c.Title, Columns: []Column{{Name: "Series"}, {Name: c.XLabel, Unit: c.XUnit}, {Name: c.YLabel, Unit: c.YUnit}}}
	for _, s := range series {
		for _, pt := range s.Points {
			t.Rows = append(t.Rows, []Cell{Text(s.Name), Number(pt.X, decimalsIn(pt.X)), Estimate(pt.value(), decimalsFor(pt.Y))})
		}
	}
	return t.view(p)
}

// label is an axis's name with its unit.
func label(name, unit string) string {
	switch {
	case unit == "":
		return name
	case name == "":
		return unit
	}
	return name + ", " + unit
}

// withUnit is a value in words.
func withUnit(v Value, unit string) string {
	n := decimalsIn(v.Value)
	if v.hasInterval() {
		n = decimalsFor(v.Value)
	}
	s := formatNumber(v.Value, n)
	if unit != "" {
		s += "\u00a0" + unit
	}
	if v.hasInterval() {
		s += fmt.Sprintf(" (95 %%: %s to %s)", formatNumber(v.Low, n), formatNumber(v.High, n))
	}
	return s
}

// decimalsIn is decimalsFor, and none for a whole number.
func decimalsIn(v float64) int {
	if v == math.Trunc(v) {
		return 0
	}
	return decimalsFor(v)
}
