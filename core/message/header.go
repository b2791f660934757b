package message

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
)

// header is what the first bytes of an image tell.
type header struct {
	mime          string
	width, height int
}

// maxHeader bounds how much of an image is read for its dimensions, in bytes: a JPEG may carry a preview in front of them.
const maxHeader = 1 << 20

// headerOf reads the header of an image in base64; it is zero for what it does not know.
func headerOf(data string) header {
	r := bufio.NewReader(io.LimitReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)), maxHeader))
	begin, _ := r.Peek(webpHeader) // a short image is no error yet
	read := func(mime string, decode func(io.Reader) (image.Config, error)) header {
		c, err := decode(r)
		if err != nil {
			return header{mime: mime}
		}
		return header{mime, c.Width, c.Height}
	}
	switch {
	case bytes.HasPrefix(begin, []byte("\x89PNG\r\n\x1a\n")):
		return read("image/png", png.DecodeConfig)
	case bytes.HasPrefix(begin, []byte("\xff\xd8\xff")):
		return read("image/jpeg", jpeg.DecodeConfig)
	case bytes.HasPrefix(begin, []byte("GIF8")):
		return read("image/gif", gif.DecodeConfig)
	case len(begin) == webpHeader && string(begin[:4]) == "RIFF" && string(begin[8:12]) == "WEBP":
		h := header{mime: "image/webp"}
		h.width, h.height = webpSize(begin)
		return h
	}
	return header{}
}

// webpHeader is how many bytes of a WebP hold its dimensions, in each of its three forms (RFC 9649).
const webpHeader = 30

func webpSize(b []byte) (width, height int) {
	switch string(b[12:16]) {
	case "VP8 ": // lossy: 14 bits each behind the start code of the frame
		return int(binary.LittleEndian.Uint16(b[26:]) & 0x3fff), int(binary.LittleEndian.Uint16(b[28:]) & 0x3fff)
	case "VP8L": // lossless: 14 bits each behind the signature, less one
		n := binary.LittleEndian.Uint32(b[21:])
		return int(n&0x3fff) + 1, int(n>>14&0x3fff) + 1
	case "VP8X": // extended: 24 bits each, less one
		u24 := func(at int) int { return int(b[at]) | int(b[at+1])<<8 | int(b[at+2])<<16 }
		return u24(24) + 1, u24(27) + 1
	}
	return 0, 0
}
