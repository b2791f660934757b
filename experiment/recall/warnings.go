package recall

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// Warnings is a slog.Handler that counts warnings and errors by what they say. Parts that go on without one of their own say so there and nowhere else:
// a retriever whose embedder is down. The zero value is ready; it is safe for concurrent use.
type Warnings struct {
	mu    sync.Mutex
	total int
	seen  map[string]*Warning
	attrs string
	root  *Warnings
}

// Warning is something that went wrong without stopping the measurement.
type Warning struct {
	// Text is the message and its attributes, "error" left out; Example the first error that came with it.
	Text    string `json:"text"`
	Example string `json:"example,omitempty"`
	Count   int    `json:"count"`
}

var _ slog.Handler = (*Warnings)(nil)

// Enabled implements slog.Handler.
func (w *Warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler.
func (w *Warnings) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message + w.attrs)
	example := ""
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "error", "err":
			example = a.Value.String()
		default:
			b.WriteString(" " + a.Key + "=" + a.Value.String())
		}
		return true
	})
	w.add(b.String(), example)
	return nil
}

// WithAttrs implements slog.Handler.
func (w *Warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := &Warnings{attrs: w.attrs, root: w.base()}
	for _, a := range attrs {
		out.attrs += " " + a.Key + "=" + a.Value.String()
	}
	return out
}

// WithGroup implements slog.Handler. Groups are not kept apart.
func (w *Warnings) WithGroup(string) slog.Handler { return w }

func (w *Warnings) base() *Warnings {
	if w.root != nil {
		return w.root
	}
	return w
}

func (w *Warnings) add(text, example string) {
	w = w.base()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		w.seen = make(map[string]*Warning)
	}
	w.total++
	if w.seen[text] == nil {
		w.seen[text] = &Warning{Text: text, Example: example}
	}
	w.seen[text].Count++
}

// count returns how many there were.
func (w *Warnings) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total
}

// List returns what was counted, the most frequent first.
func (w *Warnings) List() []Warning {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Warning
	for _, one := range w.seen {
		out = append(out, *one)
	}
	slices.SortFunc(out, func(a, b Warning) int { return cmp.Or(b.Count-a.Count, strings.Compare(a.Text, b.Text)) })
	return out
}
