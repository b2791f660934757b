package sqlite_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

var ann = core.SessionID{Agent: "ann", Session: "one"}

// entry is an entry of a message that has its bytes from nowhere: odd ones.
func entry(id core.SessionID, n int) core.Entry {
	name := fmt.Sprintf("%s-%s-%d", id.Agent, id.Session, n)
	m := message.New(message.User, "text of "+name)
	m.Raw = []byte("raw\x00\xff " + name)
	m.Parts[0].Raw = []byte("part " + name)
	return core.Entry{
		ID: name, Agent: id.Agent, Session: id.Session, Seq: int64(n), Turn: int64(n / 2), Role: message.User, Type: core.TypeMessage,
		Time: time.Unix(int64(n), 0).UTC(), Tokens: 7, Key: "k" + name, Fingerprint: message.Fingerprint(m), Message: m,
		Meta: map[string]string{"n": name},
	}
}

func entries(id core.SessionID, from, to int) []core.Entry {
	var out []core.Entry
	for n := from; n < to; n++ {
		out = append(out, entry(id, n))
	}
	return out
}

// chat is an entry of about 60 words as a host writes it.
func chat(tb testing.TB, id core.SessionID, n int) core.Entry {
	tb.Helper()
	words := []string{"the", "ledger", "moved", "because", "kestrel", "invoice", "budget", "\\\"quoted\\\"", "bridge", "works", "again", "on", "Tuesday"}
	var b strings.Builder
	for i := range 60 {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[(n*7+i*i+i*n)%len(words)])
	}
	raw := fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"%s"}],"timestamp":%d}`, b.String(), 1763681630791+n)
	codec, err := message.Lookup(message.FormatPi)
	if err != nil {
		tb.Fatal(err)
	}
	m, err := codec.Decode([]byte(raw))
	if err != nil {
		tb.Fatal(err)
	}
	return core.Entry{
		ID: chatID(n), Agent: id.Agent, Session: id.Session, Seq: int64(n), Turn: int64(n / 2),
		Role: m.Role, Type: core.TypeMessage, Time: m.Time, Tokens: 80, Key: fmt.Sprintf("s:%d:%s", n, digest(-n)),
		Fingerprint: message.Fingerprint(m), Message: m,
	}
}

// chatID is as long as the ids that the engine makes, and like those begins with the time: a dozen messages a millisecond.
func chatID(n int) string { return fmt.Sprintf("e%010x", n/12) + digest(n)[:16] }

func digest(n int) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(n)))
	return hex.EncodeToString(sum[:16])
}

func config(tb testing.TB) sqlite.Config {
	tb.Helper()
	cfg := sqlite.DefaultConfig()
	cfg.Path = filepath.Join(tb.TempDir(), "store.db")
	return cfg
}

func open(tb testing.TB, cfg sqlite.Config) *sqlite.Store {
	tb.Helper()
	s, err := sqlite.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatalf("Open: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return s
}

func mustAppend(tb testing.TB, s core.Store, es ...core.Entry) core.AppendResult {
	tb.Helper()
	res, err := s.Append(tb.Context(), es)
	if err != nil {
		tb.Fatalf("Append: %v", err)
	}
	return res
}

// all returns the entries of a scope.
func all(tb testing.TB, s core.Store, scope core.Scope) []core.Entry {
	tb.Helper()
	var out []core.Entry
	for e, err := range core.All(tb.Context(), s, scope, false) {
		if err != nil {
			tb.Fatalf("All: %v", err)
		}
		out = append(out, e)
	}
	return out
}

func ids(es []core.Entry) []string {
	out := []string{}
	for _, e := range es {
		out = append(out, e.ID)
	}
	return out
}

// differ compares entries; most are equal, which is quicker to find out than how they are not.
func differ(want, got []core.Entry) string {
	if reflect.DeepEqual(want, got) || len(want)+len(got) == 0 {
		return ""
	}
	return cmp.Diff(want, got)
}
