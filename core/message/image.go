package message

import (
	"encoding/json"
	"strings"
)

// picture is an image block taken out of its format: data in base64 with its media type, or an address.
type picture struct{ mime, data, url string }

// pictureOf reads the image block of any of the three formats; which one it is shows in the block itself.
func pictureOf(p Part) (picture, bool) {
	if p.Kind != Image || kindOf(p.Raw) != '{' {
		return picture{}, false
	}
	var b struct {
		Data     string          `json:"data"`
		MimeType string          `json:"mimeType"`
		ImageURL json.RawMessage `json:"image_url"`
		Source   struct {
			MediaType string `json:"media_type"`
			Data      string `json:"data"`
			URL       string `json:"url"`
		} `json:"source"`
	}
	if json.Unmarshal(p.Raw, &b) != nil {
		return picture{}, false
	}
	url := b.Source.URL
	if kindOf(b.ImageURL) == '"' {
		url, _ = unquote(b.ImageURL)
	} else if o, err := parseObject(b.ImageURL); err == nil {
		url = o.text("url")
	}
	switch {
	case b.Data != "":
		return picture{mime: b.MimeType, data: b.Data}, true
	case b.Source.Data != "":
		return picture{mime: b.Source.MediaType, data: b.Source.Data}, true
	case strings.HasPrefix(url, "data:"):
		head, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
		return picture{mime: head, data: data}, ok
	}
	return picture{url: url}, url != ""
}

func (p picture) openAI() []byte {
	url := p.url
	if p.data != "" {
		url = "data:" + p.mime + ";base64," + p.data
	}
	return object{}.with(
		change{"type", []byte(`"image_url"`)},
		change{"image_url", object{}.with(change{"url", quote(url)})},
	)
}

func (p picture) anthropic() []byte {
	source := object{}.with(change{"type", []byte(`"url"`)}, change{"url", quote(p.url)})
	if p.data != "" {
		source = object{}.with(
			change{"type", []byte(`"base64"`)},
			change{"media_type", quote(p.mime)},
			change{"data", quote(p.data)},
		)
	}
	return object{}.with(change{"type", []byte(`"image"`)}, change{"source", source})
}

// pi returns nil for an image that is only an address: pi has no block for it.
func (p picture) pi() []byte {
	if p.data == "" {
		return nil
	}
	return object{}.with(
		change{"type", []byte(`"image"`)},
		change{"data", quote(p.data)},
		change{"mimeType", quote(p.mime)},
	)
}

// placeholder is the text that stands for a part another format cannot carry, so that the reader knows of it.
func placeholder(p Part) string {
	switch {
	case p.Text != "":
		return p.Text
	case p.Kind == Image:
		return "[image omitted]"
	}
	name := "content"
	if o, err := parseObject(p.Raw); err == nil && o.text("type") != "" {
		name = o.text("type")
	}
	return "[" + name + " omitted]"
}

// standIn returns the text to write for a part that cannot be carried; ok is false where a text would put words
// into the model's mouth.
func standIn(p Part, role Role) (text string, ok bool) {
	if role == Assistant && p.Text == "" {
		return "", false
	}
	return placeholder(p), true
}
