package rpc

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"
)

// encode writes v as JSON on one line, with the characters <, > and & as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// rawArray writes messages as an array, each byte for byte.
func rawArray(messages []json.RawMessage) []byte {
	size := 2
	for _, m := range messages {
		size += len(m) + 1
	}
	b := append(make([]byte, 0, size), '[')
	for i, m := range messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, oneLine(m)...)
	}
	return append(b, ']')
}

// oneLine takes the white space out of JSON that has line breaks, which a frame cannot have.
func oneLine(raw json.RawMessage) json.RawMessage {
	if bytes.IndexByte(raw, '\n') < 0 {
		return raw
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// fill puts raw where an encoded object has the field as null. No string can hold those bytes: its quotes are escaped.
func fill(object []byte, field string, raw []byte) []byte {
	return bytes.Replace(object, []byte(`"`+field+`":null`), append([]byte(`"`+field+`":`), raw...), 1)
}

// payloads keep the bytes of results and parameters on their way through the library, which would write them anew: without the white space,
// with <, > and & escaped. It is given a place holder, and the frame gets the bytes when it is sent.
type payloads struct {
	mu   sync.Mutex
	next uint64
	held map[uint64]held
}

const (
	holdBegin = `{"$payload":`
	holdEnd   = `}}`
)

// hold returns what the library is given instead of b.
func (p *payloads) hold(b []byte) json.Marshaler { return held{p: p, b: b} }

// held is what a place holder stands for. After a frame that is the last the wire is closed.
type held struct {
	p    *payloads
	b    []byte
	last bool
}

// MarshalJSON returns the place holder.
func (h held) MarshalJSON() ([]byte, error) {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	if h.p.held == nil {
		h.p.held = make(map[uint64]held)
	}
	h.p.next++
	h.p.held[h.p.next] = h
	return append(strconv.AppendUint([]byte(holdBegin), h.p.next, 10), '}'), nil
}

// restore returns the frame with the bytes that its place holder stands for, and whether it is the last. Place holders stand at the end of
// a frame: the library writes results and parameters last.
func (p *payloads) restore(frame []byte) (full []byte, last bool) {
	body, ok := bytes.CutSuffix(frame, []byte(holdEnd))
	if !ok {
		return frame, false
	}
	at := bytes.LastIndex(body, []byte(holdBegin))
	if at < 0 {
		return frame, false
	}
	n, err := strconv.ParseUint(string(body[at+len(holdBegin):]), 10, 64)
	if err != nil {
		return frame, false
	}
	p.mu.Lock()
	h, ok := p.held[n]
	delete(p.held, n)
	p.mu.Unlock()
	if !ok {
		return frame, false
	}
	out := make([]byte, 0, at+len(h.b)+2)
	out = append(append(out, frame[:at]...), h.b...)
	return append(out, '}'), h.last
}

// toAnswer reports whether a frame of the library answers one without a method, which is an answer that nobody waits for any more.
func toAnswer(frame []byte) bool {
	return bytes.HasPrefix(frame, []byte(`{"jsonrpc":"2.0","id":`)) && bytes.HasSuffix(frame, []byte(`,"error":{"code":-32600,"message":"empty method name"}}`))
}

// answers reports whether a frame of the library answers a request whose id was read.
func answers(frame []byte) bool {
	rest, ok := bytes.CutPrefix(frame, []byte(`{"jsonrpc":"2.0","id":`))
	if !ok || bytes.HasPrefix(rest, []byte("null")) {
		return false
	}
	end := bytes.IndexByte(rest, ',')
	if rest[0] == '"' {
		for end = 1; end < len(rest) && rest[end] != '"'; end++ {
			if rest[end] == '\\' {
				end++
			}
		}
		end++
	}
	if end < 0 || end >= len(rest) {
		return false
	}
	return bytes.HasPrefix(rest[end:], []byte(`,"result":`)) || bytes.HasPrefix(rest[end:], []byte(`,"error":`))
}
