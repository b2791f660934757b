package summary

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/compacting"
)

// lineBytes bounds a quoted first line.
const lineBytes = 200

// digest says without a model what the entries from to to-1 hold, in at most limit tokens. The same entries always give the same text.
func (w *work) digest(from, to, limit int) string {
	d := gather(w.c.Entries[from:to])
	count := w.c.Count
	tools := compacting.Head(d.toolLine(), limit/6, count)
	last := ""
	if d.conclusion != "" {
		last = compacting.Head("Last answer: "+strings.Join(strings.Fields(compacting.HeadBytes(d.conclusion, 4000)), " "), limit/4, count)
	}
	asked := d.askedLines(limit-count(tools)-count(last)-4, count)
	var lines []string
	for _, s := range []string{asked, tools, last} {
		if s != "" {
			lines = append(lines, s)
		}
	}
	return compacting.Clip(strings.Join(lines, "\n"), limit, count)
}

// gathered is what a digest is made of.
type gathered struct {
	asked      []string
	tools      []*toolUse
	conclusion string
}

type toolUse struct {
	name          string
	calls, errors int
}

func gather(entries []core.Entry) *gathered {
	d := &gathered{}
	byName, byCall := make(map[string]*toolUse), make(map[string]*toolUse)
	use := func(name string) *toolUse {
		if name = compacting.FirstLine(clean(name), 80); name == "" {
			name = "unknown"
		}
		if byName[name] == nil {
			byName[name] = &toolUse{name: name}
			d.tools = append(d.tools, byName[name])
		}
		return byName[name]
	}
	for i := range entries {
		e := &entries[i]
		if e.Hidden() {
			continue
		}
		for _, p := range e.Message.Parts {
			switch p.Kind {
			case message.ToolCall:
				t := use(p.Name)
				t.calls++
				byCall[p.CallID] = t
			case message.ToolResult:
				if p.IsError {
					t := byCall[p.CallID]
					if t == nil {
						t = use(p.Name)
					}
					t.errors++
				}
			}
		}
		text := clean(compacting.HeadBytes(e.Said(), 1<<16))
		if strings.TrimSpace(text) == "" || e.Message.HasResults() {
			continue
		}
		switch {
		case e.Type == core.TypeSubagent:
			d.asked = append(d.asked, "subagent: "+compacting.FirstLine(text, lineBytes))
		case e.Role == message.User:
			d.asked = append(d.asked, "user: "+compacting.FirstLine(text, lineBytes))
		case e.Role == message.Assistant:
			d.conclusion = text
		}
	}
	return d
}

// askedLines quotes as many first lines as have room: the first ones and, above all, the last ones.
func (d *gathered) askedLines(limit int, count core.TokenCounter) string {
	if len(d.asked) == 0 {
		return ""
	}
	cost := make([]int, len(d.asked))
	for i, a := range d.asked {
		cost[i] = count("- "+a+"\n") + 1
	}
	room := limit - count("Asked:\n- (1000 more)\n")
	head, tail := 0, len(d.asked)
	for turn := 0; head < tail; turn++ {
		i := tail - 1
		if turn%3 == 1 {
			i = head
		}
		if room -= cost[i]; room < 0 {
			break
		}
		if i == head && turn%3 == 1 {
			head++
		} else {
			tail--
		}
	}
	if head == 0 && tail == len(d.asked) {
		return compacting.Head("Asked: "+d.asked[tail-1], limit, count)
	}
	var b strings.Builder
	b.WriteString("Asked:")
	for _, a := range d.asked[:head] {
		b.WriteString("\n- " + a)
	}
	if tail > head {
		b.WriteString("\n- (" + strconv.Itoa(tail-head) + " more)")
	}
	for _, a := range d.asked[tail:] {
		b.WriteString("\n- " + a)
	}
	return b.String()
}

func (d *gathered) toolLine() string {
	tools := slices.DeleteFunc(slices.Clone(d.tools), func(t *toolUse) bool { return t.calls == 0 && t.errors == 0 })
	if len(tools) == 0 {
		return ""
	}
	slices.SortStableFunc(tools, func(a, b *toolUse) int {
		return cmp.Or(cmp.Compare(b.calls, a.calls), cmp.Compare(a.name, b.name))
	})
	var out []string
	for _, t := range tools {
		s := t.name + " " + strconv.Itoa(t.calls) + "x"
		if t.errors > 0 {
			s += " (" + strconv.Itoa(t.errors) + " failed)"
		}
		out = append(out, s)
	}
	return "Tools: " + strings.Join(out, ", ")
}
