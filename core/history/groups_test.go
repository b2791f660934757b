package history_test

import (
	"fmt"
	"testing"

	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/core/message"
)

// TestGroupsAround: u says something, c calls a and b, a and b are their results, and what | stands for belongs to none.
func TestGroupsAround(t *testing.T) {
	say := map[rune]message.Message{
		'u': message.New(message.User, "hello"), '|': message.New(message.User, "a subagent ended"),
		'c': {Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: "a"}, {Kind: message.ToolCall, CallID: "b"}}},
		'a': {Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: "a"}}},
		'b': {Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: "b"}}},
	}
	for list, want := range map[string]string{
		"": "[]", "|": "[{0 1}]", "||u": "[{0 1} {1 2} {2 3}]", "uc|ab": "[{0 1} {1 5}]", "c|a||b|u|": "[{0 6} {6 7} {7 8} {8 9}]",
		"c|": "[{0 1} {1 2}]", "c|u": "[{0 1} {1 2} {2 3}]", "|cab|cab": "[{0 1} {1 4} {4 5} {5 8}]", "a|b": "[{0 1} {1 2} {2 3}]",
	} {
		is := []rune(list)
		got := history.GroupsAround(len(is), func(i int) message.Message { return say[is[i]] }, func(i int) bool { return is[i] == '|' })
		if fmt.Sprint(got) != want {
			t.Errorf("%q: %v, want %s", list, got, want)
		}
	}
}
