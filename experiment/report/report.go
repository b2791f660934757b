package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// Report is one page. It is a value: writing does not change it, and may be done from several goroutines.
type Report struct {
	Title    string
	Subtitle string
	// Generated is shown in the head; zero leaves it out, so that the same figures give the same bytes.
	Generated time.Time
	// Facts are shown under the subtitle: data set, seed, command.
	Facts []Fact
	// Sections follow each other in this order; each one has an entry in the contents.
	Sections []Section
}

// Fact is a name with a value.
type Fact struct{ Name, Value string }

// Section is one of the types of this package that has a title: [LineChart], [BarChart], [Latency], [Table], [Verdicts],
// [WindowComposition], [TurnCompare] or [Note].
type Section interface {
	// prepare turns the section into what the page's template shows.
	prepare(p *page) (view, error)
}

// ErrEmpty says that a report holds no section.
var ErrEmpty = errors.New("report holds no section")

// WriteTo writes the page and returns its size in bytes. Nothing is written when a section cannot be shown.
func (r Report) WriteTo(w io.Writer) (int64, error) {
	if len(r.Sections) == 0 {
		return 0, fmt.Errorf("report: write %q: %w", r.Title, ErrEmpty)
	}
	p := newPage(r)
	for i, s := range r.Sections {
		v, err := s.prepare(p)
		if err != nil {
			return 0, fmt.Errorf("report: write %q: section %d: %w", r.Title, i+1, err)
		}
		p.add(v)
	}
	var buf bytes.Buffer
	if err := p.render(&buf); err != nil {
		return 0, fmt.Errorf("report: write %q: %w", r.Title, err)
	}
	return buf.WriteTo(w)
}
