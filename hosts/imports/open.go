package imports

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/exports"
)

// maxUnpacked bounds what a compressed archive may become, in bytes: hosts write archives of up to 256 MiB.
const maxUnpacked = 1 << 30

// maxFile bounds a file that is read at once, in bytes.
const maxFile = 4 << 30

// sqliteMagic begins every SQLite file.
const sqliteMagic = "SQLite format 3\x00"

// open reads a file, or opens it when it is a SQLite one, and finds out what it is unless from says so.
func open(name string, from Format) (*source, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("imports: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%q is a folder: name the files in it: %w", name, core.ErrInvalid)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("imports: open: %w", err), f.Close())
	}
	buf := bufio.NewReaderSize(f, 1<<16)
	head, err := buf.Peek(len(sqliteMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(fmt.Errorf("imports: open %q: %w", name, err), f.Close())
	}
	if string(head) == sqliteMagic {
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("imports: open %q: %w", name, err)
		}
		return openFile(name, from)
	}
	src, err := openStream(name, buf, from)
	if err != nil || src.stream == nil {
		return src, errors.Join(err, f.Close())
	}
	src.file = f
	return src, nil
}

// openStream reads all of a file, unless it is an export: these can be larger than memory.
func openStream(name string, r *bufio.Reader, from Format) (*source, error) {
	var err error
	if head, _ := r.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("imports: open %q: %w: %w", name, err, ErrMalformed)
		}
		r = bufio.NewReaderSize(z, 1<<16)
	}
	head, _ := r.Peek(256)
	if from == Lines || from == "" && isExport(head) {
		return &source{name: name, format: Lines, stream: r}, nil
	}
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it is larger than %d bytes: %w", maxFile, core.ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("imports: open %q: %w", name, err)
	}
	return openData(name, data, from)
}

// isExport reports whether a file begins like an export.
func isExport(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	return bytes.HasPrefix(head, []byte(`{"header":`)) && bytes.Contains(head, []byte(`"`+exports.Format+`"`))
}

// openFile opens a SQLite file.
func openFile(name string, from Format) (*source, error) {
	db, err := openDatabase(name)
	if err != nil {
		return nil, err
	}
	is, err := db.format()
	if err == nil && from != "" && from != is {
		err = fmt.Errorf("it is of %q, not %q: %w", is, from, core.ErrInvalid)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("imports: open %q: %w", name, err), db.Close())
	}
	return &source{name: name, format: is, db: db}, nil
}

// openData unpacks data and finds out what it is.
func openData(name string, data []byte, from Format) (*source, error) {
	if from != "" && !slices.Contains(Formats(), from) {
		return nil, fmt.Errorf("imports: open %q: format %q is not one of %q: %w", name, from, Formats(), core.ErrInvalid)
	}
	data, err := unpack(data)
	if err != nil {
		return nil, fmt.Errorf("imports: open %q: %w: %w", name, err, ErrMalformed)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	switch {
	case bytes.HasPrefix(data, []byte(sqliteMagic)):
		return nil, fmt.Errorf("imports: open %q: it is a SQLite file: name it, unpacked, instead of handing over its bytes: %w", name, core.ErrInvalid)
	case from == OpenClaw || from == LosslessClaw:
		return nil, fmt.Errorf("imports: open %q: it is not the SQLite file that %q has: %w", name, from, core.ErrInvalid)
	case from == "":
		from = Detect(data)
	}
	return &source{name: name, format: from, data: data}, nil
}

// unpack decompresses what is compressed.
func unpack(data []byte) ([]byte, error) {
	if isZstd(data) {
		return unzstd(data, maxUnpacked)
	}
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(z, maxUnpacked+1))
	if err == nil && len(out) > maxUnpacked {
		err = fmt.Errorf("it unpacks to more than %d bytes", maxUnpacked)
	}
	return out, err
}

// Detect says what data is that is no SQLite file. What looks like nothing else is a Transcript.
func Detect(data []byte) Format {
	d := json.NewDecoder(bytes.NewReader(data))
	t, err := d.Token()
	if err == nil && t == json.Delim('[') {
		t, err = d.Token()
	}
	if err != nil || t != json.Delim('{') {
		return Transcript
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		switch key {
		case "header":
			var h exports.Header
			if json.Unmarshal(value, &h) == nil && h.Format == exports.Format {
				return Lines
			}
		case "mapping":
			if len(value) > 0 && value[0] == '{' {
				return ChatGPT
			}
		}
	}
	return Transcript
}
