package inventory

import (
	"context"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/compacting"
	"github.com/contextengine/contextengine/internal/compacting/exact"
)

// Inventory is what was read. Make one with New; it is not safe for concurrent use.
type Inventory struct {
	words map[string]*word
	order []*word
	lines []line
	known map[string]bool
	// steps is the number of entries read; the mentions of words are dated by it.
	steps int
}

// word is what is known of an identifier.
type word struct {
	text string
	kind exact.Kind
	// args counts the tool calls that were given it, short those among them that were given little else; user, said and results count the messages, and keys
	// the texts where it is the name of a field.
	short, args, user, said, results, keys int
	// last is the step of the newest mention.
	last int
	// carried is the rank it had in an earlier text, 1 for the first to 0 for the last.
	carried float64
	old     bool
	// stays says that a message that stays says it too.
	stays bool
}

// line is a sentence with what it is.
type line struct {
	label, text string
	rank        float64
}

// The labels of lines.
const (
	LabelRule     = "Rule"
	LabelTask     = "Open"
	LabelDecision = "Decided"
	LabelNote     = "Note"
	LabelAsked    = "Asked"
)

// WordsRow begins the line with the words.
const WordsRow = "Exact: "

// Bounds of what is remembered while reading.
const (
	mostWords = 40000
	mostLines = 4000
	// shortArgs is how long an argument is that was given to a tool for itself, in bytes.
	shortArgs = 400
	// scanBytes bounds what is looked at of one text; longer ones are looked at from both ends.
	scanBytes = 1 << 19
)

// New returns an empty inventory.
func New() *Inventory {
	return &Inventory{words: make(map[string]*word), known: make(map[string]bool)}
}

// Len returns the number of words.
func (v *Inventory) Len() int { return len(v.order) }

// Read takes up entries, oldest first. The error is ctx's.
func (v *Inventory) Read(ctx context.Context, entries []core.Entry) error {
	for i := range entries {
		if i%64 == 0 && ctx.Err() != nil {
			return fmt.Errorf("inventory: read: %w", ctx.Err())
		}
		v.steps++
		if e := &entries[i]; !e.Hidden() {
			v.entry(e)
		}
	}
	return nil
}

// Stays notes which words are said by entries that stay. Their results do not count: those may be masked later.
func (v *Inventory) Stays(entries []core.Entry) {
	for i := range entries {
		if entries[i].Hidden() {
			continue
		}
		for _, p := range entries[i].Message.Parts {
			switch p.Kind {
			case message.ToolCall:
				for _, text := range compacting.ArgTexts(p.Args) {
					v.stay(text)
				}
			case message.Text:
				v.stay(p.Text)
			}
		}
	}
}

func (v *Inventory) stay(text string) {
	exact.Scan(text, func(s string, _ exact.Kind, _ int) bool {
		if w := v.words[s]; w != nil {
			w.stays = true
		}
		return true
	})
}

func (v *Inventory) entry(e *core.Entry) {
	for _, p := range e.Message.Parts {
		switch p.Kind {
		case message.ToolCall:
			for _, text := range compacting.ArgTexts(p.Args) {
				v.scan(text, func(w *word) {
					w.args++
					if len(text) <= shortArgs {
						w.short++
					}
				})
			}
		case message.ToolResult:
			v.scan(p.Text, func(w *word) { w.results++ })
		case message.Text:
			switch {
			case e.Role == message.User && e.Type == core.TypeMessage:
				v.scan(p.Text, func(w *word) { w.user++ })
				v.said(p.Text, true)
			case e.Role == message.Tool:
				v.scan(p.Text, func(w *word) { w.results++ })
			default:
				v.scan(p.Text, func(w *word) { w.said++ })
				v.said(p.Text, false)
			}
		}
	}
}

// scan counts each word of text once.
func (v *Inventory) scan(text string, count func(*word)) {
	for _, piece := range ends(text) {
		once := make(map[string]bool)
		exact.Scan(piece, func(s string, kind exact.Kind, at int) bool {
			if once[s] {
				return true
			}
			once[s] = true
			w := v.word(s, kind)
			switch {
			case w == nil:
			case exact.IsKey(piece, at, len(s)) && !strings.ContainsAny(s, "0123456789"):
				w.keys++ // the schema: it comes again with every result
			default:
				w.last = v.steps
				count(w)
			}
			return true
		})
	}
}

// word returns what is known of a word; nil when there are too many.
func (v *Inventory) word(s string, kind exact.Kind) *word {
	w := v.words[s]
	if w == nil && len(v.words) < mostWords {
		w = &word{text: strings.Clone(s), kind: kind}
		v.words[w.text] = w
		v.order = append(v.order, w)
	}
	return w
}

// ends returns what is looked at of a text.
func ends(text string) []string {
	if len(text) <= scanBytes {
		return []string{text}
	}
	return []string{text[:scanBytes/2], text[len(text)-scanBytes/2:]}
}

// said takes up the sentences of a text that hold for longer; of a user's also the request it begins with.
func (v *Inventory) said(text string, user bool) {
	if len(text) > scanBytes {
		text = text[:scanBytes]
	}
	first := user
	for s := range exact.Sentences(text) {
		label, rank := "", 0.0
		switch exact.SenseOf(s) {
		case exact.Rule:
			label, rank = LabelRule, 3
		case exact.Task:
			label, rank = LabelTask, 2
		case exact.Decision:
			label, rank = LabelDecision, 1.5
		case exact.Negation:
			label, rank = LabelNote, 0.7
		}
		switch {
		case user && label != "":
			rank += 2
		case user && telling(s):
			label, rank = LabelNote, 2
		case first:
			label, rank = LabelAsked, 1
		case label == LabelRule || label == LabelNote:
			label = "" // what an assistant says about itself or its tools binds nobody
		}
		first = false
		if label != "" {
			v.add(line{label: label, text: s, rank: rank + float64(v.steps)*1e-6})
		}
	}
}

// telling reports whether a sentence holds a word that is worth keeping exactly.
func telling(s string) bool {
	found := false
	exact.Scan(s, func(string, exact.Kind, int) bool { found = true; return false })
	return found
}

func (v *Inventory) add(l line) {
	if v.known[l.text] || len(v.lines) >= mostLines {
		return
	}
	v.known[l.text] = true
	v.lines = append(v.lines, l)
}
