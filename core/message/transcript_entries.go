package message

import (
	"bytes"
	"encoding/json"
	"errors"
)

// isDocument reports whether data is one JSON value rather than one per line: an array, or an object that goes on after
// its first line.
func isDocument(data []byte) bool {
	start := skipSpace(data, 0)
	first := bytes.Trim(lineFrom(data, start), space)
	if len(first) == 0 {
		return false
	}
	if json.Valid(first) {
		// An array in one line is a document unless another line follows.
		return first[0] == '[' && skipSpace(data, start+len(first)) == len(data)
	}
	switch first[len(first)-1] {
	case '{', '[', ',', ':':
		return true
	}
	return first[0] == '[' || json.Valid(data)
}

func skipSpace(data []byte, at int) int {
	for at < len(data) && bytes.IndexByte([]byte(space), data[at]) >= 0 {
		at++
	}
	return at
}

// lineFrom returns the rest of the line that starts at an offset.
func lineFrom(data []byte, at int) []byte {
	line, _, _ := bytes.Cut(data[at:], []byte{'\n'})
	return line
}

// lines reads a file of one JSON value per line.
func (t *transcript) lines() error {
	for at := 0; at < len(t.data); {
		line := lineFrom(t.data, at)
		start := skipSpace(t.data[:at+len(line)], at)
		raw := bytes.Trim(line, space)
		at += len(line) + 1
		if len(raw) == 0 {
			continue
		}
		if raw[0] == '[' {
			if err := t.open("", FormatOpenAI); err != nil {
				return err
			}
			t.collect(start, raw)
			if err := t.finish(); err != nil {
				return err
			}
			continue
		}
		o, err := parseObject(raw)
		if err != nil {
			t.fail(start, err)
			continue
		}
		if err := t.entry(start, o); err != nil {
			return err
		}
	}
	return nil
}

// document reads a file that is one JSON value.
func (t *transcript) document() error {
	start := skipSpace(t.data, 0)
	raw := bytes.Trim(t.data[start:], space)
	fault, err := syntaxFault(raw)
	if raw[0] == '{' {
		if err != nil {
			t.fail(start+fault, err)
			return nil
		}
		o, err := parseObject(raw)
		if err != nil {
			t.fail(start, err)
			return nil
		}
		return t.entry(start, o)
	}
	spans, _ := elements(raw)
	for _, s := range spans {
		o, err := parseObject(raw[s.at:s.end])
		if err != nil {
			t.fail(start+s.at, err)
			continue
		}
		if err := t.entry(start+s.at, o); err != nil {
			return err
		}
	}
	if err != nil {
		t.fail(start+fault, err)
	}
	return nil
}

// syntaxFault finds the offset at which raw, an object or an array, stops being JSON.
func syntaxFault(raw []byte) (int, error) {
	want := "a JSON object"
	if raw[0] == '[' {
		want = "a JSON array"
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	var v json.RawMessage
	if err := dec.Decode(&v); err != nil {
		at := len(raw)
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = min(max(int(s.Offset)-1, 0), len(raw))
		}
		return at, syntax(want, err)
	}
	if end := int(dec.InputOffset()); end < len(raw) {
		return skipSpace(raw, end), expected(want, "more bytes after it")
	}
	return 0, nil
}

// entry reads one object of a file; at is its offset.
func (t *transcript) entry(at int, o object) error {
	switch {
	case o.get("role") != nil:
		t.add(item{at: at, raw: o.raw})
		return nil
	case kindOf(o.get("traj")) == '[':
		return t.list(at, o, "traj", runID(o))
	case kindOf(o.get("messages")) == '[':
		return t.list(at, o, "messages", idOf(o.get("id")))
	}
	kind := o.text("type")
	switch kind {
	case "session":
		// The header: what came before it was another session.
		t.session = true
		return t.open(idOf(o.get("id")), FormatPi)
	case "message":
		t.session = true
		inner := o.get("message")
		if kindOf(inner) != '{' {
			t.fail(at, expected(`"message" to be an object`, describe(inner)))
			return nil
		}
		t.add(item{at: at, raw: inner, id: o.text("id"), time: o.get("timestamp"), entry: true})
	case "compaction":
		t.session = true
		if o.text("summary") != "" {
			t.add(item{at: at, raw: compaction(o), id: o.text("id"), entry: true})
		}
	case "model_change", "thinking_level_change", "branch_summary", "custom", "custom_message", "label", "session_info":
		t.session = true
	default:
		if kind == "" || !t.session {
			t.fail(at, expected(`a message, a session entry, or an object with "messages" or "traj"`, "an object that is none of them"))
		}
	}
	return nil
}

// compaction makes the message that the host makes of a compaction entry.
func compaction(o object) []byte {
	changes := []change{{"role", quote(CompactionSummary)}, {"summary", o.get("summary")}}
	if before := o.get("tokensBefore"); before != nil {
		changes = append(changes, change{"tokensBefore", before})
	}
	return object{}.with(append(changes, change{"timestamp", milliseconds(timeOf(o.get("timestamp")))})...)
}

// list reads an object that is a whole conversation.
func (t *transcript) list(at int, o object, key, id string) error {
	if err := t.open(id, FormatOpenAI); err != nil {
		return err
	}
	if system := o.get("system"); kindOf(system) == '"' || kindOf(system) == '[' {
		t.add(item{at: at + o.fields[o.index("system")].at, raw: system, system: true})
	}
	t.collect(at+o.fields[o.index(key)].at, o.get(key))
	return t.finish()
}

// collect reads an array of messages.
func (t *transcript) collect(at int, raw []byte) {
	spans, err := elements(raw)
	for _, s := range spans {
		o, err := parseObject(raw[s.at:s.end])
		switch {
		case err != nil:
			t.fail(at+s.at, err)
		case o.get("role") == nil:
			t.fail(at+s.at, expected(`a message with a "role"`, "an object without"))
		default:
			t.add(item{at: at + s.at, raw: o.raw})
		}
	}
	if err != nil {
		t.fail(at, err)
	}
}

// idOf reads an id that is a string or a number.
func idOf(raw []byte) string {
	if s, ok := unquote(raw); ok {
		return s
	}
	if _, ok := number(raw); ok {
		return string(raw)
	}
	return ""
}

// runID is the id of a tau-bench run.
func runID(o object) string {
	task, trial := idOf(o.get("task_id")), idOf(o.get("trial"))
	if task == "" || trial == "" {
		return ""
	}
	return task + "/" + trial
}
