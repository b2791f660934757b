package core

import (
	"github.com/contextengine/contextengine/core/message"
)

// The names under which hosts offer Search, Expand and Describe to a model as tools.
const (
	ToolSearch   = "context_search"
	ToolExpand   = "context_expand"
	ToolDescribe = "context_describe"
)

// LookedUp reports whether e is nothing but calls of the tools above, or their results. Those say again what stands in other entries, and would
// be found before them. They can be expanded by id like everything.
func (e *Entry) LookedUp() bool {
	found := false
	for _, p := range e.Message.Parts {
		switch p.Kind {
		case message.ToolCall, message.ToolResult:
			if !ownTool(p.Name) {
				return false
			}
			found = true
		case message.Thinking:
		default:
			return false
		}
	}
	return found
}

func ownTool(name string) bool {
	return name == ToolSearch || name == ToolExpand || name == ToolDescribe
}
