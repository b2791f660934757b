package openbrain

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// wireVersion is the version of the metadata written here. Readers skip what is newer.
const wireVersion = 1

// wireSubagent is the product document's name of core.TypeSubagent.
const wireSubagent = "subagent-result"

// wireType is the type as others read it.
func wireType(t core.EntryType) string {
	if t == core.TypeSubagent {
		return wireSubagent
	}
	return pack(string(t))
}

// entryType undoes wireType; what was written before there was a name for it is read too.
func entryType(s string) core.EntryType {
	if s == wireSubagent {
		return core.TypeSubagent
	}
	return core.EntryType(s)
}

// noText stands for the text of an entry that has none (a bare tool call): servers may refuse an empty content.
const noText = "(no text)"

// The metadata keys. The first six are the product's; the others restore the entry and its batch.
const (
	keySession     = "sessionId"
	keyTurn        = "turn"
	keyRole        = "role"
	keyType        = "type"
	keySource      = "source"
	keyID          = "id"
	keyMetadataID  = "metadata_id"
	keyVersion     = "v"
	keySeq         = "seq"
	keyKey         = "key"
	keyTokens      = "tokens"
	keyTime        = "time"
	keyFingerprint = "fingerprint"
	keyMessage     = "message"
	keyMeta        = "meta"
	keyBatch       = "batch"
	keyBatchIndex  = "batchIndex"
	keyBatchEnd    = "batchEnd"
)

// batch is an entry's place in what one Append stored. The zero value means it was alone.
type batch struct {
	ID    string
	Index int
	// End marks the last entry: with it, the batch is complete.
	End bool
}

// last reports whether storing the entry makes something visible.
func (b batch) last() bool { return b.ID == "" || b.End }

// record is an entry as a server has it.
type record struct {
	entry core.Entry
	batch batch
	// thought is the server's id of it.
	thought string
	created time.Time
	// extra holds metadata that others added.
	extra map[string]json.RawMessage
}

// source returns the source of an agent's thoughts.
func (c Config) source(agent string) string { return c.Source + ":" + pack(agent) }

// content returns what the server searches: the entry's text without what servers refuse, at most limit bytes.
func content(e core.Entry, limit int) string {
	s := clip(clean(e.Text()), limit)
	if strings.TrimSpace(s) == "" {
		return noText
	}
	return s
}

// clean makes s valid UTF-8 without NUL.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// clip cuts s to at most limit bytes, between runes.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// metadata returns the metadata of an entry. With all, keys that would be left out are there with empty values, so
// that a server that merges forgets the old ones.
func (c Config) metadata(r record, all bool) (map[string]any, error) {
	e := r.entry
	text, err := encodeMessage(e.Message)
	if err != nil {
		return nil, fmt.Errorf("message cannot be written as JSON, a time may be out of range: %w", core.ErrInvalid)
	}
	m := make(map[string]any, 20+len(r.extra))
	for k, v := range r.extra {
		m[k] = v
	}
	maps.Copy(m, map[string]any{
		keySession: pack(e.Session), keyTurn: exact(e.Turn), keyRole: pack(string(e.Role)), keyType: wireType(e.Type),
		keySource: c.source(e.Agent), keyID: pack(e.ID), keyMetadataID: pack(e.ID),
		keyVersion: wireVersion, keySeq: exact(e.Seq), keyKey: pack(e.Key), keyTokens: exact(int64(e.Tokens)),
		keyTime: e.Time.UTC().Format(time.RFC3339Nano), keyFingerprint: pack(e.Fingerprint), keyMessage: text,
	})
	if e.Meta != nil || all {
		meta, err := encodeMeta(e.Meta)
		if err != nil {
			return nil, fmt.Errorf("meta cannot be written as JSON: %w", core.ErrInvalid)
		}
		m[keyMeta] = meta
	}
	if r.batch.ID != "" || all {
		m[keyBatch], m[keyBatchIndex], m[keyBatchEnd] = r.batch.ID, r.batch.Index, r.batch.End
	}
	return m, nil
}

// exact writes numbers that a float64 cannot hold as strings: some servers read JSON numbers as such.
func exact(n int64) any {
	if n > 1<<53 || n < -(1<<53) {
		return strconv.FormatInt(n, 10)
	}
	return n
}

// encodeMeta returns Entry.Meta as JSON text, "" for nil. It is a text and not an object because a server that
// merges deeply would bring removed keys back.
func encodeMeta(meta map[string]string) (string, error) {
	if meta == nil {
		return "", nil
	}
	p := make(map[string]packed, len(meta))
	for k, v := range meta {
		p[pack(k)] = packed(v) // encoding/json does not ask string keys how they marshal
	}
	b, err := json.Marshal(p)
	return string(b), err
}

func decodeMeta(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	var p map[string]packed
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, err
	}
	meta := make(map[string]string, len(p))
	for k, v := range p {
		key, err := unpack(k)
		if err != nil {
			return nil, err
		}
		meta[key] = string(v)
	}
	return meta, nil
}

// record restores the entry of an agent from a thought. ok is false for thoughts of others.
func (c Config) record(t thought, agent string) (record, bool) {
	want := c.source(agent)
	if t.Meta == nil || (t.Source != "" && t.Source != want) {
		return record{}, false
	}
	f := fields{m: t.Meta}
	source := f.text(keySource)
	r := record{
		thought: t.ID, created: t.Created,
		entry: core.Entry{
			ID: f.unpacked(keyID), Agent: agent, Session: f.unpacked(keySession), Seq: f.int(keySeq), Turn: f.int(keyTurn),
			Role: message.Role(f.unpacked(keyRole)), Type: entryType(f.unpacked(keyType)), Tokens: int(f.int(keyTokens)),
			Key: f.unpacked(keyKey), Fingerprint: f.unpacked(keyFingerprint),
		},
	}
	if f.int(keyVersion) != wireVersion || source != want || f.bad {
		return record{}, false
	}
	var err error
	if r.entry.Time, err = time.Parse(time.RFC3339Nano, f.text(keyTime)); err != nil {
		return record{}, false
	}
	r.entry.Time = r.entry.Time.UTC()
	if r.entry.Message, err = decodeMessage(f.text(keyMessage)); err != nil {
		return record{}, false
	}
	f.optional = true
	if r.entry.Meta, err = decodeMeta(f.text(keyMeta)); err != nil {
		return record{}, false
	}
	r.batch = batch{ID: f.text(keyBatch), Index: int(f.int(keyBatchIndex)), End: f.bool(keyBatchEnd)}
	if r.entry.ID == "" || r.entry.Session == "" || r.entry.Key == "" || f.bad {
		return record{}, false
	}
	r.extra = extra(t.Meta)
	return r, true
}

// extra returns the metadata that is not ours.
func extra(m map[string]json.RawMessage) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	for k, v := range m {
		switch k {
		case keySession, keyTurn, keyRole, keyType, keySource, keyID, keyMetadataID, keyVersion, keySeq, keyKey, keyTokens,
			keyTime, keyFingerprint, keyMessage, keyMeta, keyBatch, keyBatchIndex, keyBatchEnd:
			continue
		}
		if out == nil {
			out = map[string]json.RawMessage{}
		}
		out[k] = v
	}
	return out
}

// fields reads metadata and remembers whether anything was missing or of another kind.
type fields struct {
	m             map[string]json.RawMessage
	optional, bad bool
}

func (f *fields) text(key string) string {
	raw, there := f.m[key]
	if !there || isKind(raw, 'n') {
		f.bad = f.bad || !f.optional
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		f.bad = true
	}
	return s
}

func (f *fields) unpacked(key string) string {
	s, err := unpack(f.text(key))
	if err != nil {
		f.bad = true
	}
	return s
}

// int reads an integer written as a number or as a string.
func (f *fields) int(key string) int64 {
	raw, there := f.m[key]
	if !there || isKind(raw, 'n') {
		f.bad = f.bad || !f.optional
		return 0
	}
	s, _ := textOf(raw)
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		// A store that keeps numbers as floats may write 12 as 12.0 or 1.2e1.
		v, ok := numberOf(raw)
		n = int64(v)
		if !ok || float64(n) != v {
			f.bad = true
		}
	}
	return n
}

func (f *fields) bool(key string) bool {
	var b bool
	if raw, there := f.m[key]; there && json.Unmarshal(raw, &b) != nil {
		f.bad = true
	}
	return b
}
