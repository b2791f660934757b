package openbrain

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// CatalogueAgent is the reserved agent under which a server keeps the list of sources. It cannot be a source.
const CatalogueAgent = "contextengine-openbrain-catalogue"

// Session is the session that holds all thoughts of a source. Entries of other sessions are not thoughts.
const Session = "openbrain-thoughts"

// The names in Entry.Meta.
const (
	metaMetadata = "metadata" // the JSON object, verbatim
	metaRequest  = "request"  // a hash of the request that created the thought, when it had a key
	metaUpdated  = "updated"  // when it was changed last
)

// maxSource is the longest source, in bytes.
const maxSource = 1024

// thought is a stored thought.
type thought struct {
	ID       string
	Content  string
	Source   string
	Metadata json.RawMessage
	Created  time.Time
	Updated  time.Time
	// Seq is the place in the source.
	Seq int64
	// place says that nothing else of it is here.
	place bool
}

// size is about what a thought holds in memory until it is answered, in bytes: its metadata are encoded as a whole.
func (t thought) size() int { return len(t.Content) + 3*len(t.Metadata) }

// timeLayout has microseconds, which is what Seq holds.
const timeLayout = "2006-01-02T15:04:05.000000Z07:00"

// wireThought is a thought as it is answered.
type wireThought struct {
	ID         string          `json:"id"`
	Content    string          `json:"content"`
	Source     string          `json:"source"`
	Metadata   json.RawMessage `json:"metadata"`
	CreatedAt  string          `json:"created_at"`
	UpdatedAt  string          `json:"updated_at"`
	Similarity *float64        `json:"similarity,omitempty"`
}

func (t thought) wire() wireThought {
	return wireThought{
		ID: t.ID, Content: t.Content, Source: t.Source, Metadata: t.Metadata,
		CreatedAt: t.Created.Format(timeLayout), UpdatedAt: t.Updated.Format(timeLayout),
	}
}

// thoughtOf reads a thought from its entry. ok is false for entries that are none.
func thoughtOf(e core.Entry) (thought, bool) {
	raw, ok := e.Meta[metaMetadata]
	if !ok || e.Session != Session || e.Agent == CatalogueAgent {
		return thought{}, false
	}
	t := thought{
		ID: e.ID, Content: e.Message.Text(), Source: e.Agent, Metadata: json.RawMessage(raw), Seq: e.Seq,
		Created: time.UnixMicro(e.Seq).UTC(),
	}
	t.Updated = t.Created
	if at, err := time.Parse(time.RFC3339Nano, e.Meta[metaUpdated]); err == nil {
		t.Updated = at.UTC()
	}
	return t, true
}

// messageOf returns the message that holds a content.
func messageOf(content string, metadata json.RawMessage) message.Message {
	role := message.Role(scalar(metadata, "role"))
	if !role.Valid() {
		role = message.User
	}
	return message.New(role, content)
}

// entryOf returns the entry of a new thought. key is empty when the request had none.
func entryOf(source, content string, metadata json.RawMessage, key string, seq int64) core.Entry {
	m := messageOf(content, metadata)
	e := core.Entry{
		Agent: source, Session: Session, Seq: seq, Role: m.Role, Type: core.TypeMessage,
		Time: time.UnixMicro(seq).UTC(), Tokens: tokensAtMost(content), Fingerprint: message.Fingerprint(m), Message: m,
		Meta: map[string]string{metaMetadata: string(metadata)},
	}
	if key == "" {
		e.ID = randomID(source)
		e.Key = "new-" + e.ID
		return e
	}
	e.ID = keyedID(source, key)
	e.Meta[metaRequest] = digest(content, metadata)
	sum := sha256.Sum256([]byte(key + "\x00" + e.Meta[metaRequest]))
	e.Key = "request-" + hex.EncodeToString(sum[:])
	return e
}

// tokensAtMost is an upper bound of the tokens of a text, for any byte-level encoding: the server itself makes no prompts.
func tokensAtMost(content string) int { return len(content) + 4 }

// digest tells requests apart. It does not depend on the order of keys in objects.
func digest(content string, metadata json.RawMessage) string {
	h := sha256.New()
	h.Write([]byte(content))
	h.Write([]byte{0})
	h.Write(canonical(metadata))
	return hex.EncodeToString(h.Sum(nil))
}

// canonical returns JSON with sorted keys and the numbers as they were written.
func canonical(raw json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	b, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return b
}

// scalar returns a string, number or boolean of an object as text; "" when there is none of that name.
func scalar(object json.RawMessage, name string) string {
	var m map[string]json.RawMessage
	if json.Unmarshal(object, &m) != nil {
		return ""
	}
	raw := m[name]
	var s string
	switch {
	case len(raw) == 0 || raw[0] == '{' || raw[0] == '[' || raw[0] == 'n':
		return ""
	case raw[0] == '"':
		_ = json.Unmarshal(raw, &s)
		return s
	}
	return string(raw)
}

// keyIn returns the idempotency key that metadata name: a string "id".
func keyIn(object json.RawMessage) string {
	var m map[string]json.RawMessage
	var s string
	if json.Unmarshal(object, &m) != nil || len(m["id"]) == 0 || m["id"][0] != '"' || json.Unmarshal(m["id"], &s) != nil {
		return ""
	}
	return s
}

// contains reports whether an object has all the values that a filter names.
func contains(object json.RawMessage, filter map[string]json.RawMessage) bool {
	if len(filter) == 0 {
		return true
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(object, &m) != nil {
		return false
	}
	for name, want := range filter {
		got, ok := m[name]
		if !ok || !bytes.Equal(canonical(got), canonical(want)) {
			return false
		}
	}
	return true
}

// checkSource returns what is wrong with a source, or "".
func checkSource(source string) string {
	switch {
	case source == "":
		return "must not be empty"
	case len(source) > maxSource:
		return "must be at most 1024 bytes"
	case !utf8.ValidString(source) || strings.ContainsRune(source, 0):
		return "must be UTF-8 without NUL"
	case source == CatalogueAgent:
		return "is reserved"
	}
	return ""
}
