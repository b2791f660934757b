package lexical

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// memoryFile is a file to write an image to.
type memoryFile struct {
	b  []byte
	at int
}

func (f *memoryFile) Write(p []byte) (int, error) {
	f.b = append(f.b[:f.at], append(bytes.Clone(p), f.b[min(len(f.b), f.at+len(p)):]...)...)
	f.at += len(p)
	return len(p), nil
}

func (f *memoryFile) Seek(offset int64, _ int) (int64, error) {
	f.at = int(offset)
	return offset, nil
}

var _ io.WriteSeeker = (*memoryFile)(nil)

func imageOf(tb testing.TB, n int) []byte {
	tb.Helper()
	cfg := DefaultConfig()
	s := newSegment(&cfg)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range n {
		e := core.Entry{ID: fmt.Sprintf("e%d", i), Session: fmt.Sprintf("s%d", i%3), Seq: int64(i), Message: message.New(message.User, "")}
		for range 60 {
			e.Message.Parts[0].Text += fmt.Sprintf("w%d ", rng.IntN(30))
		}
		e.Message.Name = []string{"", "Mira"}[i%2]
		s.put(e)
	}
	f := &memoryFile{}
	if err := writeImage(f, header{agent: "ada", mark: "m", config: configHash(&cfg)}, s.tidy()); err != nil {
		tb.Fatal(err)
	}
	return f.b
}

func TestImageRoundTrip(t *testing.T) {
	b := imageOf(t, 50)
	h, r, err := readHeader(b)
	if err != nil {
		t.Fatal(err)
	}
	if h.agent != "ada" || h.mark != "m" {
		t.Errorf("header = %+v, want ada at m", h)
	}
	cfg := DefaultConfig()
	s, err := readSegment(r, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := &memoryFile{}
	if err := writeImage(f, h, s.tidy()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(f.b, b) {
		t.Error("an image that is read and written again is another one")
	}
}

// FuzzImage reads what no checksum protects: it must not panic, neither then nor in a search.
func FuzzImage(f *testing.F) {
	b := imageOf(f, 12)
	start := len(magic) + 4
	f.Add(b[start:])
	f.Add([]byte{})
	rng := rand.New(rand.NewPCG(2, 2))
	for range 40 {
		bad := bytes.Clone(b[start:])
		for range 1 + rng.IntN(3) {
			bad[rng.IntN(len(bad))] = byte(rng.IntN(256))
		}
		f.Add(bad)
	}
	cfg := DefaultConfig()
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &imageReader{b: b}
		r.u64()
		r.bytes()
		r.bytes()
		s, err := readSegment(r, &cfg)
		if err != nil {
			return
		}
		q := core.SearchQuery{Scope: core.Scope{Agent: "ada"}, Text: "when did Mira w1 w2 w3 w4 w5 w6 w7 w8?", Limit: 3}
		if _, err := s.search(context.Background(), q, new(scratch)); err != nil {
			t.Error(err)
		}
		s.put(core.Entry{ID: "new", Session: "s1", Seq: 3, Message: message.New(message.User, "w1 and w77 ?")})
		s.remove(core.Scope{Agent: "ada"}, "e3")
		s.tidy()
	})
}
