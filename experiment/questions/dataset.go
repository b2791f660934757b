package questions

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// Dataset is conversations with questions about them. Treat it as read-only: it may be shared.
type Dataset struct {
	// Name is the file's or folder's, Format "locomo", "beam" or "jsonl".
	Name, Format string
	// Unit says what is packed into a token budget of a message that was found: all of it, or the passage that the retriever quotes.
	Unit Unit
	// Groups are the sets of questions that figures are given for besides those for each category. The first is the headline.
	Groups        []Group
	Conversations []Conversation
	// Notes say what was passed over, such as evidence that names no message.
	Notes []string
}

// Unit is what counts as packed.
type Unit string

// The units.
const (
	WholeMessage Unit = "message"
	Passage      Unit = "passage"
)

// Group is a set of questions by category.
type Group struct {
	Name string
	// Categories are those that belong to it; all when it is empty.
	Categories []string
}

// Has reports whether questions of a category belong to the group.
func (g Group) Has(category string) bool {
	return len(g.Categories) == 0 || slices.Contains(g.Categories, category)
}

// Conversation is a conversation in one or more sessions, and what is asked about it.
type Conversation struct {
	ID        string
	Sessions  []Session
	Questions []Question
}

// Messages returns the number of messages.
func (c Conversation) Messages() int {
	n := 0
	for _, s := range c.Sessions {
		n += len(s.Messages)
	}
	return n
}

// Session is a part of a conversation that happened at one time.
type Session struct {
	ID       string
	Messages []Message
}

// Message is a message and the id that evidence names it by.
type Message struct {
	ID string
	message.Message
}

// Question asks about a conversation.
type Question struct {
	// ID is unique within the conversation.
	ID, Text string
	// Answer is the gold answer; empty where there is none.
	Answer   string
	Category string
	// Evidence holds the ids of the messages that hold the answer, each once. A question without is not measured.
	Evidence []string
}

// Categories returns the categories of questions with evidence, in the order in which the format numbers or the file names them.
func (d *Dataset) Categories() []string {
	var out []string
	for _, c := range d.Conversations {
		for _, q := range c.Questions {
			if q.Category != "" && len(q.Evidence) > 0 && !slices.Contains(out, q.Category) {
				out = append(out, q.Category)
			}
		}
	}
	if d.Format == formatLoCoMo {
		slices.SortFunc(out, func(a, b string) int {
			return slices.Index(locomoCategories[:], a) - slices.Index(locomoCategories[:], b)
		})
	} else {
		slices.Sort(out)
	}
	return out
}

// Measured returns the number of questions with evidence.
func (d *Dataset) Measured() int {
	n := 0
	for _, c := range d.Conversations {
		for _, q := range c.Questions {
			if len(q.Evidence) > 0 {
				n++
			}
		}
	}
	return n
}

// Digest identifies what the data set holds, whatever its name: 16 hexadecimal digits.
func (d *Dataset) Digest() string {
	h := sha256.New()
	e := json.NewEncoder(h)
	_ = e.Encode([]any{d.Format, d.Unit, d.Groups}) // a hash takes everything, and these types have nothing that JSON has not
	for _, c := range d.Conversations {
		for _, s := range c.Sessions {
			for _, m := range s.Messages {
				_ = e.Encode([]any{c.ID, s.ID, m.ID, m.Role, m.Name, m.Time, m.Text()})
			}
		}
		_ = e.Encode(c.Questions)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// finish checks what all formats have to hold.
func (d *Dataset) finish() error {
	seen := make(map[string]bool)
	messages, without := 0, 0
	for i := range d.Conversations {
		c := &d.Conversations[i]
		if seen[c.ID] {
			return fmt.Errorf("conversation %q: it is there twice: give each conversation an id of its own: %w", clip(c.ID), core.ErrInvalid)
		}
		seen[c.ID] = true
		messages += c.Messages()
		for _, q := range c.Questions {
			if len(q.Evidence) == 0 {
				without++
			}
		}
	}
	if messages == 0 {
		return fmt.Errorf("no messages: a data set needs conversations and questions about them: %w", core.ErrInvalid)
	}
	if d.Measured() == 0 {
		return fmt.Errorf("no question with evidence: name the messages that hold the answer in the field \"evidence\": %w", core.ErrInvalid)
	}
	if without > 0 {
		d.Notes = append(d.Notes, strconv.Itoa(without)+" of the questions name no evidence that is there and are left out")
	}
	return nil
}

// clip bounds a name from a file for an error message.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
