package openbrain_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/hosts/openbrain"
)

// sendHalf sends all but the last two bytes of a body, in many requests of one key.
func sendHalf(t *testing.T, f *fixture, secret string, requests, size int) []net.Conn {
	t.Helper()
	var out []net.Conn
	for range requests {
		c, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := c.SetWriteDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(c, "POST /v1/thoughts HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", secret, size)
		_, _ = io.WriteString(c, `{"source":"openclaw:main","content":"`+strings.Repeat("x", size-39)) // it may have been refused by now
		out = append(out, c)
	}
	return out
}

// TestHalfSentBodiesMakeRoom: bodies that fill what there is for all and do not come to an end keep nobody from storing: another key at no time, the same key and
// a server without keys as soon as they stand still.
func TestHalfSentBodiesMakeRoom(t *testing.T) {
	const size = 256 << 10
	for name, c := range map[string]struct {
		change       func(*openbrain.Config)
		slow, sender string
		within       time.Duration
	}{
		"another key":  {twoKeys, adminKey, mainKey, 0},
		"the same key": {twoKeys, mainKey, mainKey, 10 * time.Second},
		"no keys":      {func(*openbrain.Config) {}, "", "", 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, nil, func(cfg *openbrain.Config) { c.change(cfg); cfg.MaxBody = size })
			sendHalf(t, f, c.slow, 40, size)
			stored := 0
			for began := time.Now(); stored < 10; time.Sleep(20 * time.Millisecond) {
				r := f.ask(t, c.sender, http.MethodPost, "/v1/thoughts", `{"content":"`+strings.Repeat("y", size/2)+`","source":"openclaw:main"}`)
				switch {
				case r.status == http.StatusCreated:
					stored++
				case r.status != http.StatusServiceUnavailable || time.Since(began) > c.within:
					t.Fatalf("answered %d %s after %v, %d stored", r.status, r.body, time.Since(began), stored)
				}
			}
		})
	}
}

// TestBodiesThatComeStay: a key that holds no more than another one loses nothing to it, and what still comes is not given up for what comes later of the same key.
func TestBodiesThatComeStay(t *testing.T) {
	const size = 256 << 10
	f := serve(t, nil, func(c *openbrain.Config) { twoKeys(c); c.MaxBody = size })
	kept := sendHalf(t, f, mainKey, 4, size)
	sendHalf(t, f, adminKey, 60, size)
	for i, c := range kept {
		if _, err := io.WriteString(c, `"}`); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		answer := make([]byte, 12)
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "HTTP/1.1 201" {
			t.Errorf("body %d: answered %q, %v", i, answer, err)
		}
	}
}
