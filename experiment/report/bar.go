package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
)

// maxGroups bounds the groups of a bar chart.
const maxGroups = 60

func (c BarChart) prepare(p *page) (view, error) {
	out := view{Kind: "chart", Title: c.Title, Caption: c.Caption}
	for _, g := range c.Groups {
		if len(g.Values) != len(c.Arms) {
			return view{}, fmt.Errorf("bar chart %q: group %q has %d values for %d arms", c.Title, g.Name, len(g.Values), len(c.Arms))
		}
	}
	if len(c.Groups) > maxGroups {
		p.omit("Chart %q shows the first %d of %d groups.", c.Title, maxGroups, len(c.Groups))
		c.Groups = c.Groups[:maxGroups]
	}
	if len(c.Arms) > maxSeries {
		p.omit("Chart %q shows the first %d of %d arms.", c.Title, maxSeries, len(c.Arms))
		c = c.firstArms(maxSeries)
	}
	cv := &chartView{ID: p.id("chart")}
	out.Chart = cv
	var err error
	if cv.Figures, err = c.figures().view(p); err != nil {
		return view{}, err
	}
	if !c.drawable() {
		return out, nil
	}
	for i, a := range c.Arms {
		cv.Legend = append(cv.Legend, legendView{Name: clipLine(a, 80), Class: seriesClass(i), Kind: "bar", Swatch: barSwatch("bar " + seriesClass(i))})
	}
	desc := label(c.Label, c.Unit) + " of each group under each arm; the figures are in the table below."
	if cv.Wide, err = c.draw(wideWidth).render(c.Title, desc, cv.ID+"-w", "wide"); err != nil {
		return view{}, fmt.Errorf("bar chart %q: %w", c.Title, err)
	}
	if cv.Narrow, err = c.draw(narrowWidth).render(c.Title, desc, cv.ID+"-n", "narrow"); err != nil {
		return view{}, fmt.Errorf("bar chart %q: %w", c.Title, err)
	}
	return out, nil
}

func (c BarChart) firstArms(n int) BarChart {
	c.Arms = c.Arms[:n]
	groups := slices.Clone(c.Groups)
	for i := range groups {
		groups[i].Values = groups[i].Values[:n]
	}
	c.Groups = groups
	return c
}

func (c BarChart) drawable() bool {
	return slices.ContainsFunc(c.Groups, func(g BarGroup) bool {
		return slices.ContainsFunc(g.Values, func(v Value) bool { return finite(v.Value) })
	})
}

func (c BarChart) draw(width int) *plot {
	r := rowsFor(width, len(c.Arms), c.labels())
	hi := 0.0
	for _, g := range c.Groups {
		for _, v := range g.Values {
			if finite(v.Value) {
				hi = max(hi, v.Value)
			}
			if v.hasInterval() {
				hi = max(hi, v.High)
			}
		}
	}
	if hi <= 0 {
		hi = 1
	}
	p := r.plot(len(c.Groups), hi, label(c.Label, c.Unit))
	p.draw = func(d *pen) {
		for i, g := range c.Groups {
			y := r.label(d, i)
			for k, v := range g.Values {
				c.bar(d, k, g, v, y+k*(r.bar+3), r.bar)
			}
		}
	}
	return p
}

// labels are the groups' names and how many cases are behind them.
func (c BarChart) labels() []rowLabel {
	out := make([]rowLabel, len(c.Groups))
	for i, g := range c.Groups {
		out[i].name = g.Name
		if g.Count > 0 {
			out[i].note = "n = " + formatNumber(float64(g.Count), 0)
		}
	}
	return out
}

func (c BarChart) bar(d *pen, k int, g BarGroup, v Value, y, height int) {
	if !finite(v.Value) {
		d.text("note", "no value", d.box.Left+4, y+height-2)
		return
	}
	x0, _ := d.at(0, 0)
	x1, _ := d.at(max(v.Value, 0), 0)
	d.rect("bar "+seriesClass(k)+d.p.tip("%s, %s: %s", g.Name, c.Arms[k], withUnit(v, c.Unit)), x0, y, max(x1, x0+1), y+height)
	end := x1
	if v.hasInterval() {
		lo, _ := d.at(max(v.Low, 0), 0)
		hi, _ := d.at(v.High, 0)
		mid := y + height/2
		d.path("error", false, nil, lo, mid, hi, mid)
		d.path("error", false, nil, lo, mid-3, lo, mid+3)
		d.path("error", false, nil, hi, mid-3, hi, mid+3)
		end = max(hi, x1)
	}
	d.text("value", formatNumber(v.Value, decimalsFor(v.Value)), end+6, y+height/2+4)
}

func (c BarChart) figures() Table {
	t := Table{Title: c.Title, Columns: []Column{{Name: "Group"}, {Name: "Cases"}}}
	for _, a := range c.Arms {
		t.Columns = append(t.Columns, Column{Name: a, Unit: c.Unit})
	}
	for _, g := range c.Groups {
		row := []Cell{Text(g.Name), Number(math.NaN(), 0)}
		if g.Count > 0 {
			row[1] = Count(g.Count)
		}
		for _, v := range g.Values {
			row = append(row, Estimate(v, decimalsFor(v.Value)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// barSwatch is the legend's sample of a filled area.
func barSwatch(class string) template.HTML {
	return template.HTML(`<svg class="swatch" viewBox="0 0 26 14" aria-hidden="true"><path class="` + class + `" d="M1 1H25V13H1Z"/></svg>`) //nolint:gosec // classes of this package
}
