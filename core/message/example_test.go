package message_test

import (
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// Bytes come back as they were; an edited message keeps the fields the model does not know.
func ExampleLookup() {
	codec, err := message.Lookup(message.FormatOpenAI)
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := codec.Decode([]byte(`{"role":"tool", "tool_call_id":"c1", "content":"a very long result", "seen":true}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	same, _ := codec.Encode(m)
	fmt.Println(string(same))

	result := m.Results()[0]
	result.Text, result.Raw = "a very...", nil
	clipped, _ := codec.Encode(m.WithParts([]message.Part{result}))
	fmt.Println(string(clipped))
	// Output:
	// {"role":"tool", "tool_call_id":"c1", "content":"a very long result", "seen":true}
	// {"role":"tool", "tool_call_id":"c1", "content":"a very...", "seen":true}
}

func ExampleRead() {
	file := strings.NewReader(`{"type":"session","id":"s1"}
{"type":"message","id":"e1","message":{"role":"user","content":"hi"}}
{"type":"message","id":"e2","mess
{"type":"message","id":"e3","message":{"role":"assistant","content":[{"type":"text","text":"hello"}]}}
`)
	conversations, err := message.Read(file, message.ReadOptions{
		Name:      "s1.jsonl",
		KeepGoing: true,
		OnError:   func(err error) { fmt.Println(err) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range conversations {
		fmt.Println(c.ID, c.Format)
		for i, m := range c.Messages {
			fmt.Printf("line %d: %s: %s\n", c.Lines[i], m.Role, m.Text())
		}
	}
	// Output:
	// s1.jsonl:3: expected a JSON object, found the end of the input
	// s1 pi
	// line 2: user: hi
	// line 4: assistant: hello
}

func ExampleSplit() {
	anthropic, _ := message.Lookup(message.FormatAnthropic)
	m, err := anthropic.Decode([]byte(`{"role":"user","content":[
		{"type":"tool_result","tool_use_id":"a","content":"1"},
		{"type":"tool_result","tool_use_id":"b","content":"2"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	openAI, _ := message.Lookup(message.FormatOpenAI)
	for _, one := range message.Split(m, message.FormatOpenAI) {
		raw, _ := openAI.Encode(one)
		fmt.Println(string(raw))
	}
	// Output:
	// {"role":"tool","tool_call_id":"a","content":"1"}
	// {"role":"tool","tool_call_id":"b","content":"2"}
}
