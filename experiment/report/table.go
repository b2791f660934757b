package report

import (
	"fmt"
	"math"
	"strconv"
)

// Table can be sorted by each of its columns: by number where both cells have one, by text otherwise, empty cells last.
type Table struct {
	Title, Caption string
	Columns        []Column
	// Rows hold one cell for each column.
	Rows [][]Cell
}

// Column names a column.
type Column struct {
	Name string
	// Unit is shown under the name.
	Unit string
}

// Cell is a field of a table. Use [Text], [Number], [Count] and [Estimate].
type Cell struct {
	text   string
	number float64
	isNum  bool
}

// Text is a cell that is sorted by its letters.
func Text(s string) Cell { return Cell{text: clipLine(s, maxCell)} }

// Number is a cell with a number, shown with so many decimals. NaN and infinities are shown as a dash and sorted last.
func Number(v float64, decimals int) Cell {
	if !finite(v) {
		return Cell{text: noValue}
	}
	return Cell{text: formatNumber(v, decimals), number: v, isNum: true}
}

// Count is a cell with a whole number.
func Count(n int) Cell { return Number(float64(n), 0) }

// Estimate is a cell with a value and its confidence interval, sorted by the value.
func Estimate(v Value, decimals int) Cell {
	c := Number(v.Value, decimals)
	if c.isNum && v.hasInterval() {
		c.text = fmt.Sprintf("%s (%s to %s)", c.text, formatNumber(v.Low, decimals), formatNumber(v.High, decimals))
	}
	return c
}

// The largest table that is shown, the longest cell in bytes, and what stands for a number that is none.
const (
	maxRows = 2000
	maxCell = 400
	noValue = "–"
)

type cellView struct {
	Text, Sort string
	Numeric    bool
}

type tableView struct {
	ID, Caption string
	Columns     []columnView
	Rows        [][]cellView
}

type columnView struct {
	Name, Unit string
	Numeric    bool
}

func (t Table) prepare(p *page) (view, error) {
	tv, err := t.view(p)
	if err != nil {
		return view{}, err
	}
	return view{Kind: "table", Title: t.Title, Caption: t.Caption, Table: tv}, nil
}

func (t Table) view(p *page) (*tableView, error) {
	if len(t.Columns) == 0 {
		return nil, fmt.Errorf("table %q: no columns", t.Title)
	}
	tv := &tableView{ID: p.id("table"), Caption: t.Title}
	rows := t.Rows
	if len(rows) > maxRows {
		p.omit("Table %q shows the first %d of %d rows.", t.Title, maxRows, len(rows))
		rows = rows[:maxRows]
	}
	for _, c := range t.Columns {
		tv.Columns = append(tv.Columns, columnView{Name: c.Name, Unit: c.Unit})
	}
	for i, row := range rows {
		if len(row) != len(t.Columns) {
			return nil, fmt.Errorf("table %q: row %d has %d cells for %d columns", t.Title, i+1, len(row), len(t.Columns))
		}
		out := make([]cellView, len(row))
		for j, c := range row {
			out[j] = cellView{Text: p.text(c.text)}
			if c.isNum {
				out[j].Sort = strconv.FormatFloat(c.number, 'g', -1, 64)
				tv.Columns[j].Numeric = true
			}
		}
		tv.Rows = append(tv.Rows, out)
	}
	for _, row := range tv.Rows {
		for j := range row {
			row[j].Numeric = tv.Columns[j].Numeric && (row[j].Sort != "" || row[j].Text == noValue)
		}
	}
	return tv, nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func (v Value) hasInterval() bool { return finite(v.Low) && finite(v.High) && v.High > v.Low }

// formatNumber groups thousands with a thin space that does not break.
func formatNumber(v float64, decimals int) string {
	s := strconv.FormatFloat(math.Abs(v), 'f', max(decimals, 0), 64)
	whole, frac := s, ""
	for i := range s {
		if s[i] == '.' {
			whole, frac = s[:i], s[i:]
			break
		}
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "\u202f" + whole[i:]
	}
	if v < 0 && (whole+frac) != strconv.FormatFloat(0, 'f', max(decimals, 0), 64) {
		whole = "\u2212" + whole
	}
	return whole + frac
}

// decimalsFor is how many decimals values of this size are shown with.
func decimalsFor(values ...float64) int {
	largest := 0.0
	for _, v := range values {
		if finite(v) {
			largest = max(largest, math.Abs(v))
		}
	}
	switch {
	case largest == 0 || largest >= 1000:
		return 0
	case largest >= 10:
		return 1
	case largest >= 0.1:
		return 2
	}
	return 3
}
