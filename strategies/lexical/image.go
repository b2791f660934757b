package lexical

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/fnv"
	"io"
	"math"

	"github.com/contextengine/contextengine/core"
)

// An image is an agent's index in a file: magic, checksum of all that follows, header, and the arrays of a tidy segment one after
// the other, little endian. What can be told from the rest, such as links, is not in it.

const (
	// magic begins every image. Its last byte is the version of the format, and of the analysis of texts: a file of another one is not read.
	magic = "ctxlexi\x03"
	// maxImage bounds the counts in an image.
	maxImage = math.MaxUint32 - 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header says what an image is of.
type header struct {
	agent string
	mark  core.Mark
	// config is the hash of what the index was built with.
	config uint64
}

// configHash identifies the settings that an index is built with; the others only matter to searches.
func configHash(c *Config) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, c.PassageWords, c.MaxPassages, c.Before, c.After, c.Decay, reach, neighbourCap, unit)
	return h.Sum64()
}

// imageWriter writes little-endian values and their checksum, and remembers the first error.
type imageWriter struct {
	w   *bufio.Writer
	sum hash.Hash32
	buf []byte
}

func (w *imageWriter) flush() {
	_, _ = w.sum.Write(w.buf)
	_, _ = w.w.Write(w.buf) // an error stays with the Writer, until Flush
	w.buf = w.buf[:0]
}

func (w *imageWriter) room() {
	if len(w.buf) > 1<<15 {
		w.flush()
	}
}

func (w *imageWriter) u16(v uint16) { w.room(); w.buf = binary.LittleEndian.AppendUint16(w.buf, v) }
func (w *imageWriter) u32(v uint32) { w.room(); w.buf = binary.LittleEndian.AppendUint32(w.buf, v) }
func (w *imageWriter) u64(v uint64) { w.room(); w.buf = binary.LittleEndian.AppendUint64(w.buf, v) }

func (w *imageWriter) bytes(b []byte) {
	w.u64(uint64(len(b)))
	w.flush()
	_, _ = w.sum.Write(b)
	_, _ = w.w.Write(b)
}

func (w *imageWriter) table(t *table) {
	w.u32(uint32(t.len()))
	for _, end := range t.ends {
		w.u32(end)
	}
	w.bytes(t.text)
}

// writeImage writes the image of a tidy segment. The checksum is written last, to its place in front.
func writeImage(f io.WriteSeeker, h header, s *segment) error {
	var zero [4]byte
	w := &imageWriter{w: bufio.NewWriterSize(f, 1<<16), sum: crc32.New(castagnoli)}
	_, _ = w.w.WriteString(magic)
	_, _ = w.w.Write(zero[:])
	w.u64(h.config)
	w.bytes([]byte(h.agent))
	w.bytes([]byte(h.mark))

	w.table(&s.names)
	w.u32(uint32(len(s.actors)))
	for _, a := range s.actors {
		w.bytes([]byte(a.name))
	}
	w.table(&s.ids)
	for i := range s.docs {
		d := &s.docs[i]
		w.u64(uint64(d.seq))
		w.u64(uint64(d.sec))
		w.u32(d.nsec)
		w.u32(d.session)
		w.u32(d.actor)
		w.u32(d.count)
		w.u64(d.sum)
	}
	w.u32(uint32(len(s.metas)))
	for p := range s.metas {
		w.u32(s.start[p])
		w.u16(s.size[p])
		w.u16(uint16(s.metas[p]))
		w.u32(s.contexts[p])
	}
	w.table(&s.words)
	for i := range s.terms {
		t := &s.terms[i]
		w.u32(t.df)
		w.u32(t.size)
	}
	w.bytes(s.base)
	w.flush()
	if err := w.w.Flush(); err != nil {
		return err
	}
	if _, err := f.Seek(int64(len(magic)), io.SeekStart); err != nil {
		return err
	}
	_, err := f.Write(binary.LittleEndian.AppendUint32(nil, w.sum.Sum32()))
	return err
}
