package rpc_test

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/hosts/rpc"
)

// send writes a line.
func (t *tap) send(line string) {
	t.tb.Helper()
	if _, err := io.WriteString(t, line+"\n"); err != nil {
		t.tb.Fatal(err)
	}
}

// hello opens the connection.
func (t *tap) hello(r *reader) {
	t.tb.Helper()
	t.send(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersions":["1"],"client":{"name":"raw"},"format":"pi"}}`)
	if f := r.next(t.tb); f.Error != nil {
		t.tb.Fatalf("initialize: %s", f.line)
	}
}

// reader takes a server's frames apart.
type reader struct{ lines chan string }

type rawFrame struct {
	line   string
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    rpc.ErrorData
	}
}

func newReader(r io.Reader) *reader {
	out := &reader{lines: make(chan string, 1024)}
	go func() {
		defer close(out.lines)
		br := bufio.NewReader(r)
		for {
			line, err := br.ReadString('\n')
			if err != nil {
				return
			}
			out.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	return out
}

// next returns the next frame; an empty one when there are no more.
func (r *reader) next(tb testing.TB) rawFrame {
	tb.Helper()
	select {
	case line, ok := <-r.lines:
		f := rawFrame{line: line}
		if ok {
			if err := json.Unmarshal([]byte(line), &f); err != nil && f.Error == nil { // the library's errors have other data
				tb.Fatalf("the server sent %q: %v", line, err)
			}
		}
		return f
	case <-time.After(patience):
		tb.Fatal("the server sent nothing")
		panic("not reached")
	}
}
