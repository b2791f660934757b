package questions

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core/message"
)

// beamDate is how BEAM writes the day of a turn.
const beamDate = "January-2-2006"

// openBEAM reads the chat in a folder.
func openBEAM(folder string) (Conversation, []string, error) {
	read := func(name string) ([]byte, string, error) {
		path := filepath.Join(folder, name)
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, path, fmt.Errorf("%w: a BEAM chat is a folder with %s and %s", err, beamChat, beamProbes)
		}
		return data, path, nil
	}
	chat, chatPath, err := read(beamChat)
	if err != nil {
		return Conversation{}, nil, err
	}
	probes, probesPath, err := read(beamProbes)
	if err != nil {
		return Conversation{}, nil, err
	}
	return readBEAM(chat, chatPath, probes, probesPath)
}

// readBEAM reads the two files of a chat, which is named like their folder.
func readBEAM(chat []byte, chatPath string, probes []byte, probesPath string) (Conversation, []string, error) {
	c := Conversation{ID: filepath.Base(filepath.Dir(filepath.Clean(chatPath)))}
	var err error
	if c.Sessions, err = beamSessions(chat, chatPath); err != nil {
		return Conversation{}, nil, err
	}
	known := make(map[string]bool)
	for _, s := range c.Sessions {
		for _, m := range s.Messages {
			known[m.ID] = true
		}
	}
	var unknown int
	if c.Questions, unknown, err = beamQuestions(probes, probesPath, known); err != nil {
		return Conversation{}, nil, err
	}
	var notes []string
	if unknown > 0 {
		notes = append(notes, fmt.Sprintf("%s: %d of the names in evidence are of no message that is there and are passed over", c.ID, unknown))
	}
	return c, notes, nil
}

// beamSessions makes a session of each batch. Messages are a minute apart, counted from the day that the newest anchor names.
func beamSessions(data []byte, path string) ([]Session, error) {
	var batches []struct {
		Turns [][]struct {
			Role    message.Role    `json:"role"`
			Content string          `json:"content"`
			ID      json.RawMessage `json:"id"`
			Anchor  string          `json:"time_anchor"`
		} `json:"turns"`
	}
	if err := decode(data, &batches, path, "batches"); err != nil {
		return nil, err
	}
	var out []Session
	var at time.Time
	seen := make(map[string]bool)
	for b, batch := range batches {
		s := Session{ID: "batch-" + strconv.Itoa(b)}
		for e, exchange := range batch.Turns {
			for i, turn := range exchange {
				place := fmt.Sprintf("batch %d: turns[%d][%d]", b, e, i)
				if !turn.Role.Valid() {
					return nil, broken(path, place, fmt.Sprintf(`field "role": %q is none of user, assistant, system, tool`, clip(string(turn.Role))))
				}
				id := strings.Trim(string(turn.ID), `"`)
				if id == "" || id == "null" || seen[id] {
					return nil, broken(path, place, `field "id": it is missing or there twice: questions name messages by it`)
				}
				seen[id] = true
				if day, err := time.Parse(beamDate, turn.Anchor); err == nil {
					at = day
				}
				at = at.Add(time.Minute)
				m := message.New(turn.Role, turn.Content)
				m.Time = at
				s.Messages = append(s.Messages, Message{ID: id, Message: m})
			}
		}
		if len(s.Messages) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

// number finds ids in evidence, which is a list, or lists under names.
var number = regexp.MustCompile(`\d+`)

// beamQuestions returns the questions, kind by kind in the order of their names.
func beamQuestions(data []byte, path string, known map[string]bool) (out []Question, unknown int, err error) {
	type probe struct {
		Question string          `json:"question"`
		Source   json.RawMessage `json:"source_chat_ids"`
		// The gold answer goes by one of these names.
		Answer       json.RawMessage `json:"answer"`
		IdealAnswer  json.RawMessage `json:"ideal_answer"`
		IdealSummary json.RawMessage `json:"ideal_summary"`
	}
	var probes map[string][]probe
	if err := decode(data, &probes, path, "questions"); err != nil {
		return nil, 0, err
	}
	for _, kind := range slices.Sorted(maps.Keys(probes)) {
		for i, p := range probes[kind] {
			if strings.TrimSpace(p.Question) == "" {
				return nil, 0, broken(path, fmt.Sprintf("%s[%d]", clip(kind), i), `field "question": it is empty: give the question's text`)
			}
			q := Question{
				ID: kind + "-" + strconv.Itoa(i), Text: p.Question, Category: kind,
				Answer: cmp.Or(plain(p.Answer), plain(p.IdealAnswer), plain(p.IdealSummary)),
			}
			for _, id := range number.FindAllString(string(p.Source), -1) {
				switch {
				case !known[id]:
					unknown++
				case !slices.Contains(q.Evidence, id):
					q.Evidence = append(q.Evidence, id)
				}
			}
			out = append(out, q)
		}
	}
	return out, unknown, nil
}
