package rpc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/creachadair/jrpc2/channel"
)

// wire carries frames: one JSON object a line, none longer than max bytes. It has two goroutines, a reader and a writer, so that neither a
// silent nor a deaf peer can hold up its end; Close ends both as soon as their Read and Write return.
type wire struct {
	payloads
	max     int
	timeout time.Duration
	// refuse answers what is no frame; nil drops the connection.
	refuse func(bad error)
	// gate waits until another frame may be taken; nil does not wait.
	gate func(done <-chan struct{})
	// When the peer ended its side, last (if there is one) is taken as its last frame, and linger called before the end is reported: what was asked
	// may still be answered.
	last   []byte
	linger func()
	// answered is called when an answer has been written, or could not be.
	answered func()

	in     chan []byte
	bad    chan error
	out    chan []byte
	wrote  chan error
	sendMu sync.Mutex

	closing sync.Once
	closed  chan struct{}
	// ended is closed when the peer ended its side; err, set before, says how.
	ended chan struct{}
	err   error
	close func() error
}

var _ channel.Channel = (*wire)(nil)

var (
	errTooLarge = errors.New("frame too large")
	errBatch    = errors.New("batches are not supported")
)

// newWire starts a wire. closeFn closes what can be closed of r and w.
func newWire(r io.Reader, w io.Writer, closeFn func() error, limit int, timeout time.Duration) *wire {
	c := &wire{
		max: limit, timeout: timeout, in: make(chan []byte), bad: make(chan error), out: make(chan []byte), wrote: make(chan error),
		closed: make(chan struct{}), ended: make(chan struct{}), close: closeFn,
	}
	go c.read(r)
	go c.write(w)
	return c
}

// read hands frames over until the input ends or the wire is closed.
func (c *wire) read(r io.Reader) {
	br := bufio.NewReaderSize(r, 64<<10)
	for {
		frame, err := readFrame(br, c.max)
		switch {
		case errors.Is(err, errTooLarge):
			select {
			case c.bad <- err:
			case <-c.closed:
				return
			}
			continue
		case err != nil:
			c.err = err
			close(c.ended)
			return
		}
		select {
		case c.in <- frame:
		case <-c.closed:
			return
		}
	}
}

// readFrame returns the next line that is not empty, without its end. A line beyond the limit is skipped and reported as errTooLarge. What stands
// behind the last newline counts as a line too; after it comes io.EOF.
func readFrame(r *bufio.Reader, limit int) ([]byte, error) {
	for {
		line, err := readLine(r, limit)
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	size := 0
	for {
		chunk, err := r.ReadSlice('\n')
		if size += len(chunk); size <= limit+1 {
			line = append(line, chunk...)
		} else {
			line = nil
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case size > limit+1 || size == limit+1 && err != nil:
			return nil, errTooLarge
		}
		return line, err
	}
}

// write writes frames until the wire is closed.
func (c *wire) write(w io.Writer) {
	for {
		select {
		case frame := <-c.out:
			_, err := w.Write(frame)
			select {
			case c.wrote <- err:
			case <-c.closed:
				return
			}
		case <-c.closed:
			return
		}
	}
}

// Recv returns the next frame.
func (c *wire) Recv() ([]byte, error) {
	for {
		if c.gate != nil {
			c.gate(c.closed)
		}
		select {
		case <-c.closed:
			return nil, channel.ErrClosed
		case err := <-c.bad:
			if c.refuse == nil {
				return nil, err
			}
			c.refuse(err)
		case frame := <-c.in:
			if frame[0] == '[' && c.refuse != nil {
				c.refuse(errBatch)
				continue
			}
			return frame, nil
		case <-c.ended:
			if frame := c.last; frame != nil {
				c.last = nil
				return frame, nil
			}
			if c.linger != nil {
				c.linger()
			}
			return nil, c.err
		}
	}
}

// over reports whether the peer ended its side.
func (c *wire) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Send writes a frame and returns when it is written, or when nobody has read it for too long; then the wire is closed.
func (c *wire) Send(frame []byte) error {
	if toAnswer(frame) {
		return nil
	}
	full, last := c.restore(frame)
	err := c.put(append(full, '\n'))
	if last {
		_ = c.Close()
	}
	if c.answered != nil && answers(frame) {
		c.answered()
	}
	return err
}

func (c *wire) put(frame []byte) error {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	select {
	case c.out <- frame:
	case <-c.closed:
		return channel.ErrClosed
	}
	select {
	case err := <-c.wrote:
		if err != nil {
			_ = c.Close()
			return fmt.Errorf("rpc: send: %w", err)
		}
		return nil
	case <-c.closed:
		return channel.ErrClosed
	case <-timer.C:
		_ = c.Close()
		return fmt.Errorf("rpc: send: the peer does not read: %w", channel.ErrClosed)
	}
}

// Close ends the wire. It does not wait.
func (c *wire) Close() error {
	var err error
	c.closing.Do(func() {
		close(c.closed)
		if c.close != nil {
			err = c.close()
		}
	})
	return err
}
