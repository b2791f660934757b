// Package columns prints tables that fit a terminal.
//
//	t := columns.Table{Columns: []columns.Column{{Name: "agent", Left: true}, {Name: "sessions"}, {Name: "bytes", Wide: true}}}
//	t.Add("main", "12", "40231")
//	t.Print(out, columns.Fit)
//
// A table that is too wide loses nothing but what Wide and Cut allow: names get a line of their own, and columns that have no room follow in another block.
package columns

import (
	"fmt"
	"io"
	"strings"

	"github.com/rivo/uniseg"
)

// Fit is the width that tables keep to unless all of them is asked for, in places of a terminal. All is no bound.
const (
	Fit = 80
	All = 0
)

// gap is what stands between columns, and least is the smallest width to which a text or a heading is shortened.
const (
	gap   = 2
	least = 12
)

// Column is one column.
type Column struct {
	Name string
	// Left puts cells to the left: names and texts. Figures stand to the right.
	Left bool
	// Wide leaves the column out of tables that have to fit.
	Wide bool
	// Cut lets cells be shortened at their end: the beginnings of texts.
	Cut bool
}

// Table is what is printed. The zero value has no columns.
type Table struct {
	Columns []Column
	// Keys is how many columns, from the left, say what a row is about: each block repeats them. 0 means one.
	Keys int
	rows [][]string
}

// Add adds a row, with a cell for every column.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Print writes the table in lines of at most width places, or as wide as it is when width is All. Whoever has to know of errors hands over a bufio.Writer.
func (t *Table) Print(w io.Writer, width int) {
	g := t.grid(width == All)
	keys := min(max(t.Keys, 1), len(g.columns))
	switch {
	case width == All || g.takes(0, len(g.columns)) <= width:
		g.lines(w, whole(0, len(g.columns)))
	case g.cut(width):
		g.lines(w, whole(0, len(g.columns)))
	case g.takes(0, keys) > width/2:
		g.hanging(w, width, keys)
	default:
		g.blocks(w, width, keys)
	}
}

// grid is the table as it is printed: its head is the first row.
type grid struct {
	columns []Column
	rows    [][]string
	width   []int
}

func (t *Table) grid(all bool) *grid {
	g := &grid{rows: make([][]string, len(t.rows)+1)}
	for i, c := range t.Columns {
		if c.Wide && !all {
			continue
		}
		wide := uniseg.StringWidth(c.Name)
		g.rows[0] = append(g.rows[0], c.Name)
		for n, cells := range t.rows {
			g.rows[n+1] = append(g.rows[n+1], cells[i])
			wide = max(wide, uniseg.StringWidth(cells[i]))
		}
		g.columns, g.width = append(g.columns, c), append(g.width, wide)
	}
	return g
}

// takes returns how wide some columns are together.
func (g *grid) takes(from, to int) int {
	sum := gap * max(to-from-1, 0)
	for _, w := range g.width[from:to] {
		sum += w
	}
	return sum
}

// cut shortens the column that may be shortened, and says whether the table fits with it.
func (g *grid) cut(width int) bool {
	for i, c := range g.columns {
		room := width - g.takes(0, len(g.columns)) + g.width[i]
		if c.Cut && room >= least {
			g.narrow(i, room, Head)
			return true
		}
	}
	return false
}

// narrow makes a column at most so wide.
func (g *grid) narrow(column, room int, shorten func(string, int) string) {
	if g.width[column] <= room {
		return
	}
	g.width[column] = room
	for _, cells := range g.rows {
		cells[column] = shorten(cells[column], room)
	}
}

// hanging prints what a row is about on a line of its own, and what there is to say below it.
func (g *grid) hanging(w io.Writer, width, keys int) {
	widest := 0
	for i := range keys {
		if g.width[i] > g.width[widest] {
			widest = i
		}
	}
	g.narrow(widest, max(width-g.takes(0, keys)+g.width[widest], least), middle)
	rest := &grid{columns: append([]Column{{Left: true}}, g.columns[keys:]...), width: append([]int{gap}, g.width[keys:]...)}
	for _, cells := range g.rows {
		rest.rows = append(rest.rows, append([]string{""}, cells[keys:]...))
	}
	for _, block := range rest.split(width, 1) {
		for n := range g.rows {
			g.line(w, n, whole(0, keys))
			rest.line(w, n, block)
		}
	}
}

// blocks prints as many columns as there is room for, and the others below.
func (g *grid) blocks(w io.Writer, width, keys int) {
	for i, block := range g.split(width, keys) {
		if i > 0 {
			fmt.Fprintln(w)
		}
		g.lines(w, block)
	}
}

// split deals columns out into blocks that fit; each begins with the keys.
func (g *grid) split(width, keys int) [][]int {
	room := width - g.takes(0, keys) - gap
	var out [][]int
	used := 0
	for i := keys; i < len(g.columns); i++ {
		g.narrow(i, max(room, least), middle)
		if len(out) == 0 || used+gap+g.width[i] > room {
			out, used = append(out, whole(0, keys)), -gap
		}
		out[len(out)-1] = append(out[len(out)-1], i)
		used += gap + g.width[i]
	}
	return out
}

func (g *grid) lines(w io.Writer, columns []int) {
	for n := range g.rows {
		g.line(w, n, columns)
	}
}

func (g *grid) line(w io.Writer, row int, columns []int) {
	var b strings.Builder
	for n, i := range columns {
		if n > 0 {
			b.WriteString(strings.Repeat(" ", gap))
		}
		cell := g.rows[row][i]
		pad := strings.Repeat(" ", g.width[i]-uniseg.StringWidth(cell))
		if g.columns[i].Left {
			b.WriteString(cell + pad)
		} else {
			b.WriteString(pad + cell)
		}
	}
	fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
}

// whole counts from one number to another.
func whole(from, to int) []int {
	var out []int
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

// Head returns the beginning of a text, in at most so many places of a terminal; "…" stands for what is left out.
func Head(text string, room int) string {
	if uniseg.StringWidth(text) <= room {
		return text
	}
	return take(text, room-1) + "…"
}

// middle leaves out the middle of a name: what tells names apart is at their ends.
func middle(text string, room int) string {
	if uniseg.StringWidth(text) <= room {
		return text
	}
	head := take(text, room/2)
	rest := text[len(head):]
	for left := room - uniseg.StringWidth(head) - 1; uniseg.StringWidth(rest) > left; {
		_, rest, _, _ = uniseg.FirstGraphemeClusterInString(rest, -1)
	}
	return head + "…" + rest
}

// take returns as much of a text as fits.
func take(text string, room int) string {
	n := 0
	for rest, state := text, -1; rest != ""; {
		var cluster string
		var wide int
		cluster, rest, wide, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if room -= wide; room < 0 {
			break
		}
		n += len(cluster)
	}
	return text[:n]
}

// Hang breaks a text at its blanks into lines of at most so many places; those after the first begin with indent blanks.
// A word that is longer stays whole. Width All leaves the text in one line.
func Hang(text string, indent, width int) string {
	if width == All || uniseg.StringWidth(text) <= width {
		return text
	}
	var b strings.Builder
	at, first := 0, true
	for i, word := range strings.Split(text, " ") {
		wide := uniseg.StringWidth(word)
		switch {
		case i == 0:
		case !first && at+1+wide > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += wide
		first = first && word == ""
	}
	return b.String()
}
