package columns_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rivo/uniseg"

	"github.com/contextengine/contextengine/internal/columns"
)

func table(names ...string) *columns.Table {
	t := &columns.Table{Columns: []columns.Column{{Name: "name", Left: true}, {Name: "sessions"}, {Name: "size", Wide: true}, {Name: "messages"}}}
	for _, name := range names {
		t.Add(name, "12", "40 MB", "3456")
	}
	return t
}

func TestPrint(t *testing.T) {
	long := strings.Repeat("agent:main:", 6) + "work"
	texts := &columns.Table{Columns: []columns.Column{{Name: "id"}, {Name: "text", Left: true, Cut: true}}}
	texts.Add("7", strings.Repeat("word ", 40))
	many := &columns.Table{Columns: []columns.Column{{Name: "metric", Left: true}, {Name: "one"}, {Name: "two"}, {Name: "three"}}}
	many.Add("fill", "11 %", "22 %", "33 %")
	for _, c := range []struct {
		name  string
		table *columns.Table
		width int
		want  string
	}{
		{"narrow", table("ann", "船のエージェント"), columns.Fit, `
name              sessions  messages
ann                     12      3456
船のエージェント        12      3456
`},
		{"all", table("ann"), columns.All, `
name  sessions   size  messages
ann         12  40 MB      3456
`},
		{"a long name has a line of its own", table(long, "bob"), columns.Fit, `
name
    sessions  messages
` + long + `
          12      3456
bob
          12      3456
`},
		{"a name longer than the line", table(strings.Repeat("ab", 20) + strings.Repeat("yz", 40)), 30, `
name
    sessions  messages
` + strings.Repeat("ab", 7) + "a…" + strings.Repeat("yz", 7) + `
          12      3456
`},
		{"the beginning of a text", texts, 30, `
id  text
 7  word word word word word …
`},
		{"columns without room follow", many, 18, `
metric   one   two
fill    11 %  22 %

metric  three
fill     33 %
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			c.table.Print(&out, c.width)
			if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzPrint holds every table to its width, and its cells to being there, unless they are longer than a line.
func FuzzPrint(f *testing.F) {
	f.Add("a long name of a session", "12", "x", 20)
	f.Add("船のエージェント", "👩‍👩‍👧", "", 40)
	f.Fuzz(func(t *testing.T, name, figure, other string, width int) {
		width = 40 + width%60
		if width < 40 {
			t.Skip()
		}
		for _, s := range []*string{&name, &figure, &other} {
			*s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(*s, ""), func(r rune) bool { return r < ' ' || r == 127 }), "")
		}
		table := columns.Table{Columns: []columns.Column{{Name: "name", Left: true}, {Name: "figure"}, {Name: "other"}}}
		table.Add(name, figure, other)
		var out bytes.Buffer
		table.Print(&out, width)
		for line := range strings.SplitSeq(out.String(), "\n") {
			if uniseg.StringWidth(line) > width {
				t.Errorf("%d places in %d: %q", uniseg.StringWidth(line), width, line)
			}
		}
		for _, cell := range []string{name, figure, other} {
			if uniseg.StringWidth(cell) < width/2-4 && !strings.Contains(out.String(), strings.TrimSpace(cell)) {
				t.Errorf("%q is not in\n%s", cell, out.String())
			}
		}
	})
}

func TestHang(t *testing.T) {
	got := columns.Hang("  key  one two three four", 7, 16)
	if want := "  key  one two\n       three\n       four"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := columns.Hang("one two three", 2, columns.All); got != "one two three" {
		t.Errorf("got %q", got)
	}
}
