package message

import (
	"bytes"
	"encoding/json"
	"path"
	"strconv"
	"strings"
	"unicode"
)

// Media says what an image, a document or a recording is, for readers who do not get to see it. What the host's block
// does not tell is zero.
type Media struct {
	// Kind is "image", or the type of the host's block ("document", "input_audio", ...).
	Kind string
	// Type is the media type, such as "image/png".
	Type string
	// Name is the file's name, on one line and without brackets.
	Name string
	// Bytes is the size of the content, not of its encoding; Width and Height are in pixels.
	Bytes, Width, Height int
	// Text is the content of a document that is plain text.
	Text string
}

// String returns what is known, separated by commas: type, dimensions, size and name. It is "" when nothing is.
func (m Media) String() string {
	var known []string
	if m.Type != "" {
		known = append(known, m.Type)
	}
	if m.Width > 0 && m.Height > 0 {
		known = append(known, strconv.Itoa(m.Width)+"x"+strconv.Itoa(m.Height))
	}
	if m.Bytes > 0 {
		known = append(known, strconv.Itoa(m.Bytes)+" bytes")
	}
	if m.Name != "" {
		known = append(known, strconv.Quote(m.Name))
	}
	return strings.Join(known, ", ")
}

// mediaBlock is what the blocks of all formats say about their content, each in its own place.
type mediaBlock struct {
	Type     string          `json:"type"`
	Name     string          `json:"name"`
	Filename string          `json:"filename"`
	Title    string          `json:"title"`
	Data     string          `json:"data"`
	MimeType string          `json:"mimeType"`
	ImageURL json.RawMessage `json:"image_url"`
	Source   struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
	} `json:"source"`
	InputAudio struct {
		Data   string `json:"data"`
		Format string `json:"format"`
	} `json:"input_audio"`
	File struct {
		Filename string `json:"filename"`
		FileData string `json:"file_data"`
	} `json:"file"`
}

// MediaOf reads what the block of a part of kind Image or Other says about its content; ok is false for other kinds. It never fails: a block that
// nobody knows is described by its kind and size. Of an image it reads the header only.
func MediaOf(p Part) (m Media, ok bool) {
	if p.Kind != Image && p.Kind != Other {
		return Media{}, false
	}
	var b mediaBlock
	_ = json.Unmarshal(p.Raw, &b) // a field of another type than expected says nothing; the others still do
	m.Kind = string(p.Kind)
	if t := plainName(b.Type, 40); p.Kind == Other && t != "" {
		m.Kind = t
	}
	data, url := b.content(&m)
	if rest, found := strings.CutPrefix(url, "data:"); found {
		m.Type, data, _ = strings.Cut(rest, ";base64,")
		url = ""
	}
	m.Type = plainName(m.Type, 80)
	switch {
	case m.Text != "":
		m.Bytes = len(m.Text)
	case data != "":
		m.Bytes = decodedLen(data)
	case url == "":
		m.Bytes = len(p.Raw)
	}
	if m.Name == "" && url != "" {
		// What stands behind "?" may be a secret.
		url, _, _ = strings.Cut(url, "?")
		url, _, _ = strings.Cut(url, "#")
		if _, rest, found := strings.Cut(url, "://"); found && strings.Contains(rest, "/") && !strings.HasSuffix(rest, "/") {
			m.Name = path.Base(rest)
		}
	}
	m.Name = plainName(m.Name, 80)
	if p.Kind == Image && data != "" {
		h := headerOf(data)
		m.Width, m.Height = h.width, h.height
		if m.Type == "" {
			m.Type = h.mime
		}
	}
	return m, true
}

// content fills in name, type and text, and returns the data in base64 or the address.
func (b *mediaBlock) content(m *Media) (data, url string) {
	for _, name := range []string{b.Name, b.Filename, b.Title, b.File.Filename} {
		if m.Name == "" {
			m.Name = name
		}
	}
	switch {
	case b.Data != "":
		m.Type = b.MimeType
		return b.Data, ""
	case b.Source.Type == "text":
		m.Type, m.Text = b.Source.MediaType, b.Source.Data
		return "", ""
	case b.Source.Data != "":
		m.Type = b.Source.MediaType
		return b.Source.Data, ""
	case b.InputAudio.Data != "":
		if b.InputAudio.Format != "" {
			m.Type = "audio/" + b.InputAudio.Format
		}
		return b.InputAudio.Data, ""
	case b.File.FileData != "":
		return "", b.File.FileData
	case b.Source.URL != "":
		return "", b.Source.URL
	}
	if s, ok := unquote(b.ImageURL); ok {
		return "", s
	}
	var at struct {
		URL string `json:"url"`
	}
	_ = json.Unmarshal(b.ImageURL, &at)
	return "", at.URL
}

// decodedLen is the length of what is encoded in base64.
func decodedLen(data string) int {
	return len(strings.TrimRight(data, "=")) * 3 / 4
}

// plainName makes a host's name fit into a note: one line, nothing that could open or close a bracket or a tag, at most so many bytes.
func plainName(name string, most int) string {
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		switch r {
		case '[', ']', '<', '>', '"', '\\', '`', '\u2028', '\u2029':
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, "")))
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "")
	}
	return name
}

// Inside returns the blocks inside an Anthropic tool result that are no text, as parts; nil where there are none. In the other formats they are parts
// of the message.
func Inside(p Part) []Part {
	if p.Kind != ToolResult || bytes.IndexByte(p.Raw, '[') < 0 {
		return nil
	}
	return nested(p)
}
