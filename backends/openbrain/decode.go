package openbrain

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
)

// thought is a server's thought, whatever shape it came in.
type thought struct {
	// ID is the server's; empty when it gave none.
	ID      string
	Content string
	Source  string
	// Meta is nil when there was none.
	Meta    map[string]json.RawMessage
	Created time.Time
	// Score is only meaningful when Scored.
	Score  float64
	Scored bool
}

// listing is a decoded list of thoughts.
type listing struct {
	thoughts []thought
	// total is how many the server says there are; -1 when it does not say.
	total int
	// next continues the list as the cursor of our own server's lists; "" where there is none, or nothing more.
	next string
}

var errShape = errors.New("JSON that holds no thoughts")

// listKeys are the names under which servers put a list, elementKeys those under which they put one thought.
var (
	listKeys    = []string{"thoughts", "results", "items", "matches", "data"}
	elementKeys = []string{"thought", "record", "data", "result", "item", "memory"}
)

// maxNesting bounds how deep a list or thought may be wrapped.
const maxNesting = 4

// decodeList reads the answer of a listing or search: a bare array, or an object that holds one.
func decodeList(body []byte) (listing, error) {
	out := listing{total: -1}
	elements, ok := out.find(body, maxNesting)
	if !ok {
		return listing{}, errShape
	}
	for _, raw := range elements {
		t, ok := decodeElement(raw)
		if !ok {
			return listing{}, errShape
		}
		out.thoughts = append(out.thoughts, t)
	}
	return out, nil
}

// find returns the elements of the list in an answer, and reads what stands beside it.
func (l *listing) find(raw json.RawMessage, depth int) ([]json.RawMessage, bool) {
	if isKind(raw, '[') {
		var list []json.RawMessage
		err := json.Unmarshal(raw, &list)
		return list, err == nil
	}
	var object map[string]json.RawMessage
	if depth == 0 || !isKind(raw, '{') || json.Unmarshal(raw, &object) != nil {
		return nil, false
	}
	if next := object["next"]; depth == maxNesting && isKind(next, '"') {
		l.next, _ = textOf(next)
	}
	l.readTotal(object)
	if p := object["pagination"]; isKind(p, '{') {
		var pagination map[string]json.RawMessage
		if json.Unmarshal(p, &pagination) == nil {
			l.readTotal(pagination)
		}
	}
	for _, key := range listKeys {
		v, ok := object[key]
		if !ok {
			continue
		}
		if bytes.Equal(bytes.TrimSpace(v), []byte("null")) {
			return nil, true
		}
		if list, ok := l.find(v, depth-1); ok {
			return list, true
		}
	}
	return nil, false
}

func (l *listing) readTotal(object map[string]json.RawMessage) {
	var n int
	if v, ok := object["total"]; ok && json.Unmarshal(v, &n) == nil && n >= 0 {
		l.total = n
	}
}

// decodeOne reads the answer of a create or get: the thought itself, wrapped or not. ok is false when it has no id.
func decodeOne(body []byte) (thought, bool) {
	t, ok := unwrap(body, maxNesting)
	return t, ok && t.ID != ""
}

func unwrap(raw json.RawMessage, depth int) (thought, bool) {
	if isKind(raw, '[') { // PostgREST answers with a list of one
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil || len(list) != 1 {
			return thought{}, false
		}
		raw = list[0]
	}
	t, ok := decodeElement(raw)
	if !ok || t.ID != "" || depth == 0 {
		return t, ok
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return thought{}, false
	}
	for _, key := range elementKeys {
		if v := object[key]; isKind(v, '{') || isKind(v, '[') {
			if t, ok := unwrap(v, depth-1); ok && t.ID != "" {
				return t, true
			}
		}
	}
	return t, true
}

// decodeElement reads one element of a list: a thought, or an object that holds one next to its score.
func decodeElement(raw json.RawMessage) (thought, bool) {
	var object map[string]json.RawMessage
	if !isKind(raw, '{') || json.Unmarshal(raw, &object) != nil {
		return thought{}, false
	}
	var t thought
	if inner := object["thought"]; isKind(inner, '{') {
		var fields map[string]json.RawMessage
		if json.Unmarshal(inner, &fields) != nil {
			return thought{}, false
		}
		t.read(fields)
	}
	t.read(object)
	return t, true
}

// read takes from an object what t does not have yet.
func (t *thought) read(o map[string]json.RawMessage) {
	if t.ID == "" {
		t.ID = firstText(o, "id", "thought_id", "thoughtId")
	}
	if t.ID == "." || t.ID == ".." {
		t.ID = "" // cannot be named in a path
	}
	if t.Content == "" {
		t.Content = firstText(o, "content")
	}
	if t.Source == "" {
		t.Source = firstText(o, "source")
	}
	if t.Meta == nil {
		t.Meta = metadataOf(o["metadata"])
	}
	if t.Created.IsZero() {
		t.Created = parseTime(firstText(o, "created_at", "createdAt", "captured_at", "capturedAt"))
	}
	for _, key := range []string{"similarity", "score", "distance"} {
		if v, ok := numberOf(o[key]); ok && !t.Scored {
			if key == "distance" {
				v = 1 - v
			}
			t.Score, t.Scored = v, true
		}
	}
}

// metadataOf reads metadata that is an object, null, or an object written as a string.
func metadataOf(raw json.RawMessage) map[string]json.RawMessage {
	if isKind(raw, '"') {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return nil
		}
		raw = json.RawMessage(text)
	}
	var m map[string]json.RawMessage
	if !isKind(raw, '{') || json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// firstText returns the first of the fields that is a string or a number, as text.
func firstText(o map[string]json.RawMessage, keys ...string) string {
	for _, key := range keys {
		if s, ok := textOf(o[key]); ok && s != "" {
			return s
		}
	}
	return ""
}

func textOf(raw json.RawMessage) (string, bool) {
	raw = bytes.TrimSpace(raw)
	if isKind(raw, '"') {
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err == nil
	}
	if _, ok := numberOf(raw); ok {
		return string(raw), true
	}
	return "", false
}

// numberOf reads a number, or a string that holds one.
func numberOf(raw json.RawMessage) (float64, bool) {
	text := strings.Trim(string(bytes.TrimSpace(raw)), `"`)
	if text == "" || (text[0] != '-' && (text[0] < '0' || text[0] > '9')) {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}

func isKind(raw json.RawMessage, first byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == first
}

// timeLayouts are tried in order; a time without a zone is UTC.
var timeLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999-07", "2006-01-02 15:04:05.999999999",
}

// parseTime returns the zero time for what is no time.
func parseTime(s string) time.Time {
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
