package report

import (
	"bytes"
	"fmt"
	"html/template"
	"strings"

	"github.com/wcharczuk/go-chart/v2"
)

// plot is one drawing of a chart. The charting library lays out axes, measures texts and draws; colours are classes that the page's style
// gives a meaning to, in light and in dark.
type plot struct {
	width, height int
	x, y          axis
	// left, top, right keep room beside and above the plotted area, in pixels.
	left, top, right int
	draw             func(*pen)
	titles           []string
}

// axis is a range with its ticks.
type axis struct {
	min, max float64
	ticks    []chart.Tick
	name     string
	hidden   bool
}

// pen draws marks within the plotted area, in values of the axes.
type pen struct {
	r    chart.Renderer
	box  chart.Box
	x, y chart.Range
	p    *plot
}

// Names of the parts of a chart, for the page's style.
const (
	classAxis = "axis"
	classGrid = "grid"
	fontSize  = 12.5
)

// tip notes what a mark says when it is pointed at, and returns the class that carries it.
func (p *plot) tip(format string, args ...any) string {
	p.titles = append(p.titles, fmt.Sprintf(format, args...))
	return fmt.Sprintf(" tip%d", len(p.titles)-1)
}

// render draws the plot as SVG elements without their root.
func (p *plot) render(title, desc, id, class string) (template.HTML, error) {
	s := marks{plot: p}
	axisStyle := chart.Style{ClassName: classAxis, FontSize: fontSize, StrokeWidth: 1}
	grid := chart.Style{ClassName: classGrid, StrokeWidth: 1, StrokeColor: chart.ColorBlack}
	c := chart.Chart{
		Width: p.width, Height: p.height, DPI: 72,
		Background: chart.Style{ClassName: "ground", Padding: chart.Box{Top: p.top, Left: p.left, Right: p.right, Bottom: 6}},
		Canvas:     chart.Style{ClassName: "ground"},
		XAxis: chart.XAxis{
			Style: axisStyle, Ticks: p.x.ticks, Range: &chart.ContinuousRange{Min: p.x.min, Max: p.x.max},
			Name: p.x.name, NameStyle: chart.Style{ClassName: classAxis + " name", FontSize: fontSize}, GridMajorStyle: chart.Hidden(), GridMinorStyle: chart.Hidden(),
		},
		// The library draws the secondary axis on the left, and takes its ends from the other one's ticks.
		YAxis: chart.YAxis{Style: chart.Hidden(), Ticks: p.y.ticks, Range: &chart.ContinuousRange{Min: p.y.min, Max: p.y.max}},
		YAxisSecondary: chart.YAxis{
			Style: axisStyle, Ticks: p.y.ticks, Range: &chart.ContinuousRange{Min: p.y.min, Max: p.y.max},
			GridLines: gridLines(p.y.ticks, grid), GridMajorStyle: grid, Zero: chart.GridLine{Style: chart.Hidden()},
		},
		Series: []chart.Series{s},
	}
	if p.y.hidden {
		c.YAxisSecondary.Style = chart.Hidden()
		c.XAxis.GridLines, c.XAxis.GridMajorStyle = gridLines(p.x.ticks, grid), grid
	}
	var buf bytes.Buffer
	if err := c.Render(escaping, &buf); err != nil {
		return "", fmt.Errorf("draw: %w", err)
	}
	return wrap(buf.Bytes(), p, title, desc, id, class)
}

func gridLines(ticks []chart.Tick, style chart.Style) []chart.GridLine {
	out := make([]chart.GridLine, 0, len(ticks))
	for _, t := range ticks {
		out = append(out, chart.GridLine{Value: t.Value, Style: style})
	}
	return out
}

// marks is a chart's only series: the library lays out what is around it.
type marks struct{ plot *plot }

var _ chart.Series = marks{}

func (m marks) GetName() string           { return "marks" }
func (m marks) GetYAxis() chart.YAxisType { return chart.YAxisSecondary }
func (m marks) GetStyle() chart.Style     { return chart.Style{ClassName: "marks"} }
func (m marks) Validate() error           { return nil }

// Render implements chart.Series.
func (m marks) Render(r chart.Renderer, box chart.Box, x, y chart.Range, s chart.Style) {
	s.ClassName, s.FontSize = "label", fontSize
	s.WriteToRenderer(r)
	m.plot.draw(&pen{r: r, box: box, x: x, y: y, p: m.plot})
}

func (d *pen) at(x, y float64) (int, int) {
	return d.box.Left + d.x.Translate(x), d.box.Bottom - d.y.Translate(y)
}

func (d *pen) style(class string, dash ...float64) {
	d.r.SetClassName(class)
	d.r.SetStrokeDashArray(dash)
}

// path draws a line through points given in pixels, x and y in turn.
func (d *pen) path(class string, closed bool, dash []float64, xy ...int) {
	if len(xy) < 4 {
		return
	}
	d.style(class, dash...)
	d.r.MoveTo(xy[0], xy[1])
	for i := 2; i+1 < len(xy); i += 2 {
		d.r.LineTo(xy[i], xy[i+1])
	}
	if closed {
		d.r.Close()
	}
	d.r.FillStroke()
}

func (d *pen) rect(class string, x0, y0, x1, y1 int) {
	d.path(class, true, nil, x0, y0, x1, y0, x1, y1, x0, y1)
}

// text draws a text whose base line begins at a pixel.
func (d *pen) text(class, s string, x, y int) {
	d.style(class)
	d.r.Text(s, x, y)
}

// symbol draws the mark of a series: each series has a shape of its own, as colour alone does not tell them apart.
func (d *pen) symbol(class string, shape, x, y, size int) {
	switch shape % 6 {
	case 0:
		d.style(class)
		d.r.Circle(float64(size), x, y)
	case 1:
		d.rect(class, x-size, y-size, x+size, y+size)
	case 2:
		d.path(class, true, nil, x, y-size-1, x+size+1, y+size, x-size-1, y+size)
	case 3:
		d.path(class, true, nil, x, y-size-2, x+size+2, y, x, y+size+2, x-size-2, y)
	case 4:
		d.path(class, true, nil, x, y+size+1, x+size+1, y-size, x-size-1, y-size)
	case 5:
		d.path(class, true, nil, x-size, y-size, x+size, y+size, x, y, x+size, y-size, x-size, y+size, x, y)
	}
}

// dashOf is the line style of a series.
func dashOf(series int) []float64 {
	switch series % 6 {
	case 1:
		return []float64{9, 5}
	case 2:
		return []float64{2, 4}
	case 3:
		return []float64{12, 4, 2, 4}
	case 4:
		return []float64{5, 3}
	case 5:
		return []float64{16, 5}
	}
	return nil
}

// seriesClass is the class of a series; after six the colours start again, and the names in the figures tell them apart.
func seriesClass(i int) string { return fmt.Sprintf("s%d", i%6+1) }

// escapingRenderer escapes the texts it draws, which the library does not.
type escapingRenderer struct{ chart.Renderer }

// Text implements chart.Renderer.
func (r escapingRenderer) Text(body string, x, y int) {
	r.Renderer.Text(template.HTMLEscapeString(strings.ReplaceAll(visible(body), "\n", " ")), x, y)
}

func escaping(width, height int) (chart.Renderer, error) {
	r, err := chart.SVG(width, height)
	return escapingRenderer{r}, err
}
