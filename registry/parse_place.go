package registry

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/titanous/json5"
)

// quoted is what a parser repeats from the file, which may be a secret.
var quoted = regexp.MustCompile("`[^`]*`|\"[^\"]*\"|'[^']{2,}'")

// withoutValues takes out of a parser's words what it repeats from the file.
func withoutValues(text string) string {
	return quoted.ReplaceAllStringFunc(text, func(s string) string {
		if s == "' or '" { // between two quoted signs
			return s
		}
		return "…"
	})
}

// saying puts a parser's error into words: where in the file it is, and what is wrong. Nothing of the file is repeated but names of keys and anchors.
func saying(err error, b []byte) string {
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, "yaml: "); ok {
		return withoutValues(yamlPlace(rest, b))
	}
	var offset int64
	if e, ok := errors.AsType[interface {
		error
		Position() (row, column int)
	}](err); ok {
		row, column := e.Position()
		return fmt.Sprintf("line %d, column %d: %s", row, column, withoutValues(text))
	} else if e, ok := errors.AsType[*stdjson.SyntaxError](err); ok {
		offset = e.Offset
	} else if e, ok := errors.AsType[*json5.SyntaxError](err); ok {
		offset = e.Offset
	} else {
		return tomlPlace(text, b) + withoutValues(text)
	}
	read := b[:min(max(offset, 0), int64(len(b)))] // up to and with the byte that is wrong
	return fmt.Sprintf("line %d, column %d: %s", lineOf(b, len(read)), max(len(read)-1-bytes.LastIndexByte(read, '\n'), 1), withoutValues(text))
}

// lineOf is the line of the byte at an offset, from 1.
func lineOf(b []byte, offset int) int { return 1 + bytes.Count(b[:min(offset, len(b))], []byte("\n")) }

var (
	yamlLine = regexp.MustCompile(`^line (\d+): `)
	// parserLine is what the second stage of the YAML parser says; its lines count from 0, those of the first from 1, and both leave a zero out.
	parserLine = regexp.MustCompile(`^did not find expected ('|key$|node content$|<)`)
	yamlAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
)

// yamlPlace puts the right line in front of what the YAML parser says.
func yamlPlace(text string, b []byte) string {
	if rest, ok := strings.CutPrefix(text, "unmarshal errors:\n"); ok { // these say the line
		return strings.ReplaceAll(strings.TrimSpace(rest), "\n  ", "; ")
	}
	line := 1
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
		if parserLine.MatchString(text) {
			line++
		}
	} else if m := yamlAnchor.FindStringSubmatch(text); m != nil {
		line = lineOf(b, max(bytes.Index(b, []byte("*"+m[1])), 0))
	} else if at := bytes.IndexFunc(b, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\r", r) || r == 0x7f }); at >= 0 {
		line = lineOf(b, at)
	}
	return fmt.Sprintf("line %d: %s", min(line, lineOf(bytes.TrimRight(b, "\n"), len(b))), text)
}

var tomlTwice = regexp.MustCompile(`^toml: (?:key|table) (\S+) (?:is already defined|already exists)$`)

// tomlPlace finds the second definition of a key, which the TOML parser names without its line; it is empty where that is not certain.
func tomlPlace(text string, b []byte) string {
	m := tomlTwice.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	at := regexp.MustCompile(`(?m)^[ \t]*(?:\[[^\]\n]*\b)?["']?`+regexp.QuoteMeta(m[1])+`["']?[ \t]*[=\]]`).FindAllIndex(b, -1)
	if len(at) != 2 {
		return ""
	}
	return fmt.Sprintf("line %d: ", lineOf(b, at[1][0]))
}
