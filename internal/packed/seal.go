package packed

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/contextengine/contextengine/internal/squeeze"
)

// The first byte of a sealed body.
const (
	// Plain is followed by the body as it is.
	Plain        byte = 1
	bodyDeflate  byte = 2
	bodySqueezed byte = 3
)

const (
	// minDeflate is the size in bytes from which compression is tried that learns from the body itself; shorter ones are squeezed.
	minDeflate = 1 << 10
	// maxBody bounds what a compressed body may say it expands to.
	maxBody = 1 << 30
)

// deflaters are those that wait for the next body.
var deflaters sync.Pool

// Seal makes a body shorter for where it is kept: squeezed when that saves more than an eighth, or compressed when it saves more than a fifth.
func Seal(body []byte) []byte {
	if len(body) >= minDeflate {
		if out := deflate(body); out != nil {
			return out
		}
	}
	if out, ok := squeeze.Append(append(make([]byte, 0, len(body)+1), bodySqueezed), body); ok {
		return out
	}
	return append(append(make([]byte, 0, len(body)+1), Plain), body...)
}

func deflate(body []byte) []byte {
	w, _ := deflaters.Get().(*flate.Writer)
	var out bytes.Buffer
	out.Grow(len(body) / 2)
	out.WriteByte(bodyDeflate)
	out.Write(binary.AppendUvarint(nil, uint64(len(body))))
	if w == nil {
		var err error
		if w, err = flate.NewWriter(&out, flate.BestSpeed); err != nil {
			return nil
		}
	} else {
		w.Reset(&out)
	}
	defer deflaters.Put(w)
	if _, err := w.Write(body); err != nil {
		return nil
	}
	if err := w.Close(); err != nil || out.Len() > len(body)/5*4 {
		return nil
	}
	return out.Bytes()
}

// Unseal is the inverse of Seal. The result may share memory with sealed.
func Unseal(sealed []byte) ([]byte, error) {
	if len(sealed) == 0 {
		return nil, ErrMalformed
	}
	rest := sealed[1:]
	switch sealed[0] {
	case Plain:
		return rest, nil
	case bodySqueezed:
		return squeeze.Expand(rest)
	case bodyDeflate:
		size, n := binary.Uvarint(rest)
		if n <= 0 || size > maxBody {
			return nil, ErrMalformed
		}
		var out bytes.Buffer
		got, err := io.Copy(&out, io.LimitReader(flate.NewReader(bytes.NewReader(rest[n:])), int64(size)+1))
		if err != nil {
			return nil, fmt.Errorf("compressed body: %w", err)
		}
		if got != int64(size) {
			return nil, ErrMalformed
		}
		return out.Bytes(), nil
	}
	return nil, fmt.Errorf("body of unknown kind %d", sealed[0])
}
