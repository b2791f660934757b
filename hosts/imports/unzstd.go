package imports

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// isZstd reports whether data begins like Zstandard data: hosts keep large messages so.
func isZstd(data []byte) bool { return bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd}) }

// unzstd decompresses Zstandard data to at most limit bytes; more is an error that says so.
func unzstd(data []byte, limit uint64) ([]byte, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(limit))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	defer d.Close()
	out, err := d.DecodeAll(data, nil)
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return nil, fmt.Errorf("zstd: it holds more than %d bytes: %w", limit, ErrMalformed)
	case err != nil:
		return nil, fmt.Errorf("zstd: damaged: %w: %w", err, ErrMalformed)
	}
	return out, nil
}
