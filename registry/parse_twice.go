package registry

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// overlooked is what a format's parser passes over in a file that it takes, although it changes what the file says.
func overlooked(format string, b []byte) error {
	switch format {
	case ".yaml", ".yml":
		if line := secondDocument(b); line > 0 {
			return fmt.Errorf("line %d: a second document begins, and a configuration is one: %w", line, core.ErrInvalid)
		}
	case ".json", ".json5":
		if key, at := repeatedKey(b); at >= 0 {
			return fmt.Errorf("line %d: the key %q is there twice: %w", lineOf(b, at), clip(key), core.ErrInvalid)
		}
	}
	return nil
}

// secondDocument returns the line of the "---" in front of a second YAML document with something in it, 0 without one. At the
// beginning of a line it always is a marker, in block texts too.
func secondDocument(b []byte) int {
	content, marker := false, 0
	for i, line := range strings.Split(string(b), "\n") {
		rest, begins := strings.CutPrefix(line, "---")
		if begins = begins && (rest == "" || strings.ContainsAny(rest[:1], " \t\r")); begins {
			if line = rest; content {
				marker = i + 1
			}
		}
		line = strings.TrimSpace(line)
		if line == "" || line == "..." || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "%") && !content {
			continue
		}
		if content = true; marker > 0 {
			return marker
		}
	}
	return 0
}

// repeatedKey finds a key that is twice in one object of a JSON or JSON5 document that is otherwise right, and where the second one is; -1 without one.
func repeatedKey(b []byte) (string, int) {
	var open []map[string]bool // nil for a list
	key := false               // a key may come now
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case bytes.HasPrefix(b[i:], []byte("//")):
			i += lengthTo(b[i:], "\n")
			continue
		case bytes.HasPrefix(b[i:], []byte("/*")):
			i += lengthTo(b[i:], "*/")
			continue
		case c == '{':
			open, key = append(open, make(map[string]bool)), true
		case c == '[':
			open, key = append(open, nil), false
		case c == '}' || c == ']':
			open, key = open[:max(len(open)-1, 0)], false
		case c == ',':
			key = len(open) > 0 && open[len(open)-1] != nil
		case c == '"' || c == '\'' || key && !strings.ContainsRune(" \t\r\n\v\f\xa0:", rune(c)):
			end := wordEnd(b, i)
			if key {
				name := strings.Trim(string(b[i:end]), `"'`)
				if seen := open[len(open)-1]; seen[name] {
					return name, i
				} else {
					seen[name] = true
				}
				key = false
			}
			i = end
			continue
		}
		i++
	}
	return "", -1
}

// lengthTo is how far it is behind the next end, or to the end of everything.
func lengthTo(b []byte, end string) int {
	if at := bytes.Index(b, []byte(end)); at >= 0 {
		return at + len(end)
	}
	return len(b)
}

// wordEnd is where a string, or a name without quotes, ends.
func wordEnd(b []byte, from int) int {
	quote := b[from]
	if quote != '"' && quote != '\'' {
		for i := from; i < len(b); i++ {
			if strings.IndexByte(" \t\r\n:/", b[i]) >= 0 {
				return i
			}
		}
		return len(b)
	}
	for i := from + 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		}
	}
	return len(b)
}
