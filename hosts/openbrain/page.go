package openbrain

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"
)

// pageWriter answers a page of thoughts while it is read. A thought is encoded in pieces, so that no second copy of it is held.
type pageWriter struct {
	to    *recorder
	out   *bufio.Writer
	one   bytes.Buffer
	enc   *json.Encoder
	count int
	bytes int
	most  int
}

// newPageWriter returns the writer of a page of at most so many bytes of thoughts; one is always taken.
func newPageWriter(w *recorder, most int) *pageWriter {
	p := &pageWriter{to: w, most: most, out: bufio.NewWriterSize(w, writeStep)}
	p.enc = json.NewEncoder(&p.one)
	p.enc.SetEscapeHTML(false)
	return p
}

// add writes a thought. It returns false, and writes nothing, when the page has no room for it.
func (p *pageWriter) add(t wireThought) (fits bool, err error) {
	head, tail, err := p.frame(t)
	if err != nil {
		return false, err
	}
	if p.count > 0 && !quotedFits(t.Content, p.most-p.bytes-len(head)-len(tail)) {
		return false, nil
	}
	if p.count == 0 {
		p.begin()
	} else {
		_ = p.out.WriteByte(',') // a bufio.Writer keeps its error until it is flushed
	}
	p.count++
	n, err := p.write(head, t.Content, tail)
	p.bytes += n
	return err == nil, err
}

// frame encodes a thought without its content, which stands between head and tail. They are good until the next call.
func (p *pageWriter) frame(t wireThought) (head, tail []byte, err error) {
	if p.one.Cap() > writeStep { // large metadata of the thought before
		p.one = bytes.Buffer{}
	}
	p.one.Reset()
	t.Content = ""
	if err := p.enc.Encode(t); err != nil {
		return nil, nil, fmt.Errorf("openbrain: encode answer: %w", err)
	}
	// In a JSON text before the content, which is an id alone, no quotes stand without a backslash.
	head, tail, _ = bytes.Cut(bytes.TrimRight(p.one.Bytes(), "\n"), []byte(`"content":""`))
	return head, tail, nil
}

// write writes a thought and returns how many bytes it has, without the name of its content.
func (p *pageWriter) write(head []byte, content string, tail []byte) (n int, err error) {
	_, _ = p.out.Write(head)
	_, _ = p.out.WriteString(`"content":"`)
	n, err = quote(p.out, content)
	if err != nil {
		return n, err
	}
	_ = p.out.WriteByte('"')
	_, err = p.out.Write(tail)
	return n + len(head) + len(tail), err
}

// quoteStep is how much of a text is encoded at a time.
const quoteStep = 16 << 10

// quote writes a text as the inside of a JSON string, as encoding/json does, and returns how many bytes that are.
func quote(w io.Writer, text string) (n int, err error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for text != "" {
		end := min(quoteStep, len(text))
		for back := 0; back < utf8.UTFMax-1 && end < len(text) && !utf8.RuneStart(text[end]); back++ {
			end-- // a letter is not torn
		}
		b.Reset()
		if err := enc.Encode(text[:end]); err != nil {
			return n, fmt.Errorf("openbrain: encode answer: %w", err)
		}
		some, err := w.Write(b.Bytes()[1 : b.Len()-2])
		n += some
		if err != nil {
			return n, err
		}
		text = text[end:]
	}
	return n, nil
}

// quotedMost is how many bytes quote makes of one, at most.
const quotedMost = 6

// quotedFits reports whether quote writes at most room bytes. It is counted only where the length of the text does not tell.
func quotedFits(text string, room int) bool {
	if len(text) > room || len(text) <= room/quotedMost {
		return len(text) <= room
	}
	n, _ := quote(io.Discard, text) // takes all
	return n <= room
}

func (p *pageWriter) begin() {
	answerHeader(p.to.Header())
	p.to.WriteHeader(http.StatusOK)
	_, _ = p.out.WriteString(`{"thoughts":[`)
}

// end writes what stands behind the thoughts of a list, or returns the error that kept them from being read.
func (p *pageWriter) end(next string, err error) error {
	last := fmt.Sprintf(`,"count":%d`, p.count)
	if next != "" {
		text, _ := json.Marshal(next) // a string
		last += `,"next":` + string(text)
	}
	return p.close(last, err)
}

// close writes what stands behind the thoughts, last and as it is. When the answer has begun and there is an error, it can only be cut off.
func (p *pageWriter) close(last string, err error) error {
	if err != nil && p.count == 0 {
		return err
	}
	if err != nil {
		return &broken{err}
	}
	if p.count == 0 {
		p.begin()
	}
	_, _ = p.out.WriteString("]" + last + "}\n")
	_ = p.out.Flush() // the client is gone when this fails
	return nil
}

// answerThought answers one thought. What is large is written in pieces, and without its length.
func answerThought(w *recorder, status int, t wireThought) error {
	if len(t.Content) <= writeStep {
		return answer(w, status, t)
	}
	p := newPageWriter(w, 0)
	head, tail, err := p.frame(t)
	if err != nil {
		return err
	}
	answerHeader(w.Header())
	w.WriteHeader(status)
	if _, err := p.write(head, t.Content, append(tail, '\n')); err != nil {
		return &broken{err}
	}
	_ = p.out.Flush() // the client is gone when this fails
	return nil
}

// broken is the error of an answer that has begun: it is not answered but cut off, so that the client does not take it for whole.
type broken struct{ cause error }

func (b *broken) Error() string { return "openbrain: an answer was cut off: " + b.cause.Error() }

// Unwrap returns the cause.
func (b *broken) Unwrap() error { return b.cause }
