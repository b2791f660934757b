package main

import (
	"strings"
	"testing"
)

func TestChatWithIt(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), []string{"go", "run", "../../examples/chat"}, strings.NewReader("Hello\nAnd again\n"), &out)
	if want := "I was sent 1 messages.\nI was sent 3 messages.\n"; err != nil || out.String() != want {
		t.Errorf("%q, %v, want %q", out.String(), err, want)
	}
	if err := run(t.Context(), nil, strings.NewReader(""), &out); err == nil {
		t.Error("no command is no error")
	}
}
