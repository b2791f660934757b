package history

import (
	"encoding/json"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// The words an agent of an OpenClaw host answers with when there is nothing to say.
const (
	// HeartbeatOK acknowledges a heartbeat.
	HeartbeatOK = "HEARTBEAT_OK"
	// NoReply asks the host not to deliver a reply.
	NoReply = "NO_REPLY"
	// heartbeatFile is the file that heartbeat prompts point the agent to.
	heartbeatFile = "HEARTBEAT.md"
	// heartbeatTool is the tool with which an agent may answer a heartbeat instead.
	heartbeatTool = "heartbeat_respond"
)

// FilterHeartbeats takes acknowledged heartbeats out: the prompt (IsHeartbeatPrompt) and everything the assistant and
// its tools did up to the next user message. A span stays when it holds anything a user could have seen: text that
// is no acknowledgement, an image, a heartbeat_respond call that notifies; it also stays while it is unanswered and
// the newest. System messages and those with a Type of their own inside a span stay.
func FilterHeartbeats(msgs []message.Message) []message.Message {
	l := list{src: msgs}
	for i := 0; i < len(msgs); {
		if !IsHeartbeatPrompt(msgs[i]) {
			l.keep(i)
			i++
			continue
		}
		end := i + 1
		for end < len(msgs) && !startsTurn(&msgs[end]) {
			end++
		}
		drop := acknowledged(msgs, i+1, end)
		for ; i < end; i++ {
			m := &msgs[i]
			if !drop || m.Role == message.System || m.Type != "" && m.Role == message.User {
				l.keep(i)
			}
		}
	}
	return l.done()
}

// IsHeartbeatPrompt reports whether m is a prompt of the host's own timer: an ordinary user message in which every
// text asks for the acknowledgement HEARTBEAT_OK or points to HEARTBEAT.md, and which carries nothing else. A user who
// merely talks about heartbeats may be taken for one; FilterHeartbeats still keeps every exchange with a visible answer.
func IsHeartbeatPrompt(m message.Message) bool {
	if m.Role != message.User || m.Type != "" {
		return false
	}
	found := false
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case p.Kind != message.Text:
			return false
		case blank(p.Text):
		case strings.Contains(p.Text, HeartbeatOK), strings.Contains(p.Text, heartbeatFile):
			found = true
		default:
			return false
		}
	}
	return found
}

// acknowledged reports whether msgs[from:end], the answer to a heartbeat, is finished and shows nothing to a user.
func acknowledged(msgs []message.Message, from, end int) bool {
	var last *message.Message
	for i := from; i < end; i++ {
		m := &msgs[i]
		if m.Role != message.Assistant {
			continue
		}
		if !silent(m) {
			return false
		}
		last = m
	}
	if end < len(msgs) {
		// Somebody has gone on since: no answer is a silent one.
		return true
	}
	return last != nil && (!last.HasCalls() || responded(last))
}

// silent reports whether an assistant message shows nothing to a user.
func silent(m *message.Message) bool {
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case message.Text:
			if !blank(p.Text) && !isAcknowledgement(p.Text) {
				return false
			}
		case message.ToolCall:
			if p.Name == heartbeatTool && notifies(p.Args) {
				return false
			}
		case message.Thinking:
		default:
			return false
		}
	}
	return true
}

// responded reports whether m answers a heartbeat with the tool made for that.
func responded(m *message.Message) bool {
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == message.ToolCall && p.Name == heartbeatTool {
			return true
		}
	}
	return false
}

// notifies reports whether heartbeat_respond arguments ask for a notification. What cannot be read might.
func notifies(args string) bool {
	var a struct {
		Notify bool `json:"notify"`
	}
	return json.Unmarshal([]byte(args), &a) != nil || a.Notify
}

// isAcknowledgement reports whether text is one of the silent words, emphasis and punctuation aside.
func isAcknowledgement(text string) bool {
	switch strings.Trim(text, " \t\r\n*_`~\"'.!") {
	case HeartbeatOK, NoReply:
		return true
	}
	return false
}
