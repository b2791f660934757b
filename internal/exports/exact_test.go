package exports

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func FuzzExact(f *testing.F) {
	e := core.Entry{
		ID: "\xff", Agent: "a", Session: "s", Role: message.User, Type: core.TypeMessage, Key: "k", Meta: map[string]string{"\xfe": "x", "b": ""},
		Message: message.Message{
			Role: message.Assistant, ID: "\xfd", Raw: []byte{}, Time: time.Unix(3, 5).UTC(), Usage: message.Usage{Input: -1}, Edited: true,
			Parts: []message.Part{{Kind: "new", Text: "x", Raw: []byte{0}, IsError: true}, {Kind: message.ToolCall, CallID: "c", Args: "\xff"}},
		},
	}
	f.Add(packExact(&e))
	f.Add([]byte{})
	var back core.Entry
	if err := unpackExact(packExact(&e), &back); err != nil {
		f.Fatal(err)
	}
	if diff := cmp.Diff(e, back); diff != "" {
		f.Fatalf("packed and unpacked (-want +got):\n%s", diff)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var first, second core.Entry
		if unpackExact(b, &first) != nil {
			return
		}
		if err := unpackExact(packExact(&first), &second); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("packed again (-want +got):\n%s", diff)
		}
	})
}
