package engine

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core/window"
)

// maxListed is how many shortened entries a description names.
const maxListed = 20

// shortenedLine finds the notes in what is shown of shortened entries.
var shortenedLine = regexp.MustCompile(`(?m)^\[[^\n]* not shown[^\n]*; entry [^\n]*\]$|^\[\.\.\. shortened, [^\n]* \.\.\.\]$`)

// shortenedText lists what the window shows only a note of, newest first: what it is, and the id to expand. It reads nothing: the notes say it.
func shortenedText(stubs map[string]window.Stub) string {
	ids := make([]string, 0, len(stubs))
	for id := range stubs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	var b strings.Builder
	listed := 0
	for _, id := range ids {
		for _, line := range notesOf(stubs[id], id) {
			if listed == maxListed {
				fmt.Fprintf(&b, "... and more of %d shortened messages.\n", len(ids))
				return b.String()
			}
			if listed++; listed == 1 {
				b.WriteString("Shortened, newest first; expand shows text in pages and says what images are:\n")
			}
			b.WriteString(window.Quote(window.CutRune(line, 240)) + "\n")
		}
	}
	return b.String()
}

// notesOf returns the engine's notes among the texts of a stub: those that name the entry.
func notesOf(st window.Stub, id string) []string {
	parts := make([]int, 0, len(st.Texts))
	for i := range st.Texts {
		parts = append(parts, i)
	}
	slices.Sort(parts)
	var out []string
	for _, i := range parts {
		for _, line := range shortenedLine.FindAllString(st.Texts[i], -1) {
			if strings.Contains(line, "; entry "+id) {
				out = append(out, line)
			}
		}
	}
	return out
}
