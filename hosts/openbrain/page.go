package openbrain

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// pageWriter answers a page of a list while it is read, so that no more than one thought of it is held at a time.
type pageWriter struct {
	to    http.ResponseWriter
	out   *bufio.Writer
	one   bytes.Buffer
	enc   *json.Encoder
	count int
	bytes int
	most  int
}

// newPageWriter returns the writer of a page of at most so many bytes of thoughts; one is always taken.
func newPageWriter(w http.ResponseWriter, most int) *pageWriter {
	p := &pageWriter{to: w, most: most, out: bufio.NewWriterSize(w, 64<<10)}
	p.enc = json.NewEncoder(&p.one)
	p.enc.SetEscapeHTML(false)
	return p
}

// add writes a thought. It returns false, and writes nothing, when the page has no room for it.
func (p *pageWriter) add(t thought) (fits bool, err error) {
	p.one.Reset()
	if err := p.enc.Encode(t.wire()); err != nil {
		return false, fmt.Errorf("openbrain: encode answer: %w", err)
	}
	one := bytes.TrimRight(p.one.Bytes(), "\n")
	if p.count > 0 && p.bytes+len(one) > p.most {
		return false, nil
	}
	if p.count == 0 {
		p.begin()
	} else {
		_ = p.out.WriteByte(',') // a bufio.Writer keeps its error until it is flushed
	}
	p.count++
	p.bytes += len(one)
	if _, err := p.out.Write(one); err != nil {
		return false, errors.Join(errGone, err)
	}
	return true, nil
}

// errGone is the error when the client does not take the answer any more.
var errGone = errors.New("openbrain: the client is gone")

func (p *pageWriter) begin() {
	answerHeader(p.to.Header())
	p.to.WriteHeader(http.StatusOK)
	_, _ = p.out.WriteString(`{"thoughts":[`)
}

// end writes what stands behind the thoughts, or returns the error that kept them from being read. When the answer has begun it can only be cut off.
func (p *pageWriter) end(next string, err error) error {
	if err != nil && p.count == 0 {
		return err
	}
	if err != nil {
		return &broken{err}
	}
	if p.count == 0 {
		p.begin()
	}
	fmt.Fprintf(p.out, `],"count":%d`, p.count)
	if next != "" {
		text, _ := json.Marshal(next) // a string
		fmt.Fprintf(p.out, `,"next":%s`, text)
	}
	_, _ = p.out.WriteString("}\n")
	_ = p.out.Flush() // the client is gone when this fails
	return nil
}

// broken is the error of an answer that has begun: it is not answered but cut off, so that the client does not take it for whole.
type broken struct{ cause error }

func (b *broken) Error() string { return "openbrain: an answer was cut off: " + b.cause.Error() }

// Unwrap returns the cause.
func (b *broken) Unwrap() error { return b.cause }
