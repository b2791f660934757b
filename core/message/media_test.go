package message_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core/message"
)

// picture encodes an image of the given size.
func picture(tb testing.TB, kind string, width, height int) string {
	tb.Helper()
	img := image.NewGray(image.Rect(0, 0, width, height))
	var b bytes.Buffer
	var err error
	switch kind {
	case "png":
		err = png.Encode(&b, img)
	case "jpeg":
		err = jpeg.Encode(&b, img, nil)
	case "gif":
		err = gif.Encode(&b, img, nil)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// webp returns the first bytes of a WebP.
func webp(form string, rest ...byte) string {
	b := append([]byte("RIFF\x00\x00\x00\x00WEBP"+form+"\x00\x00\x00\x00"), rest...)
	for len(b) < 30 {
		b = append(b, 0)
	}
	return base64.StdEncoding.EncodeToString(b)
}

func TestMediaOf(t *testing.T) {
	const anthropic = `{"type":"image","source":{"type":"base64","media_type":"image/%s","data":"%s"}}`
	pngData := picture(t, "png", 40, 30)
	size := func(data string) int {
		b, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			t.Fatal(err)
		}
		return len(b)
	}
	jpegData, gifData := picture(t, "jpeg", 17, 9), picture(t, "gif", 5, 6)
	for _, tc := range []struct {
		kind       message.Kind
		raw        string
		kindS, say string
	}{
		{message.Image, fmt.Sprintf(anthropic, "png", pngData), "image", fmt.Sprintf("image/png, 40x30, %d bytes", size(pngData))},
		{message.Image, fmt.Sprintf(anthropic, "jpeg", jpegData), "image", fmt.Sprintf("image/jpeg, 17x9, %d bytes", size(jpegData))},
		{message.Image, `{"type":"image","mimeType":"image/gif","data":"` + gifData + `"}`, "image", fmt.Sprintf("image/gif, 5x6, %d bytes", size(gifData))},
		{message.Image, `{"type":"image","data":"` + gifData + `"}`, "image", fmt.Sprintf("image/gif, 5x6, %d bytes", size(gifData))},
		{message.Image, `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pngData + `"},"name":"a\n[b].png"}`, "image", fmt.Sprintf("image/png, 40x30, %d bytes, %q", size(pngData), "a b .png")},
		{message.Image, `{"type":"image_url","image_url":"https://example.com/shots/one.png?key=secret#x"}`, "image", `"one.png"`},
		{message.Image, `{"type":"image_url","image_url":{"url":"https://example.com"}}`, "image", ""},
		{message.Image, `{"type":"image","source":{"type":"url","url":"https://example.com/i.png"}}`, "image", `"i.png"`},
		{message.Image, fmt.Sprintf(anthropic, "webp", webp("VP8X", 0, 0, 0, 0, 0x0f, 0x27, 0, 0x01, 0, 0)), "image", "image/webp, 10000x2, 30 bytes"},
		{message.Image, fmt.Sprintf(anthropic, "webp", webp("VP8L", 0x2f, 0x03, 0x40, 0, 0)), "image", "image/webp, 4x2, 30 bytes"},
		{message.Image, fmt.Sprintf(anthropic, "webp", webp("VP8 ", 0, 0, 0, 0x9d, 0x01, 0x2a, 0x20, 0x40, 0x10, 0x80)), "image", "image/webp, 32x16, 30 bytes"},
		{message.Image, fmt.Sprintf(anthropic, "png", "AAAA"), "image", "image/png, 3 bytes"},
		{message.Image, fmt.Sprintf(anthropic, "png", "iVBORw0KGgo="), "image", "image/png, 8 bytes"},
		{message.Image, `{"type":"image","data":7,"mimeType":"image/png"}`, "image", "48 bytes"},
		{message.Image, `no JSON`, "image", "7 bytes"},
		{message.Image, ``, "image", ""},
		{message.Other, `{"type":"document","title":"Q3","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}`, "document", `application/pdf, 5 bytes, "Q3"`},
		{message.Other, `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"four"}}`, "document", "text/plain, 4 bytes"},
		{message.Other, `{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}`, "input_audio", "audio/wav, 3 bytes"},
		{message.Other, `{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}`, "file", `application/pdf, 5 bytes, "a.pdf"`},
		{message.Other, `{"type":"<new>\n"}`, "new", "18 bytes"},
	} {
		m, ok := message.MediaOf(message.Part{Kind: tc.kind, Raw: []byte(tc.raw)})
		if !ok || m.Kind != tc.kindS || m.String() != tc.say {
			t.Errorf("MediaOf(%.90s) = %q, %q, %v, want %q, %q", tc.raw, m.Kind, m.String(), ok, tc.kindS, tc.say)
		}
	}
	if _, ok := message.MediaOf(message.Part{Kind: message.Text, Text: "x"}); ok {
		t.Error("a text is media")
	}
}

func FuzzMediaOf(f *testing.F) {
	f.Add([]byte(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+picture(f, "png", 3, 2)+`"}}`), false)
	f.Add([]byte(`{"type":"image","data":"`+picture(f, "jpeg", 3, 2)+`"}`), false)
	f.Add([]byte(`{"type":"image","data":"`+webp("VP8X")+`"}`), false)
	f.Add([]byte(`{"image_url":{"url":"data:image/gif;base64,`+picture(f, "gif", 3, 2)+`"},"name":"]\n["}`), true)
	f.Fuzz(func(t *testing.T, raw []byte, other bool) {
		p := message.Part{Kind: message.Image, Raw: raw}
		if other {
			p.Kind = message.Other
		}
		m, ok := message.MediaOf(p)
		if !ok {
			t.Fatal("no media")
		}
		if s := m.Kind + m.String(); strings.ContainsAny(s, "[]<>\n\r`") || len(s) > 400 {
			t.Errorf("a note could be left with %q", s)
		}
	})
}

func TestShorten(t *testing.T) {
	const img = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`
	for _, tc := range []struct {
		name, format, raw string
		texts             map[int]string
		bare              bool
		want              string
	}{
		{
			"a user's image beside a text", message.FormatOpenAI,
			`{"role":"user","content":[{"type":"text","text":"look","x":1},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}],"name":"ann"}`,
			map[int]string{1: "[gone]"}, false,
			`{"role":"user","content":[{"type":"text","text":"look","x":1},{"type":"text","text":"[gone]"}],"name":"ann"}`,
		},
		{
			"a message that was an image", message.FormatPi,
			`{"role":"user","content":[{"type":"image","data":"AAAA","mimeType":"image/png"}],"timestamp":1}`,
			map[int]string{0: "[gone]"}, false,
			`{"role":"user","content":[{"type":"text","text":"[gone]"}],"timestamp":1}`,
		},
		{
			"a message that was an image, Anthropic", message.FormatAnthropic, `{"role":"user","content":[` + img + `]}`,
			map[int]string{0: "[gone]"}, false,
			`{"role":"user","content":[{"type":"text","text":"[gone]"}]}`,
		},
		{
			"an image beside a result has no room of its own", message.FormatPi,
			`{"role":"toolResult","toolCallId":"a","toolName":"f","content":[{"type":"text","text":"r"},{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"new"}],"isError":false}`,
			map[int]string{1: "[gone]"}, false,
			`{"role":"toolResult","toolCallId":"a","toolName":"f","content":[{"type":"text","text":"r\n[gone]"},{"type":"new"}],"isError":false}`,
		},
		{
			"a masked result and its image", message.FormatOpenAI,
			`{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"r"},{"type":"image_url","image_url":{"url":"https://example.com/i.png"}}]}`,
			map[int]string{0: "[r gone]", 1: "[gone]"}, true,
			`{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"[r gone]\n[gone]"}]}`,
		},
		{
			"a masked result with an image inside", message.FormatAnthropic,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"r"},` + img + `],"cache_control":{"type":"ephemeral"}},` + img + `]}`,
			map[int]string{0: "[r gone]"}, true,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"[r gone]"}],"cache_control":{"type":"ephemeral"}},` + img + `]}`,
		},
		{
			"a clipped result keeps the image inside", message.FormatAnthropic,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[` + img + `,{"type":"text","text":"r"}]}]}`,
			map[int]string{0: "r..."}, false,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"r..."},` + img + `]}]}`,
		},
	} {
		m := decode(t, tc.format, tc.raw)
		before := fmt.Sprintf("%+v", m)
		short := message.Shorten(m, tc.texts, tc.bare)
		got, err := message.Encode(short, tc.format)
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %v\n got %s\nwant %s", tc.name, err, got, tc.want)
			continue
		}
		if n := len(message.Split(short, tc.format)); n != 1 {
			t.Errorf("%s: it takes %d messages", tc.name, n)
		}
		if now := fmt.Sprintf("%+v", m); now != before {
			t.Errorf("%s: the message was changed", tc.name)
		}
		// A host that hands it back says the same.
		if again := decode(t, tc.format, string(got)); message.Fingerprint(again) != message.Fingerprint(short) {
			t.Errorf("%s: it has another fingerprint when it comes back", tc.name)
		}
		for _, format := range message.Formats() {
			for _, piece := range message.Split(short, format) {
				raw, err := message.Encode(piece, format)
				if err != nil || !json.Valid(raw) {
					t.Errorf("%s: as %s: %v", tc.name, format, err)
				}
				if tc.bare && strings.Contains(string(raw), "tool_use_id") && strings.Count(string(raw), "AAAA") > strings.Count(tc.want, "AAAA") {
					t.Errorf("%s: as %s the image is back: %s", tc.name, format, raw)
				}
			}
		}
	}
}
