package registry

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
)

// maxPattern is how much text a pattern may hold, in bytes: as much as the name of a session in the sidecar's protocol.
const maxPattern = 1024

// patternFault says why no session of a conversation can have a name that a pattern of Arm.Sessions takes; "" where one can.
func patternFault(pattern string) string {
	switch {
	case pattern == "" || pattern != strings.TrimSpace(pattern):
		return "must be the host's name of a session without blanks around it; * stands for any text"
	case !utf8.ValidString(pattern) || strings.ContainsFunc(pattern, unicode.IsControl):
		return "must be text without control characters"
	case len(pattern)-strings.Count(pattern, "*") > maxPattern:
		return fmt.Sprintf("must be at most %d bytes, without each *: no session has a longer name", maxPattern)
	case core.Reserved(pattern):
		return "must not be a name that the engine keeps for records of its own"
	}
	return ""
}

// matches reports whether a name is what a pattern says, in which * stands for any text and every other character for itself.
func matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, parts[0])
	for _, part := range parts[1:last] {
		if ok {
			_, name, ok = strings.Cut(name, part)
		}
	}
	return ok && strings.HasSuffix(name, parts[last])
}
