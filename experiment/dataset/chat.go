package dataset

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core/message"
)

// turn is one utterance of a chat on its way to a message.
type turn struct {
	role    message.Role
	speaker string
	text    string
	time    time.Time
	id      string
}

// chat makes the messages of a conversation: OpenAI's, because a collection has no format of its own that a model is sent.
func chat(id string, turns []turn) (message.Conversation, error) {
	c := message.Conversation{ID: id, Format: message.FormatOpenAI}
	codec, err := message.Lookup(message.FormatOpenAI)
	if err != nil {
		return c, err
	}
	for i, t := range turns {
		raw, err := json.Marshal(struct {
			Role    message.Role `json:"role"`
			Name    string       `json:"name,omitempty"`
			Content string       `json:"content"`
		}{t.role, t.speaker, t.text})
		if err != nil {
			return c, fmt.Errorf("turn %d: %w", i, err)
		}
		m, err := codec.Decode(raw)
		if err != nil {
			return c, fmt.Errorf("turn %d: %w", i, err)
		}
		m.Time, m.ID, m.Name = t.time, t.id, t.speaker
		c.Messages = append(c.Messages, m)
	}
	return c, nil
}

// readLoCoMo reads conversations between two people. The first speaker is the user, the second the assistant.
func readLoCoMo(data []byte) ([]message.Conversation, error) {
	var samples []struct {
		ID           string                     `json:"sample_id"`
		Conversation map[string]json.RawMessage `json:"conversation"`
	}
	if err := json.Unmarshal(data, &samples); err != nil {
		return nil, err
	}
	var out []message.Conversation
	for i, s := range samples {
		turns, err := locomoTurns(s.Conversation)
		if err != nil {
			return nil, fmt.Errorf("sample %d: %w", i, err)
		}
		id := s.ID
		if id == "" {
			id = strconv.Itoa(i)
		}
		c, err := chat(id, turns)
		if err != nil {
			return nil, fmt.Errorf("sample %d: %w", i, err)
		}
		out = append(out, c)
	}
	return out, nil
}

func locomoTurns(conversation map[string]json.RawMessage) ([]turn, error) {
	var first string
	if raw := conversation["speaker_a"]; raw != nil {
		if err := json.Unmarshal(raw, &first); err != nil {
			return nil, fmt.Errorf("speaker_a: %w", err)
		}
	}
	var out []turn
	missing := 0
	// Sessions are numbered from 1; a few numbers have a date and no turns.
	for n := 1; missing < 10; n++ {
		key := "session_" + strconv.Itoa(n)
		raw, ok := conversation[key]
		if !ok {
			missing++
			continue
		}
		var said []struct {
			Speaker string `json:"speaker"`
			ID      string `json:"dia_id"`
			Text    string `json:"text"`
			Caption string `json:"blip_caption"`
		}
		if err := json.Unmarshal(raw, &said); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		var date string
		if d := conversation[key+"_date_time"]; d != nil {
			if err := json.Unmarshal(d, &date); err != nil {
				return nil, fmt.Errorf("%s_date_time: %w", key, err)
			}
		}
		at, _ := time.Parse("3:04 pm on 2 January, 2006", date) // zero where there is no date: the clock's time then
		for i, s := range said {
			t := turn{role: message.User, speaker: s.Speaker, text: s.Text, id: s.ID}
			if s.Speaker != first {
				t.role = message.Assistant
			}
			if s.Caption != "" {
				t.text = strings.TrimSpace(t.text + " [image: " + s.Caption + "]")
			}
			if !at.IsZero() {
				t.time = at.Add(time.Duration(i) * time.Second)
			}
			out = append(out, t)
		}
	}
	return out, nil
}

// readBEAM reads a chat of a user and an assistant in batches.
func readBEAM(data []byte) ([]message.Conversation, error) {
	var batches []struct {
		Turns [][]struct {
			Role    message.Role    `json:"role"`
			ID      json.RawMessage `json:"id"`
			Content string          `json:"content"`
			Anchor  string          `json:"time_anchor"`
		} `json:"turns"`
	}
	if err := json.Unmarshal(data, &batches); err != nil {
		return nil, err
	}
	var turns []turn
	var at time.Time
	for b, batch := range batches {
		for _, exchange := range batch.Turns {
			for _, m := range exchange {
				if !m.Role.Valid() {
					return nil, fmt.Errorf("batch %d: role %q is none of user, assistant", b, m.Role)
				}
				if t, err := time.Parse("January-02-2006", m.Anchor); err == nil {
					at = t
				} else if !at.IsZero() {
					at = at.Add(time.Second)
				}
				turns = append(turns, turn{role: m.Role, text: m.Content, time: at, id: strings.Trim(string(m.ID), `"`)})
			}
		}
	}
	c, err := chat("", turns)
	return []message.Conversation{c}, err
}

// readTeam reads a group chat: everybody is a user.
func readTeam(data []byte) ([]message.Conversation, error) {
	var file struct {
		List []struct {
			ID      string          `json:"message_id"`
			Time    time.Time       `json:"create_time"`
			Sender  string          `json:"sender"`
			Name    string          `json:"sender_name"`
			Content json.RawMessage `json:"content"`
		} `json:"conversation_list"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	turns := make([]turn, 0, len(file.List))
	for _, m := range file.List {
		t := turn{role: message.User, speaker: m.Name, time: m.Time.UTC(), id: m.ID}
		if t.speaker == "" {
			t.speaker = m.Sender
		}
		if json.Unmarshal(m.Content, &t.text) != nil {
			t.text = string(m.Content) // cards and files are objects
		}
		turns = append(turns, t)
	}
	c, err := chat("", turns)
	return []message.Conversation{c}, err
}
