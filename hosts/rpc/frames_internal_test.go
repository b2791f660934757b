package rpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
)

// FuzzReadFrame: frames are the lines that are not too long, in order; what is too long is reported once and skipped.
func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("{}\n{\"a\":1}\n\n\r\n  \nrest"), 16)
	f.Add([]byte(strings.Repeat("x", 40)+"\n{}\n"), 16)
	f.Add(append(bytes.Repeat([]byte("y"), 70_000), "\n{}"...), 100)
	f.Fuzz(func(t *testing.T, in []byte, limit int) {
		limit = 1 + max(limit, -limit)%200
		var want []string
		for line := range bytes.Lines(in) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			if len(line) > limit {
				want = append(want, errTooLarge.Error())
			} else if line = bytes.TrimSpace(line); len(line) > 0 {
				want = append(want, string(line))
			}
		}
		r := bufio.NewReaderSize(bytes.NewReader(in), 16)
		var got []string
		for {
			frame, err := readFrame(r, limit)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				got = append(got, err.Error())
				continue
			}
			got = append(got, string(frame))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d: %s", limit, diff)
		}
	})
}

// FuzzParams: no parameters make the server fall over, and what it finds out about their session is what it decodes.
func FuzzParams(f *testing.F) {
	f.Add([]byte(`{"session":{"agent":"a","session":"s"},"tokenBudget":5}`))
	f.Add([]byte(`{"transcript":{"messages":[{"session":{"agent":"x","session":"y"}}]},"session":{"agent":"a","session":"s"}}`))
	f.Add([]byte(`[1]`))
	f.Add([]byte(`{"SESSION":{"agent":"a","session":"s"}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		id, found := sessionOf("session")(in)
		var p AssembleParams
		if err := decodeParams(in, &p); err == nil && !bytes.Contains(bytes.ToLower(in), []byte(`"session":{"session`)) && strings.Count(strings.ToLower(string(in)), `"session"`) == 2 {
			if found != (p.Session.Validate() == nil) || found && id != p.Session {
				t.Errorf("found %v %v, decoded %v", id, found, p.Session)
			}
		}
		_ = decodeParams(in, &CommitTurnParams{})
	})
}

func TestPayloadsCrossByteForByte(t *testing.T) {
	t.Parallel()
	var p payloads
	body := []byte(`{"a": "<b> & \u2028", "trap":{"$payload":1}}`)
	mark, err := json.Marshal(p.hold(body))
	if err != nil {
		t.Fatal(err)
	}
	frame := []byte(`{"jsonrpc":"2.0","id":"{\"$payload\":1}}","result":` + string(mark) + `}`)
	got, last := p.restore(frame)
	if want := `{"jsonrpc":"2.0","id":"{\"$payload\":1}}","result":` + string(body) + `}`; string(got) != want || last {
		t.Errorf("restore = %s, want %s", got, want)
	}
	if len(p.held) != 0 {
		t.Errorf("%d payloads are left", len(p.held))
	}
	// What only looks like a place holder stays.
	if got, _ := p.restore(frame); !bytes.Equal(got, frame) {
		t.Errorf("restore = %s", got)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for frame, want := range map[string]bool{
		`{"jsonrpc":"2.0","id":7,"result":{}}`:                true,
		`{"jsonrpc":"2.0","id":7,"error":{"code":1}}`:         true,
		`{"jsonrpc":"2.0","id":"a\"b,c","result":{}}`:         true,
		`{"jsonrpc":"2.0","id":"x","method":"host.compact"}`:  false,
		`{"jsonrpc":"2.0","id":null,"error":{"code":1}}`:      false,
		`{"jsonrpc":"2.0","method":"log","params":{"id":1}}`:  false,
		`{"jsonrpc":"2.0","id":"\",\"result\":","method":""}`: false,
	} {
		if got := answers([]byte(frame)); got != want {
			t.Errorf("answers(%s) = %v", frame, got)
		}
	}
}

func TestQueues(t *testing.T) {
	t.Parallel()
	ready := func(k *ticket) bool {
		select {
		case <-k.ready:
			return true
		default:
			return false
		}
	}
	var q queues
	s, o := core.SessionID{Agent: "a", Session: "s"}, core.SessionID{Agent: "a", Session: "o"}
	a, b, c, other := q.enter(s), q.enter(s), q.enter(s), q.enter(o)
	if !ready(a) || ready(b) || ready(c) || !ready(other) {
		t.Error("only the first of a session is ready")
	}
	q.leave(b)
	if ready(b) || ready(c) {
		t.Error("who leaves from the middle lets nobody begin")
	}
	q.leave(a)
	q.leave(a)
	if !ready(c) {
		t.Error("the next is not ready")
	}
	q.leave(c)
	q.leave(other)
	if len(q.m) != 0 {
		t.Errorf("%d queues are left", len(q.m))
	}
}

func TestTranscriptsAreBounded(t *testing.T) {
	t.Parallel()
	k := newTranscripts(100)
	id := func(i int) core.SessionID { return core.SessionID{Agent: "a", Session: fmt.Sprint(i)} }
	list := func(n int, salt string) []hash {
		var out []hash
		for i := range n {
			out = append(out, hashOf(fmt.Append(nil, salt, i)))
		}
		return out
	}
	for i := range 10 {
		k.keep(claim{session: id(i), tail: list(30, "x"), digest: "d"})
		if k.size > 100 {
			t.Fatalf("%d messages are remembered", k.size)
		}
	}
	if _, ok := k.begin(id(0), 30, "d"); ok {
		t.Error("the oldest session is still known")
	}
	if _, ok := k.begin(id(9), 30, "d"); !ok {
		t.Error("the newest session is not known")
	}
	if place := k.keep(claim{session: id(20), tail: list(101, "x"), digest: "d"}); place != nil {
		t.Error("a list beyond the bound is remembered")
	}
	for i := range 100 {
		k.keep(claim{session: id(9), tail: list(10, fmt.Sprint("salt", i)), digest: fmt.Sprint(i)})
	}
	if n := len(k.checkpoints(id(9))); n > maxTranscripts {
		t.Errorf("%d checkpoints of %d lists", n, maxTranscripts)
	}
	size := 0
	for e := k.recent.Front(); e != nil; e = e.Next() {
		for _, l := range e.Value.(*remembered).lists {
			size += len(l.hashes)
		}
	}
	if size != k.size {
		t.Errorf("counted %d, there are %d", k.size, size)
	}
	for i := range 30 {
		k.forget(id(i))
	}
	if k.size != 0 || k.count() != 0 {
		t.Errorf("%d messages of %d sessions are left", k.size, k.count())
	}
}
