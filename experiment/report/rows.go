package report

import (
	"math"
	"strings"
	"unicode/utf8"
)

// rows is the layout of horizontal bars in groups: the names of groups stand beside them on a wide page and above them on a narrow one.
type rows struct {
	width, bar, gap int
	bars            int
	beside          bool
	// left is the room for names beside the bars, above that over them, in pixels.
	left, above int
	labels      []rowLabel
}

// rowLabel is a group's name with a note, such as the number of cases.
type rowLabel struct {
	name, note string
	lines      []string
}

// Sizes of labels in pixels: a character takes so much at most in common fonts, a line so much.
const (
	labelChar, labelLine = 7.7, 15
	labelMin, labelMax   = 190, 330
)

func rowsFor(width, bars int, labels []rowLabel) rows {
	r := rows{width: width, bar: 15, gap: 18, bars: bars, beside: width > 600, labels: labels}
	if bars > 4 {
		r.bar = 11
	}
	if !r.beside {
		r.bar, r.gap = max(r.bar-2, 10), 12
		r.narrow()
		return r
	}
	longest := 0
	for _, l := range labels {
		longest = max(longest, utf8.RuneCountInString(l.name))
	}
	r.left = min(max(int(labelChar*float64(longest))+22, labelMin), labelMax)
	most := 0
	for i := range labels {
		l := &r.labels[i]
		l.lines = wrapped(l.name, int(math.Ceil(float64(r.left-22)/labelChar)))
		n := len(l.lines)
		if l.note != "" {
			n++
		}
		most = max(most, n)
	}
	// Names of several lines may be taller than their bars.
	r.gap = max(r.gap, most*labelLine+8-r.inner())
	return r
}

// narrow puts names over the bars, with their notes where there is room in the line.
func (r *rows) narrow() {
	room := int(float64(r.width-16) / labelChar)
	for i := range r.labels {
		l := &r.labels[i]
		l.lines = wrapped(l.name, room)
		if l.note != "" {
			last := &l.lines[len(l.lines)-1]
			if both := *last + " · " + l.note; utf8.RuneCountInString(both) <= room {
				*last = both
			} else {
				l.lines = append(l.lines, l.note)
			}
		}
		r.above = max(r.above, len(l.lines)*labelLine+4)
	}
}

// inner is the height of a group's bars, group that of all of it.
func (r rows) inner() int { return r.bars*(r.bar+3) - 3 }
func (r rows) group() int { return r.above + r.inner() + 3 + r.gap }

// plot makes an empty plot for so many groups. Its y axis counts pixels from the top, negative.
func (r rows) plot(groups int, hi float64, name string) *plot {
	height := groups * r.group()
	p := &plot{width: r.width, height: height + 58, top: 4, left: 8, right: 56, x: niceAxis(0, hi, r.width/110)}
	if r.beside {
		p.left = r.left
	}
	p.x.name = name
	p.y = axis{min: -float64(height), max: 0, hidden: true}
	return p
}

// label writes a group's name, and returns where its first bar begins.
func (r rows) label(d *pen, i int) int {
	l := r.labels[i]
	top := d.box.Top + i*r.group() + r.gap/2
	if !r.beside {
		for k, line := range l.lines {
			d.text("group", line, d.box.Left, top+12+k*labelLine)
		}
		return top + r.above
	}
	n := len(l.lines)
	if l.note != "" {
		n++
	}
	y := top + (r.inner()-n*labelLine)/2 + 12
	for _, line := range l.lines {
		d.text("group end", line, d.box.Left-14, y)
		y += labelLine
	}
	if l.note != "" {
		d.text("note end", l.note, d.box.Left-14, y)
	}
	return top
}

// wrapped breaks a name into at most two lines of so many characters, between words or else behind a sign where there is one. What is
// too long loses its middle: names of configurations differ at their ends.
func wrapped(name string, room int) []string {
	name = visible(strings.Join(strings.Fields(name), " "))
	all := []rune(name)
	if len(all) <= room {
		return []string{name}
	}
	cut := room
	for _, behind := range []string{" ", "+:/,)", "_-="} {
		if k := strings.LastIndexAny(string(all[:room]), behind); k > 0 && utf8.RuneCountInString(string(all[:room])[:k+1]) > room/3 {
			cut = utf8.RuneCountInString(string(all[:room])[:k+1])
			break
		}
	}
	first, rest := strings.TrimSpace(string(all[:cut])), []rune(strings.TrimSpace(string(all[cut:])))
	if len(rest) > room {
		head := room / 3
		rest = append(append(append([]rune{}, rest[:head]...), '…'), rest[len(rest)-(room-head-1):]...)
	}
	return []string{first, string(rest)}
}
