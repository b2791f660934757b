package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// board collects the rows of one part.
type board struct {
	out, progress io.Writer
	load          string
	rows          []row
	notes         []string
}

// row is one subject at one size.
type row struct {
	subject, what string
	figures       []figure
}

// figure is a value with the unit that benchstat shows.
type figure struct {
	unit  string
	value float64
}

// add prints a line for benchstat and keeps the row for the table.
func (b *board) add(subject, what string, ops int, figures ...figure) {
	b.rows = append(b.rows, row{subject, what, figures})
	name := strings.NewReplacer(" ", "_", "(", "", ")", "", ",", "").Replace(what + "/" + subject)
	var line strings.Builder
	fmt.Fprintf(&line, "Benchmark%s%s\t%d", strings.ToUpper(name[:1]), name[1:], max(ops, 1))
	for _, f := range figures {
		fmt.Fprintf(&line, "\t%s %s", strconv.FormatFloat(f.value, 'f', -1, 64), strings.ReplaceAll(f.unit, " ", "-"))
	}
	fmt.Fprintln(b.out, line.String())
	fmt.Fprintln(b.progress, "  "+line.String())
}

func (b *board) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

// value returns a figure that was added; 0 when there is none.
func (b *board) value(subject, what, unit string) float64 {
	for _, r := range b.rows {
		if r.subject == subject && r.what == what {
			for _, f := range r.figures {
				if f.unit == unit {
					return f.value
				}
			}
		}
	}
	return 0
}

// ratio notes how many times as much subject takes as other.
func (b *board) ratio(what, unit, subject, other, want string) {
	x, y := b.value(subject, what, unit), b.value(other, what, unit)
	if x == 0 || y == 0 {
		return
	}
	if want != "" {
		want = " (wanted: " + want + ")"
	}
	b.note("%s, %s: %s takes %.2f times what %s takes%s", what, unit, subject, x/y, other, want)
	fmt.Fprintf(b.progress, "  %s\n", b.notes[len(b.notes)-1])
}

// markdown writes the rows as a table, with a column for every unit, and the ratios below.
func (b *board) markdown(w io.Writer, title string) {
	var units []string
	for _, r := range b.rows {
		for _, f := range r.figures {
			if !slices.Contains(units, f.unit) {
				units = append(units, f.unit)
			}
		}
	}
	fmt.Fprintf(w, "\n## %s\n\nLoad %s to %s.\n\n| what | subject |", title, b.load, load())
	for _, u := range units {
		fmt.Fprintf(w, " %s |", u)
	}
	fmt.Fprintf(w, "\n|---|---|%s\n", strings.Repeat("--:|", len(units)))
	for _, r := range b.rows {
		fmt.Fprintf(w, "| %s | %s |", r.what, r.subject)
		for _, u := range units {
			cell := ""
			for _, f := range r.figures {
				if f.unit == u {
					cell = short(f)
				}
			}
			fmt.Fprintf(w, " %s |", cell)
		}
		fmt.Fprintln(w)
	}
	if len(b.notes) > 0 {
		fmt.Fprintln(w)
	}
	for _, n := range b.notes {
		fmt.Fprintf(w, "- %s\n", n)
	}
}

// short writes a figure in units that people read.
func short(f figure) string {
	v := f.value
	switch {
	case strings.HasPrefix(f.unit, "ns"):
		return time.Duration(v).Round(time.Duration(max(1, pow10(v)/1000))).String()
	case strings.HasPrefix(f.unit, "B"):
		switch {
		case v >= 1<<20:
			return fmt.Sprintf("%.1f MiB", v/(1<<20))
		case v >= 1<<10:
			return fmt.Sprintf("%.1f KiB", v/(1<<10))
		}
		return fmt.Sprintf("%.0f B", v)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

func pow10(v float64) float64 {
	p := 1.0
	for p*10 <= v {
		p *= 10
	}
	return p
}

// spent is processor time and the clock's.
type spent struct{ cpu, wall time.Duration }

// timed measures what f takes.
func timed(f func() error) (spent, error) {
	before, begin := cpu(), time.Now()
	err := f()
	return spent{cpu() - before, time.Since(begin)}, err
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// per is the figures of n operations.
func (s spent) per(n int) []figure {
	return []figure{{"ns/op", float64(s.cpu) / float64(n)}, {"ns-wall/op", float64(s.wall) / float64(n)}}
}

// repeat runs f, with the numbers from 0 on, for at least a second and three times, at most limit times.
func repeat(limit int, f func(i int) error) (n int, s spent, err error) {
	s, err = timed(func() error {
		begin := time.Now()
		for n = 0; n < limit && (n < 3 || time.Since(begin) < time.Second); n++ {
			if err := f(n); err != nil {
				return err
			}
		}
		return nil
	})
	return n, s, err
}

// heap is what is in use after garbage collection, in bytes.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// sizes are 1,000, 10,000 and so on up to the largest.
func sizes(from, largest int) []int {
	var out []int
	for n := from; n <= largest; n *= 10 {
		out = append(out, n)
	}
	return out
}

func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)])
}
