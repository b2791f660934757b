package history_test

import (
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/core/message"
)

func ExampleApply() {
	policy, err := history.PolicyFor("openai")
	if err != nil {
		fmt.Println(err)
		return
	}
	msgs := []message.Message{
		message.New(message.User, "What is in a.txt?"),
		{Role: message.Assistant, Parts: []message.Part{
			{Kind: message.ToolCall, CallID: "call_1", Name: "read", Args: `{"path":"a.txt"}`},
		}},
		// The process died before the tool returned.
		message.New(message.User, "Are you still there?"),
	}
	for _, m := range history.Apply(msgs, policy) {
		fmt.Println(strings.TrimSpace(string(m.Role) + ": " + m.Text()))
	}
	// Output:
	// user: What is in a.txt?
	// assistant:
	// tool: [no result was recorded for this tool call]
	// user: Are you still there?
}
