package soak

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// vocabulary is what sessions talk with; rare words are made up as they go.
var vocabulary = strings.Fields(`the a of and to in is it was for on that with as at by this from they we say her she or an will my one all would there
	what so up out if about who get which go me when make can like time no just him know take people into year your good some could them see other
	than then now look only come its over think also back after use two how our work first well way even new want because any these give day most
	invoice kestrel harbour deploy ticket schema garden violin station budget compile weather passport recipe bicycle lantern`)

// say returns about n words.
func say(rng *rand.Rand, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		if rng.IntN(12) == 0 {
			fmt.Fprintf(&b, "item%d", rng.IntN(5000))
			continue
		}
		b.WriteString(vocabulary[rng.IntN(len(vocabulary))])
	}
	return b.String()
}

// answer returns what an assistant does in a turn: every fifth calls a tool before it speaks.
func answer(rng *rand.Rand, call string) []message.Message {
	if rng.IntN(5) > 0 {
		return []message.Message{message.New(message.Assistant, say(rng, 60))}
	}
	return []message.Message{
		{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: call, Name: "look", Args: `{"what":"` + say(rng, 3) + `"}`}}},
		{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: call, Name: "look", Text: say(rng, 120)}}},
		message.New(message.Assistant, say(rng, 40)),
	}
}
