package history

import (
	"iter"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core/message"
)

// Shorthands for fixtures.

func text(s string) message.Part { return message.Part{Kind: message.Text, Text: s} }
func think(s string) message.Part {
	return message.Part{Kind: message.Thinking, Text: s, Signature: "c2ln"}
}

func call(id string) message.Part {
	return message.Part{Kind: message.ToolCall, CallID: id, Name: "read", Args: `{"path":"a"}`}
}

func result(id string) message.Part {
	return message.Part{Kind: message.ToolResult, CallID: id, Text: "result of " + id}
}

func msg(role message.Role, parts ...message.Part) message.Message {
	return message.Message{Role: role, Parts: parts}
}

func user(s string) message.Message           { return msg(message.User, text(s)) }
func system(s string) message.Message         { return msg(message.System, text(s)) }
func says(s string) message.Message           { return msg(message.Assistant, text(s)) }
func calls(p ...message.Part) message.Message { return msg(message.Assistant, p...) }
func tool(p ...message.Part) message.Message  { return msg(message.Tool, p...) }
func stopped(m message.Message, s string) message.Message {
	m.Stop = s
	return m
}

func missing(id string) message.Message {
	return tool(message.Part{Kind: message.ToolResult, CallID: id, Name: "read", Text: NoResult, IsError: true})
}

// source turns bytes into choices: the same bytes always make the same messages, and no bytes make none.
type source []byte

func (s *source) pick(n int) int {
	if len(*s) == 0 {
		return 0
	}
	b := int((*s)[0])
	*s = (*s)[1:]
	return b % n
}

func oneOf[T any](s *source, values ...T) T { return values[s.pick(len(values))] }

// conversation makes messages of the kinds hosts have been seen to store, and of worse ones.
func (s *source) conversation() []message.Message {
	format := oneOf(s, "", message.FormatAnthropic, message.FormatPi, "mixed")
	var out []message.Message
	for len(*s) > 0 && len(out) < 60 {
		m := s.message()
		m.Format = format
		if format == "mixed" {
			m.Format = oneOf(s, "", message.FormatAnthropic, message.FormatPi, message.FormatOpenAI)
		}
		if m.Format != "" {
			m.Raw = []byte(`{}`)
		}
		if s.pick(3) > 0 {
			m.Time = time.Unix(int64(len(out)+s.pick(5)), 0).UTC()
		}
		out = append(out, m)
	}
	return out
}

func (s *source) message() message.Message {
	id := func() string { return oneOf(s, "a", "a", "b", "b", "c_1", "c1", "toolu_x", "functions.f:0", "") }
	str := func() string {
		return oneOf(s, "hello", "hello", "x", "", " \n", NoReply, HeartbeatOK, "ask "+HeartbeatOK, EmptyResult, NoResult)
	}
	res := func() message.Part {
		return message.Part{Kind: message.ToolResult, CallID: id(), Name: oneOf(s, "", " read"), Text: str(), IsError: s.pick(3) == 0}
	}
	ask := func() message.Part {
		p := message.Part{Kind: message.ToolCall, CallID: id(), Name: oneOf(s, "read", "read", "read", " write ", "bad name", heartbeatTool)}
		p.Args = oneOf(s, "{}", "{}", "{}", `{"a":1}`, "", `{"a":`, `{"notify":true}`)
		if s.pick(12) == 1 {
			p.Args, p.Raw = "free text", []byte(`{"type":"custom"}`)
		}
		return p
	}
	muse := func() message.Part {
		return message.Part{Kind: message.Thinking, Text: str(), Signature: oneOf(s, "c2ln", "", "no base64", " ")}
	}
	switch s.pick(16) {
	case 0, 1, 2:
		return user(str())
	case 3, 4:
		return stopped(says(str()), oneOf(s, "", "stop", stopError, stopLength))
	case 5, 6, 7:
		return stopped(calls(text(str()), ask()), oneOf(s, "", "", "toolUse", stopError, stopAborted))
	case 8:
		return stopped(calls(muse(), ask(), ask()), oneOf(s, "", stopError))
	case 9, 10, 11:
		return tool(res())
	case 12:
		return tool(res(), res(), text(str()))
	case 13:
		return stopped(calls(muse()), oneOf(s, "", stopAborted, stopLength))
	case 14:
		m := message.Message{Role: oneOf(s, message.User, message.User, message.Assistant, message.System, message.Tool)}
		m.Type = oneOf(s, "", "custom", message.CompactionSummary)
		m.Name = oneOf(s, "", "bob")
		m.Usage.Input = s.pick(2)
		m.Parts = []message.Part{text(str()), ask()}[:s.pick(3)]
		return m
	default:
		// Anything anywhere.
		m := message.Message{Role: oneOf(s, message.User, message.Assistant, message.Tool, message.System)}
		for range s.pick(5) {
			other := message.Part{Kind: oneOf(s, message.Image, message.Other), Raw: []byte(`{"type":"x"}`)}
			m.Parts = append(m.Parts, oneOf(s, text, think)(str()), oneOf(s, res, ask, muse)(), other)
		}
		return m
	}
}

// draws yields n seeds that differ from run to run; HISTORY_SEED names the only one to try.
func draws(t *testing.T, n int) iter.Seq[int64] {
	t.Helper()
	only := os.Getenv("HISTORY_SEED")
	seed, err := strconv.ParseInt(only, 10, 64)
	if only != "" && err != nil {
		t.Fatalf("HISTORY_SEED: %q is no number", only)
	}
	return func(yield func(int64) bool) {
		if only != "" {
			yield(seed)
			return
		}
		for range n {
			if !yield(rand.Int63()) {
				return
			}
		}
	}
}

// random returns n random bytes as a source.
func random(seed int64, n int) source {
	b := make([]byte, n)
	rand.New(rand.NewSource(seed)).Read(b)
	return b
}

// clone copies msgs so deeply that no write to one shows in the other.
func clone(msgs []message.Message) []message.Message {
	out := slices.Clone(msgs)
	for i := range out {
		out[i].Raw = slices.Clone(out[i].Raw)
		out[i].Parts = slices.Clone(out[i].Parts)
		for j := range out[i].Parts {
			out[i].Parts[j].Raw = slices.Clone(out[i].Parts[j].Raw)
		}
	}
	return out
}

// policies returns those of all provider families and some that no provider has.
func policies() map[string]Policy {
	out := map[string]Policy{}
	for _, name := range Providers() {
		p, err := PolicyFor(name)
		if err != nil {
			panic(err)
		}
		out[p.Provider] = p
	}
	strip := out[ProviderAnthropic]
	strip.SyntheticResults, strip.SanitizeCallIDs, strip.DropThinking = false, IDsStrict9, true
	out["strip"] = strip
	tools := out[ProviderOpenAI]
	tools.AllowedTools, tools.SyntheticResults, tools.MergeUserTurns = []string{"write"}, false, true
	out["tools"] = tools
	out["nothing"] = Policy{}
	return out
}
