// Package erased says what is left of messages that were erased, so that they stay erased whichever way they come again: prints that tell a message without saying
// what it said. Start with Read.
package erased

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/internal/records"
	"github.com/contextengine/contextengine/core/message"
)

// What an erased entry is known by must not tell what it said, however short that was: who tries all the numbers of four digits finds the one whose digest
// stands there. So the digest is keyed. The key is random, made at an agent's first erasure, and kept in the store beside the entries, in a session of
// its own: every process that uses the store has it, and so has whoever may read the whole store. Exports leave it out. Who has but entries, an
// export, an answer of the engine, cannot try.

const (
	// metaSecret holds the key, in hexadecimal digits.
	metaSecret = "secret"
	// MetaErased names the receipt of the erasure that emptied an entry, in core.Entry.Meta.
	MetaErased = "erased"
	// MetaOrigin says by what the host knew an erased message: keyed digests of its key, id and time, and of the ids of its calls or results.
	MetaOrigin = "origin"
)

// Prints makes what erased entries of an agent are known by. They may be read by several goroutines. The first key is the one in use; a store that shows writes late may have taken two.
type Prints [][]byte

// ReadPrints reads an agent's keys. There are none before the first erasure.
func ReadPrints(ctx context.Context, store core.Store, agent string) (Prints, error) {
	p, _, err := readPrints(ctx, store, agent)
	return p, err
}

func readPrints(ctx context.Context, store core.Store, agent string) (p Prints, entries int, err error) {
	for entry, err := range core.All(ctx, store, core.Scope{Agent: agent, Session: records.Secrets}, false) {
		if err != nil {
			return nil, 0, fmt.Errorf("core: key of the erasures of %q: %w", agent, err)
		}
		entries++
		if key, err := hex.DecodeString(entry.Meta[metaSecret]); err == nil && len(key) > 0 {
			p = append(p, key)
		}
	}
	return p, entries, nil
}

// MakePrints reads an agent's keys, and makes one, in an entry of this id and time, if there is none. Of several processes that do so at the same time one wins.
func MakePrints(ctx context.Context, store core.Store, agent, id string, now time.Time) (Prints, error) {
	for range 8 {
		p, n, err := readPrints(ctx, store, agent)
		if err != nil || len(p) > 0 {
			return p, err
		}
		key := make([]byte, sha256.Size)
		_, _ = rand.Read(key) // never fails
		m := message.New(message.System, "")
		entry := core.Entry{
			ID: id, Agent: agent, Session: records.Secrets, Seq: int64(n), Role: m.Role, Type: core.TypeErased, Time: now,
			Key: "secret:" + strconv.Itoa(n), Fingerprint: message.Fingerprint(m), Message: m, Meta: map[string]string{metaSecret: hex.EncodeToString(key)},
		}
		res, err := store.Append(ctx, []core.Entry{entry})
		switch {
		case errors.Is(err, core.ErrConflict):
			continue
		case err != nil:
			return nil, fmt.Errorf("core: key of the erasures of %q: %w", agent, err)
		case res.IDs[0] == entry.ID:
			return Prints{key}, nil
		}
	}
	return nil, fmt.Errorf("core: key of the erasures of %q: it cannot be read back: %w", agent, core.ErrConflict)
}

// Mark begins what an erased entry is known by, which is its fingerprint; keyed follows where that is keyed.
const Mark, keyed = "erased:", "k:"

// Of returns what an erased entry with this fingerprint is known by.
func (p Prints) Of(id core.SessionID, fingerprint string) string {
	return Mark + keyed + p.digest(0, "print", id, fingerprint)
}

func (p Prints) digest(key int, kind string, id core.SessionID, text string) string {
	mac := hmac.New(sha256.New, p[key])
	for _, field := range []string{kind, id.Agent, id.Session} {
		mac.Write([]byte(strconv.Itoa(len(field)) + ":" + field))
	}
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil)[:12])
}

// All returns everything that an erased entry with this fingerprint may be known by: by any key, and by none, as before there was one.
func (p Prints) All(id core.SessionID, fingerprint string) []string {
	out := make([]string, 0, len(p)+1)
	for i := range p {
		out = append(out, Mark+keyed+p.digest(i, "print", id, fingerprint))
	}
	sum := sha256.Sum256([]byte("erased\x00" + id.Agent + "\x00" + id.Session + "\x00" + fingerprint))
	return append(out, Mark+hex.EncodeToString(sum[:12]))
}

// originsOf lists by what a host knows a message: its key, its id, its time, and the ids of its calls or results.
func originsOf(m *message.Message) []string {
	var out []string
	if m.Key != "" {
		out = append(out, "k"+m.Key)
	}
	if m.ID != "" {
		out = append(out, "i"+m.ID)
	}
	if !m.Time.IsZero() {
		out = append(out, "t"+strconv.FormatInt(m.Time.UnixMilli(), 10))
	}
	if calls := callIDs(m); len(calls) > 0 {
		out = append(out, "c"+strings.Join(calls, "\x00"))
	}
	return out
}

// callIDs are the ids of a message's calls or results.
func callIDs(m *message.Message) []string {
	var out []string
	for i := range m.Parts {
		if id := m.Parts[i].CallID; id != "" {
			out = append(out, id)
		}
	}
	return out
}

// Named is what a host knows a message by, without what it says.
func Named(m *message.Message) message.Message {
	out := message.Message{Key: m.Key, ID: m.ID, Time: m.Time}
	for _, id := range callIDs(m) {
		out.Parts = append(out.Parts, message.Part{CallID: id})
	}
	return out
}

// Origin is originsOf as an erased entry may keep it. Those of one message under several names may stand one behind the other, with a blank between them.
func (p Prints) Origin(id core.SessionID, m *message.Message) string {
	var out []string
	for _, o := range originsOf(m) {
		out = append(out, o[:1]+p.digest(0, "origin", id, o))
	}
	return strings.Join(out, " ")
}

// Another reports whether a message is another one than that of an erased entry which says the same: what the host knows the two by can be compared, and
// nothing of it is the same. Of messages that have names of their own the ids of calls tell nothing: hosts use those again.
func (p Prints) Another(id core.SessionID, origin string, m *message.Message) bool {
	same, differs := p.compare(id, origin, m)
	return differs && strings.Trim(same, "c") == ""
}

// Called returns what of the name by which a message is known the erased entry had too, which says the same.
func (p Prints) Called(id core.SessionID, origin string, m *message.Message) message.Message {
	var out message.Message
	same, _ := p.compare(id, origin, m)
	for _, kind := range same {
		switch kind {
		case 'k':
			out.Key = m.Key
		case 'i':
			out.ID = m.ID
		case 't':
			out.Time = m.Time
		case 'c':
			out.Parts = m.Parts
		}
	}
	return out
}

// compare returns the first letters of what an erased entry and a message are both known by, see originsOf, and whether anything else differs.
func (p Prints) compare(id core.SessionID, origin string, m *message.Message) (same string, differs bool) {
	known := make(map[string][]string) // a host may have called it several things
	for field := range strings.FieldsSeq(origin) {
		known[field[:1]] = append(known[field[:1]], field[1:])
	}
	for _, o := range originsOf(m) {
		was, ok := known[o[:1]]
		if !ok {
			continue
		}
		is := false
		for i := range p {
			is = is || slices.Contains(was, p.digest(i, "origin", id, o))
		}
		if is {
			same += o[:1]
		}
		differs = differs || !is
	}
	return same, differs
}

// Known reports whether an erased entry is known by what a message with this fingerprint leaves.
func (p Prints) Known(id core.SessionID, print, fingerprint string) bool {
	return strings.HasPrefix(print, Mark) && slices.Contains(p.All(id, fingerprint), print)
}

// Keys returns what the key of an entry with this fingerprint may have become when the entry was erased; nil where it does not hold the fingerprint, and stays.
func (p Prints) Keys(id core.SessionID, key, fingerprint string) []string {
	if fingerprint == "" || !strings.Contains(key, fingerprint) {
		return nil
	}
	out := p.All(id, fingerprint)
	for i, print := range out {
		out[i] = strings.ReplaceAll(key, fingerprint, print)
	}
	return out
}

// Meta is the metadata of an erased entry. The receipt is empty where no erasure counts the entry: a summary that was stored after it.
func Meta(receipt, origin string) map[string]string {
	meta := make(map[string]string)
	if receipt != "" {
		meta[MetaErased] = receipt
	}
	if origin != "" {
		meta[MetaOrigin] = origin
	}
	return meta
}
