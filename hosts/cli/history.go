package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// history is what a session's window stands on.
type history struct {
	// Summaries are those in force; each names those that it replaced.
	Summaries []summaryNode `json:"summaries"`
	Window    []windowLine  `json:"window"`
}

type summaryNode struct {
	ID     string            `json:"id"`
	Kind   string            `json:"kind"`
	Covers int               `json:"covers"`
	Tokens int               `json:"tokens"`
	Time   time.Time         `json:"time"`
	Meta   map[string]string `json:"meta,omitempty"`
	Head   string            `json:"head"`
	From   []summaryNode     `json:"from,omitempty"`
}

type windowLine struct {
	ID     string          `json:"id"`
	Role   message.Role    `json:"role"`
	Tokens int             `json:"tokens"`
	Stub   window.StubKind `json:"stub,omitempty"`
	Head   string          `json:"head"`
}

func (l windowLine) how() string {
	switch l.Stub {
	case window.Masked:
		return "(masked) "
	case window.Clipped:
		return "(clipped) "
	}
	return ""
}

// readHistory reads what a view is made of. Without one everything is shown, as an engine that begins anew over the store would show it.
func readHistory(ctx context.Context, store core.Store, id core.SessionID) (history, error) {
	var h history
	views, ok := core.As[core.ViewStore](store)
	if !ok {
		err := h.read(ctx, store, core.ScanQuery{Scope: id.Scope()}, nil)
		return h, err
	}
	v, err := views.LoadView(ctx, id)
	if errors.Is(err, core.ErrNotFound) {
		err := h.read(ctx, store, core.ScanQuery{Scope: id.Scope()}, nil)
		return h, err
	}
	if err != nil {
		return h, err
	}
	made := make(map[string]core.Entry)
	if len(v.Summaries) > 0 {
		for entry, err := range core.All(ctx, store, id.Scope(), false) {
			if err != nil {
				return h, err
			}
			if entry.Type == core.TypeSummary {
				made[entry.ID] = entry
			}
		}
	}
	for _, s := range v.Summaries {
		h.Summaries = append(h.Summaries, nodeOf(s, made))
	}
	for _, sp := range v.Slice(max(v.Start, v.Lead, 0), v.Len()) {
		owner := id
		if sp.Session != nil {
			owner = *sp.Session
		}
		if err := h.read(ctx, store, core.ScanQuery{Scope: owner.Scope(), FromSeq: sp.From, ToSeq: sp.To}, v.Stubs); err != nil {
			return h, err
		}
	}
	return h, nil
}

// read adds the messages of a query to the window.
func (h *history) read(ctx context.Context, store core.Store, q core.ScanQuery, stubs map[string]window.Stub) error {
	q.Limit = core.MaxPage
	for {
		page, err := store.Scan(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Entries {
			if entry := &page.Entries[i]; !entry.Hidden() && entry.Type != core.TypeSummary {
				h.Window = append(h.Window, lineOf(entry, stubs))
			}
		}
		if page.Next == "" {
			return nil
		}
		q.Cursor = page.Next
	}
}

func lineOf(entry *core.Entry, stubs map[string]window.Stub) windowLine {
	l := windowLine{ID: entry.ID, Role: entry.Role, Tokens: entry.Tokens, Head: headOf(entry.Text())}
	if st, ok := stubs[entry.ID]; ok {
		l.Stub, l.Tokens = st.Kind, st.Tokens
	}
	for _, c := range entry.Message.Calls() {
		l.Head = strings.TrimSpace(l.Head + " -> " + c.Name + " " + headOf(c.Args))
	}
	return l
}

// nodeOf is a summary with those that it replaced.
func nodeOf(s core.Summary, made map[string]core.Entry) summaryNode {
	n := summaryNode{ID: s.ID, Kind: s.Kind, Covers: s.Covers, Tokens: s.Tokens, Time: s.Time, Head: headOf(s.Text)}
	entry, ok := made[s.ID]
	if !ok {
		return n
	}
	n.Meta = entry.Meta
	for id := range strings.SplitSeq(entry.Meta["supersedes"], ",") {
		if old, ok := made[id]; ok && id != s.ID {
			delete(made, id) // each has its place once
			n.From = append(n.From, nodeOf(core.Summary{ID: id, Kind: old.Meta["kind"], Tokens: old.Tokens, Time: old.Time, Text: old.Text()}, made))
		}
	}
	return n
}

func (h history) print(w io.Writer, n summaryNode, indent string) {
	fmt.Fprintf(w, "  %s%s #%s, %d tokens, %s", indent, n.Kind, n.ID, n.Tokens, moment(n.Time))
	if n.Covers > 0 {
		fmt.Fprintf(w, ", stands for %d messages", n.Covers)
	}
	fmt.Fprintf(w, "\n  %s  %s\n", indent, n.Head)
	var known []string
	for key, value := range n.Meta {
		if !slices.Contains([]string{"kind", "covers", "of", "frontier", "supersedes"}, key) && value != "" {
			known = append(known, key+" "+headOf(value))
		}
	}
	if slices.Sort(known); len(known) > 0 {
		fmt.Fprintf(w, "  %s  (%s)\n", indent, strings.Join(known, ", "))
	}
	for _, from := range n.From {
		h.print(w, from, indent+"    ")
	}
}

// headOf returns the beginning of a text in one line, safe for a terminal.
func headOf(text string) string {
	const most = 100
	if len(text) > 4*most {
		text = text[:4*most]
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r), r == utf8.RuneError:
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) > most {
		runes := []rune(text)
		text = string(runes[:most]) + "..."
	}
	return text
}
