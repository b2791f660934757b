package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// A file whose names are as they were before the step "short names": what is in it is found by id and by key, what was damaged is damaged still, and
// what comes again is known.
func TestLongNamesOfOlderFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := openWith(t, path, migrations())
	if err != nil {
		t.Fatal(err)
	}
	id := core.SessionID{Agent: "ann", Session: "one"}
	var want []core.Entry
	for n := range shortenBatch + 3 {
		m := message.New(message.User, fmt.Sprintf("number %d", n))
		e := core.Entry{
			ID: fmt.Sprintf("e06h11q7oslps45d0m0a3j%04dg", n), Agent: id.Agent, Session: id.Session, Seq: int64(n), Role: m.Role, Type: core.TypeMessage,
			Fingerprint: message.Fingerprint(m), Message: m, Tokens: 5,
		}
		switch n % 3 {
		case 0:
			e.Key = fmt.Sprintf("s:%d:%s", n, e.Fingerprint)
		case 1:
			e.Key = fmt.Sprintf("s:%d:%s:B43Z5K6O", n, e.Fingerprint)
		default:
			e.ID, e.Key = fmt.Sprint("own", n), fmt.Sprintf("i:%d:%s", n, e.Fingerprint)
		}
		want = append(want, e)
	}
	if _, err := s.Append(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	const damaged = 7
	for n := range want {
		key := any(want[n].Key)
		if n%3 != 1 { // the digest is at the end
			b, ok := shortKey("x" + want[n].Key).([]byte)
			if !ok {
				t.Fatalf("the key %q has no digest", want[n].Key)
			}
			key = b[2:]
		}
		turn := 0
		if n == damaged {
			turn = 1
		}
		if _, err := s.writer.Exec("UPDATE entries SET id = ?, key = ?, turn = ? WHERE seq = ?", want[n].ID, key, turn, n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.writer.Exec("DELETE FROM schema_version WHERE name = 'short names'"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = openWith(t, path, migrations()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n := range want {
		got, err := s.Get(t.Context(), id.Scope(), []string{want[n].ID})
		if n == damaged {
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("the damaged entry is %v, %v", got, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[n:n+1], got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
	again := append([]core.Entry(nil), want...)
	for n := range again {
		again[n].ID = fmt.Sprint("again", n)
	}
	res, err := s.Append(t.Context(), again)
	if err != nil || res.Duplicates != len(want) {
		t.Fatalf("%d of %d entries are known, %v", res.Duplicates, len(want), err)
	}
	for n := range want {
		if res.IDs[n] != want[n].ID {
			t.Errorf("the key %q is that of %q, want %q", want[n].Key, res.IDs[n], want[n].ID)
		}
	}
	var kind string
	if err := s.writer.QueryRow("SELECT typeof(id) || typeof(key) FROM entries WHERE seq = 0").Scan(&kind); err != nil || kind != "blobblob" {
		t.Errorf("id and key are %s, %v, want them short", kind, err)
	}
}
