package report

import (
	"fmt"
	"html/template"
	"strings"
)

func (l Latency) prepare(p *page) (view, error) {
	if l.Unit == "" {
		l.Unit = "ms"
	}
	out := view{Kind: "chart", Title: l.Title, Caption: l.Caption}
	if len(l.Arms) > maxGroups {
		p.omit("Chart %q shows the first %d of %d arms.", l.Title, maxGroups, len(l.Arms))
		l.Arms = l.Arms[:maxGroups]
	}
	t := Table{Title: l.Title, Columns: []Column{{Name: "Arm"}, {Name: "p50", Unit: l.Unit}, {Name: "p95", Unit: l.Unit}, {Name: "Calls"}}}
	hi := 0.0
	for _, a := range l.Arms {
		t.Rows = append(t.Rows, []Cell{Text(a.Arm), Number(a.P50, decimalsFor(a.P50)), Number(a.P95, decimalsFor(a.P95)), Count(a.Count)})
		for _, v := range []float64{a.P50, a.P95} {
			if finite(v) {
				hi = max(hi, v)
			}
		}
	}
	cv := &chartView{ID: p.id("chart")}
	out.Chart = cv
	var err error
	if cv.Figures, err = t.view(p); err != nil || hi <= 0 {
		return out, err
	}
	cv.Legend = []legendView{
		{Name: "p50: half of the calls are faster", Class: "p50", Kind: "bar", Swatch: barSwatch("bar p50")},
		{Name: "p95: 95 % of the calls are faster", Class: "p95", Kind: "bar", Swatch: barSwatch("bar p95")},
	}
	desc := "Time per call under each arm; the figures are in the table below."
	if cv.Wide, err = l.draw(wideWidth, hi).render(l.Title, desc, cv.ID+"-w", "wide"); err != nil {
		return view{}, fmt.Errorf("latency %q: %w", l.Title, err)
	}
	if cv.Narrow, err = l.draw(narrowWidth, hi).render(l.Title, desc, cv.ID+"-n", "narrow"); err != nil {
		return view{}, fmt.Errorf("latency %q: %w", l.Title, err)
	}
	return out, nil
}

func (l Latency) draw(width int, hi float64) *plot {
	r := rowsFor(width, 2, l.labels())
	p := r.plot(len(l.Arms), hi, label("Time per call", l.Unit))
	p.draw = func(d *pen) {
		for i, a := range l.Arms {
			y := r.label(d, i)
			for k, v := range []float64{a.P50, a.P95} {
				name := []string{"p50", "p95"}[k]
				if !finite(v) {
					continue
				}
				x0, _ := d.at(0, 0)
				x1, _ := d.at(max(v, 0), 0)
				top := y + k*(r.bar+3)
				d.rect("bar "+name+d.p.tip("%s, %s: %s", a.Arm, name, withUnit(Value{Value: v}, l.Unit)), x0, top, max(x1, x0+1), top+r.bar)
				decimals := decimalsFor(hi)
				if v < 0.1 && decimals < 2 {
					decimals = decimalsFor(v)
				}
				d.text("value", formatNumber(v, decimals), x1+6, top+r.bar/2+4)
			}
		}
	}
	return p
}

// labels are the arms' names and how many calls were measured.
func (l Latency) labels() []rowLabel {
	out := make([]rowLabel, len(l.Arms))
	for i, a := range l.Arms {
		out[i].name = a.Arm
		if a.Count > 0 {
			out[i].note = formatNumber(float64(a.Count), 0) + " calls"
		}
	}
	return out
}

// swatch is the legend's sample of a curve: line style and mark.
func swatch(i int) template.HTML {
	dash := strings.Trim(fmt.Sprint(dashOf(i)), "[]")
	shape := [...]string{
		`<circle class="mark %s" cx="17" cy="7" r="4"/>`,
		`<path class="mark %s" d="M13 3H21V11H13Z"/>`,
		`<path class="mark %s" d="M17 2L22 11H12Z"/>`,
		`<path class="mark %s" d="M17 1L23 7L17 13L11 7Z"/>`,
		`<path class="mark %s" d="M17 12L22 3H12Z"/>`,
		`<path class="mark %s" d="M13 3L21 11L17 7L21 3L13 11L17 7Z"/>`,
	}[i%6]
	class := seriesClass(i)
	return template.HTML(fmt.Sprintf(`<svg class="swatch line" viewBox="0 0 34 14" aria-hidden="true"><path class="line %s" d="M0 7H34" stroke-dasharray="%s"/>`+shape+`</svg>`, class, dash, class)) //nolint:gosec // classes of this package
}
