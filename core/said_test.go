package core_test

import (
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// TestTextOfACall: a call is searched and quoted by its tool's name and its arguments, as they read.
func TestTextOfACall(t *testing.T) {
	for args, want := range map[string]string{
		``:                                     "look",
		`{"path":"a/b.go","n":1}`:              "look\npath: a/b.go\nn: 1",
		`{"id":12345678901234567890,"x":1.50}`: "look\nid: 12345678901234567890\nx: 1.50",
		`{"text":"two\nlines \u00e9"}`:         "look\ntext: two\nlines é",
		`{"path":"a/b.go","n"`:                 "look\npath: a/b.go\n{\"path\":\"a/b.go\",\"n\"",
		`not JSON`:                             "look\nnot JSON",
		`{"a":[1,2],"b":{"c":true,"d":null}}`:  "look\na: 1\na: 2\nc: true\nd: null",
	} {
		m := message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, Name: "look", CallID: "c", Args: args}}}
		if got := (core.Entry{Role: m.Role, Type: core.TypeMessage, Message: m}).Text(); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}
