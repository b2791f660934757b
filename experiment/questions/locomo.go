package questions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core/message"
)

// locomoCategories are the categories by number; 0 is none.
var locomoCategories = [...]string{"", "multi-hop", "temporal", "open-domain", "single-hop", "adversarial"}

// locomoTime is how LoCoMo writes when a session took place.
const locomoTime = "3:04 pm on 2 January, 2006"

// turnID finds what evidence names: "D8:6; D9:17", "D:11:26" and "D30:05" are there, and "D" alone, which is nothing.
var turnID = regexp.MustCompile(`D:?(\d{1,9}):(\d{1,9})`)

type locomoSample struct {
	ID           string                     `json:"sample_id"`
	Conversation map[string]json.RawMessage `json:"conversation"`
	QA           []struct {
		Question string          `json:"question"`
		Answer   json.RawMessage `json:"answer"`
		Evidence []string        `json:"evidence"`
		Category int             `json:"category"`
	} `json:"qa"`
}

func readLoCoMo(data []byte, path string) (*Dataset, error) {
	var samples []locomoSample
	if err := decode(data, &samples, path, "samples"); err != nil {
		return nil, err
	}
	d := &Dataset{Format: formatLoCoMo, Unit: WholeMessage, Groups: []Group{
		{Name: "categories 1-4", Categories: locomoCategories[1:5]},
		{Name: "with adversarial"},
	}}
	unknown := 0
	for i, s := range samples {
		place := "sample " + strconv.Itoa(i)
		if s.ID != "" {
			place += " (" + clip(s.ID) + ")"
		}
		if s.Conversation == nil {
			return nil, broken(path, place, `field "conversation": it is missing: LoCoMo's samples have "conversation" and "qa"; for data of your own use JSON lines`)
		}
		c := Conversation{ID: s.ID}
		if c.ID == "" {
			c.ID = strconv.Itoa(i)
		}
		var err error
		if c.Sessions, err = locomoSessions(s.Conversation, path, place); err != nil {
			return nil, err
		}
		known := make(map[string]bool)
		for _, session := range c.Sessions {
			for _, m := range session.Messages {
				known[m.ID] = true
			}
		}
		for k, qa := range s.QA {
			at := place + ": qa[" + strconv.Itoa(k) + "]"
			if qa.Category < 0 || qa.Category >= len(locomoCategories) {
				return nil, broken(path, at, `field "category": must be 1 to 5`)
			}
			if strings.TrimSpace(qa.Question) == "" {
				return nil, broken(path, at, `field "question": it is empty: give the question's text`)
			}
			q := Question{ID: strconv.Itoa(k), Text: qa.Question, Category: locomoCategories[qa.Category], Answer: plain(qa.Answer)}
			for _, text := range qa.Evidence {
				ids, lost := evidenceOf(text, known)
				unknown += lost
				for _, id := range ids {
					if !slices.Contains(q.Evidence, id) {
						q.Evidence = append(q.Evidence, id)
					}
				}
			}
			c.Questions = append(c.Questions, q)
		}
		d.Conversations = append(d.Conversations, c)
	}
	if unknown > 0 {
		d.Notes = append(d.Notes, strconv.Itoa(unknown)+" of the names in evidence are of no turn that is there and are passed over")
	}
	return d, nil
}

// evidenceOf returns the ids of turns that a piece of evidence names, and how many of its names mean nothing.
func evidenceOf(text string, known map[string]bool) (ids []string, lost int) {
	found := turnID.FindAllStringSubmatch(text, -1)
	if found == nil {
		return nil, 1
	}
	for _, m := range found {
		session, _ := strconv.Atoi(m[1]) // digits, and few of them
		turn, _ := strconv.Atoi(m[2])
		id := fmt.Sprintf("D%d:%d", session, turn)
		if !known[id] {
			lost++
			continue
		}
		ids = append(ids, id)
	}
	return ids, lost
}

// plain returns a text or number as text.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

// locomoSessions returns the sessions in the order of their numbers. Both people are users with a name. Turns of a session are a minute apart.
func locomoSessions(conversation map[string]json.RawMessage, path, place string) ([]Session, error) {
	var numbers []int
	for key := range conversation {
		if n, err := strconv.Atoi(strings.TrimPrefix(key, "session_")); err == nil && strings.HasPrefix(key, "session_") {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	var out []Session
	for _, n := range numbers {
		key := "session_" + strconv.Itoa(n)
		at := place + ": " + key
		var turns []struct {
			Speaker string `json:"speaker"`
			ID      string `json:"dia_id"`
			Text    string `json:"text"`
			Caption string `json:"blip_caption"`
		}
		if err := decode(conversation[key], &turns, path, at); err != nil {
			return nil, err
		}
		var begin time.Time
		if raw := conversation[key+"_date_time"]; raw != nil && !bytes.Equal(raw, []byte("null")) {
			var date string
			if err := decode(raw, &date, path, at+"_date_time"); err != nil {
				return nil, err
			}
			var err error
			if begin, err = time.Parse(locomoTime, date); err != nil {
				return nil, broken(path, at+"_date_time", `not a time such as "1:56 pm on 8 May, 2023"`)
			}
		}
		s := Session{ID: key}
		for i, turn := range turns {
			if turn.ID == "" {
				return nil, broken(path, fmt.Sprintf("%s[%d]", at, i), `field "dia_id": it is empty: evidence names turns by it`)
			}
			text := turn.Text
			if turn.Caption != "" {
				text += " [image: " + turn.Caption + "]"
			}
			m := message.New(message.User, text)
			m.Name = turn.Speaker
			if !begin.IsZero() {
				m.Time = begin.Add(time.Duration(i) * time.Minute)
			}
			s.Messages = append(s.Messages, Message{ID: turn.ID, Message: m})
		}
		if len(s.Messages) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}
