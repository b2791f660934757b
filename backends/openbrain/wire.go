package openbrain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/upkeep"
)

// wireVersion is the version of the metadata written here, firstVersion the one before, which is read too. Readers skip what is newer.
const wireVersion, firstVersion = 2, 1

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

// The metadata keys. The first five are the product document's, and the sixth is what its bulk delete matches: it names the session, so that
// one request erases it. What restores the entry is in keyBlob; where only the text is kept, keySeq and keyAt say the little that reading needs.
const (
	keySession = "sessionId"
	keyTurn    = "turn"
	keyRole    = "role"
	keyType    = "type"
	keySource  = "source"
	keyID      = "id"
	keyVersion = "v"
	keyEntry   = "entry"
	keyBlob    = "blob"
	keySeq     = "seq"
	keyAt      = "at"
)

// maxMark bounds the name of a session as metadata.id; longer ones are hashed.
const maxMark = 40

// sessionMark is what metadata.id is in all thoughts of a session, and the bulk delete's metadata_id.
func sessionMark(session string) string {
	if mark := pack(session); len(mark) <= maxMark {
		return mark
	}
	sum := sha256.Sum256([]byte(session))
	return "session-" + hex.EncodeToString(sum[:12])
}

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
	// version is that of the metadata it was read from, 0 for one that was not read. textOnly says that the thought never held more than the text.
	version  int64
	textOnly bool
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

// metadata returns the metadata of an entry. With all, keys that the thought may have had before are there with empty values, so that a
// server that merges forgets them.
func (c Config) metadata(r record, all bool) (map[string]any, error) {
	e := r.entry
	m := make(map[string]any, 12+len(r.extra))
	for k, v := range r.extra {
		m[k] = v
	}
	if all && r.version == firstVersion {
		for _, k := range firstKeys {
			m[k] = nil
		}
	}
	maps.Copy(m, map[string]any{
		keySession: pack(e.Session), keyTurn: exact(e.Turn), keyRole: pack(string(e.Role)), keyType: wireType(e.Type),
		keySource: c.source(e.Agent), keyID: sessionMark(e.Session), keyVersion: wireVersion, keyEntry: pack(e.ID),
	})
	if c.Keep == KeepText {
		m[keySeq], m[keyAt] = exact(e.Seq), e.Time.UnixMilli()
		return m, nil
	}
	var err error
	m[keyBlob], err = encodeBlob(r)
	return m, err
}

// exact writes numbers that a float64 cannot hold as strings: some servers read JSON numbers as such.
func exact(n int64) any {
	if n > 1<<53 || n < -(1<<53) {
		return strconv.FormatInt(n, 10)
	}
	return n
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
		thought: t.ID, created: t.Created, version: f.int(keyVersion),
		entry: core.Entry{
			Agent: agent, Session: f.unpacked(keySession), Turn: f.int(keyTurn),
			Role: message.Role(f.unpacked(keyRole)), Type: entryType(f.unpacked(keyType)),
		},
	}
	if source != want || f.bad {
		return record{}, false
	}
	ok := false
	switch r.version {
	case firstVersion:
		ok = r.readFirst(&f)
	case wireVersion:
		ok = r.read(&f, t)
	}
	if !ok || f.bad || r.entry.ID == "" || r.entry.Session == "" || r.entry.Key == "" {
		return record{}, false
	}
	r.extra = extra(t.Meta)
	return r, true
}

// read takes from a thought's metadata what is not the document's.
func (r *record) read(f *fields, t thought) bool {
	e := &r.entry
	e.ID = f.unpacked(keyEntry)
	if f.m[keyBlob] != nil {
		return decodeBlob(f.text(keyBlob), r) == nil
	}
	// The machine that wrote it kept the rest.
	text := t.Content
	if text == noText {
		text = ""
	}
	r.textOnly = true
	e.Seq, e.Time, e.Key = f.int(keySeq), time.UnixMilli(f.int(keyAt)).UTC(), "t:"+e.ID
	e.Message, e.Meta = message.New(e.Role, text), map[string]string{upkeep.MetaTextOnly: "yes"}
	e.Fingerprint, e.Tokens = message.Fingerprint(e.Message), len(text)/4+8
	return true
}

// extra returns the metadata that is not ours.
func extra(m map[string]json.RawMessage) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	for k, v := range m {
		switch k {
		case keySession, keyTurn, keyRole, keyType, keySource, keyID, keyVersion, keyEntry, keyBlob, keySeq, keyAt:
			continue
		}
		if slices.Contains(firstKeys[:], k) {
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
