package erased_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/erased"
	"github.com/contextengine/contextengine/core/message"
)

var session = core.SessionID{Agent: "main", Session: "one"}

// store holds an empty place for each of the messages.
func store(ctx context.Context, messages ...message.Message) (core.Store, error) {
	s := memory.New()
	prints, err := erased.MakePrints(ctx, s, session.Agent, "key", time.Unix(0, 0).UTC())
	if err != nil {
		return nil, err
	}
	for i, m := range messages {
		empty := message.New(m.Role, "")
		_, err := s.Append(ctx, []core.Entry{{
			ID: fmt.Sprint("e", i), Agent: session.Agent, Session: session.Session, Seq: int64(i), Role: m.Role, Type: core.TypeErased, Key: fmt.Sprint("k", i),
			Time: time.Unix(1, 0).UTC(), Message: empty, Fingerprint: prints.Of(session, message.Fingerprint(m)), Meta: erased.Meta("receipt", prints.Origin(session, &m)),
		}})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

func Example() {
	ctx := context.Background()
	s, err := store(ctx, message.New(message.User, "my number is 4711"))
	if err != nil {
		fmt.Println(err)
		return
	}
	gone, err := erased.Read(ctx, s, session)
	fmt.Println(err, gone.Holds(message.New(message.User, "my number is 4711")), gone.Holds(message.New(message.User, "my number is 12")))
	// Output: <nil> true false
}

func TestAnotherMessageThatSaysTheSame(t *testing.T) {
	t.Parallel()
	m := message.New(message.User, "yes")
	m.ID = "one"
	s, err := store(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	gone, err := erased.Read(t.Context(), s, session)
	if err != nil {
		t.Fatal(err)
	}
	other, nameless, keyed := m, m, m
	other.ID, nameless.ID = "two", ""
	keyed.ID, keyed.Key = "", "a key" // nothing that both are known by
	if !gone.Holds(m) || gone.Holds(other) || !gone.Holds(nameless) || !gone.Holds(keyed) {
		t.Errorf("the same %v, another id %v, no id %v, a key %v", gone.Holds(m), gone.Holds(other), gone.Holds(nameless), gone.Holds(keyed))
	}
}

func TestNothingErased(t *testing.T) {
	t.Parallel()
	gone, err := erased.Read(t.Context(), memory.New(), session)
	if err != nil || gone != nil || gone.Holds(message.New(message.User, "yes")) {
		t.Errorf("%v, %v", gone, err)
	}
}

// contested is a store whose first appends find their positions taken.
type contested struct {
	core.Store
	times, tried int
}

func (c *contested) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if c.tried++; c.tried <= c.times {
		return core.AppendResult{}, core.ErrConflict
	}
	return c.Store.Append(ctx, entries)
}

func TestKeyOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	for times, want := range map[int]error{0: nil, 7: nil, 8: core.ErrConflict} {
		c := &contested{Store: memory.New(), times: times}
		p, err := erased.MakePrints(t.Context(), c, session.Agent, "key", time.Unix(0, 0).UTC())
		if !errors.Is(err, want) || (want == nil) != (len(p) == 1) {
			t.Errorf("after %d conflicts: %d keys, %v, want %v", times, len(p), err, want)
		}
		if want != nil {
			continue
		}
		if again, err := erased.MakePrints(t.Context(), c.Store, session.Agent, "another", time.Unix(0, 0).UTC()); err != nil || len(again) != 1 || !bytes.Equal(again[0], p[0]) {
			t.Errorf("after %d conflicts another process has another key: %v", times, err)
		}
	}
}

// TestPrintsAreKeyed: the same message leaves another print in another session, and under another key.
func TestPrintsAreKeyed(t *testing.T) {
	t.Parallel()
	a, b := erased.Prints{[]byte("one")}, erased.Prints{[]byte("two")}
	elsewhere := core.SessionID{Agent: session.Agent, Session: "other"}
	if a.Of(session, "f") == b.Of(session, "f") || a.Of(session, "f") == a.Of(elsewhere, "f") || a.Known(session, b.Of(session, "f"), "f") {
		t.Error("a print says what it is of")
	}
	if both := append(b, a...); !both.Known(session, a.Of(session, "f"), "f") {
		t.Error("an older key is not known any more")
	}
}

// TestKeysOfErased: a key that holds the fingerprint may have become any of those with a print, and any other stays what it is.
func TestKeysOfErased(t *testing.T) {
	t.Parallel()
	p := erased.Prints{[]byte("one"), []byte("two")}
	got := p.Keys(session, "i:h1:f00d", "f00d")
	if want := "i:h1:" + p.Of(session, "f00d"); len(got) != 3 || got[0] != want {
		t.Errorf("%q, want %q and two more", got, want)
	}
	if p.Keys(session, "k:h1", "f00d") != nil || p.Keys(session, "k:h1", "") != nil {
		t.Error("a key that stays became another one")
	}
}
