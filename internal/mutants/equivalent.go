package main

import (
	_ "embed"
	"fmt"
	"strings"
)

// equivalentList names changes that nobody could notice, one in a line: file | line of the source | old → new | why.
//
//go:embed equivalent.txt
var equivalentList string

// place is a change in the list: it does not depend on the numbers of lines.
type place struct{ file, source, change string }

// equivalents returns the reasons by what they are for.
func equivalents() (map[place]string, error) {
	out := make(map[place]string)
	for line := range strings.Lines(equivalentList) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		parts := strings.Split(line, " | ")
		if len(parts) < 4 {
			return nil, fmt.Errorf("mutants: equivalent.txt: %q has not the form: file | line of the source | old → new | why", line)
		}
		n := len(parts) // there may be such a bar in the source
		out[place{parts[0], strings.Join(parts[1:n-2], " | "), parts[n-2]}] = parts[n-1]
	}
	return out, nil
}

func (m mutant) place() place { return place{m.File, m.Source, m.change()} }
