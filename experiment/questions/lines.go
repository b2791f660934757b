package questions

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/nearest"
)

// line is a message or a question.
type line struct {
	Conversation string       `json:"conversation"`
	Session      string       `json:"session"`
	ID           string       `json:"id"`
	Role         message.Role `json:"role"`
	Name         string       `json:"name"`
	Time         string       `json:"time"`
	Text         *string      `json:"text"`
	Question     *string      `json:"question"`
	Answer       string       `json:"answer"`
	Category     string       `json:"category"`
	Evidence     []string     `json:"evidence"`
}

var (
	messageKeys  = []string{"conversation", "session", "id", "role", "name", "time", "text"}
	questionKeys = []string{"conversation", "question", "answer", "category", "evidence"}
)

// unnamed is the conversation, and the session, of lines that name none.
const unnamed = "1"

// lineReader collects conversations in the order in which they first appear.
type lineReader struct {
	path  string
	order []string
	chats map[string]*chat
}

// chat is a conversation on its way, with where its questions stand, whose evidence is looked up at the end.
type chat struct {
	Conversation
	known  map[string]bool
	places []string
}

func readLines(data []byte, path string) (*Dataset, error) {
	r := lineReader{path: path, chats: make(map[string]*chat)}
	n := 0
	for text := range bytes.Lines(data) {
		n++
		text = bytes.TrimSpace(text)
		if len(text) == 0 {
			continue
		}
		if err := r.line(text, "line "+strconv.Itoa(n)); err != nil {
			return nil, err
		}
	}
	d := &Dataset{Format: formatLines, Unit: Passage, Groups: []Group{{Name: "all"}}}
	for _, id := range r.order {
		c := r.chats[id]
		for i, q := range c.Questions {
			for _, e := range q.Evidence {
				if !c.known[e] {
					return nil, broken(path, c.places[i], fmt.Sprintf(`field "evidence": %q is the id of no message of conversation %q: name messages of the same conversation`, clip(e), clip(id)))
				}
			}
		}
		d.Conversations = append(d.Conversations, c.Conversation)
	}
	return d, nil
}

func (r *lineReader) line(text []byte, place string) error {
	var keys map[string]json.RawMessage
	if err := decode(text, &keys, r.path, place); err != nil {
		return err
	}
	known, what := messageKeys, "message"
	if _, ok := keys["question"]; ok {
		known, what = questionKeys, "question"
	} else if _, ok := keys["text"]; !ok {
		return broken(r.path, place, `neither "text" nor "question" is there: a line is a message, which has "text", or a question, which has "question"`)
	}
	for key := range keys {
		if !slices.Contains(known, key) {
			hint := ""
			if best, ok := nearest.Of(key, known); ok {
				hint = fmt.Sprintf(", did you mean %q?", best)
			}
			return broken(r.path, place, fmt.Sprintf("unknown field %q%s (a %s has: %s)", clip(key), hint, what, strings.Join(known, ", ")))
		}
	}
	var l line
	if err := decode(text, &l, r.path, place); err != nil {
		return err
	}
	id := cmp.Or(l.Conversation, unnamed)
	c := r.chats[id]
	if c == nil {
		c = &chat{Conversation: Conversation{ID: id}, known: make(map[string]bool)}
		r.chats[id] = c
		r.order = append(r.order, id)
	}
	if what == "question" {
		return r.question(c, l, place)
	}
	return r.message(c, l, place)
}

func (r *lineReader) message(c *chat, l line, place string) error {
	if l.ID == "" || c.known[l.ID] {
		return broken(r.path, place, `field "id": it is missing, or another message of the conversation has it: give each message an id of its own`)
	}
	if l.Text == nil || strings.TrimSpace(*l.Text) == "" {
		return broken(r.path, place, `field "text": it is empty: leave the message out`)
	}
	m := message.New(cmp.Or(l.Role, message.User), *l.Text)
	if !m.Role.Valid() {
		return broken(r.path, place, fmt.Sprintf(`field "role": %q is none of user, assistant, system, tool`, clip(string(l.Role))))
	}
	m.Name = l.Name
	if l.Time != "" {
		t, err := time.Parse(time.RFC3339, l.Time)
		if err != nil {
			return broken(r.path, place, `field "time": not a time such as "2025-05-05T09:00:00Z" (RFC 3339)`)
		}
		m.Time = t.UTC()
	}
	c.known[l.ID] = true
	session := cmp.Or(l.Session, unnamed)
	at := slices.IndexFunc(c.Sessions, func(s Session) bool { return s.ID == session })
	if at < 0 {
		at = len(c.Sessions)
		c.Sessions = append(c.Sessions, Session{ID: session})
	}
	c.Sessions[at].Messages = append(c.Sessions[at].Messages, Message{ID: l.ID, Message: m})
	return nil
}

func (r *lineReader) question(c *chat, l line, place string) error {
	if l.Question == nil || strings.TrimSpace(*l.Question) == "" {
		return broken(r.path, place, `field "question": it is empty: give the question's text`)
	}
	if l.Evidence == nil {
		return broken(r.path, place, `field "evidence": it is missing: list the ids of the messages that hold the answer, or give [] for a question that is not measured`)
	}
	q := Question{ID: strconv.Itoa(len(c.Questions)), Text: *l.Question, Answer: l.Answer, Category: l.Category}
	for _, id := range l.Evidence {
		if !slices.Contains(q.Evidence, id) {
			q.Evidence = append(q.Evidence, id)
		}
	}
	c.Questions = append(c.Questions, q)
	c.places = append(c.places, place)
	return nil
}
