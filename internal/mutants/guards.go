package main

import (
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"
)

// guardList names the guards between the parts and the window, one in a line: file | line of the source | guard → what stands there without it | what it promises.
//
//go:embed guards.txt
var guardList string

// guards returns a mutant for each guard of a list: the source without it.
func guards(list string) ([]mutant, error) {
	var out []mutant
	for line := range strings.Lines(list) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		parts := strings.Split(line, " | ")
		if len(parts) != 4 {
			return nil, fmt.Errorf("mutants: guards.txt: %q has not the form: file | line of the source | guard → without it | promise", line)
		}
		old, without, ok := strings.Cut(parts[2], " → ")
		if !ok {
			return nil, fmt.Errorf("mutants: guards.txt: %q does not say what stands there without the guard", line)
		}
		m := mutant{File: parts[0], Source: parts[1], Old: old, New: without, Kind: kindGuard}
		if without == "nothing" {
			m.New, m.Kind = "", kindStatement
		}
		if err := m.locate(); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// locate finds the place of a mutant that knows its line and what stands in it.
func (m *mutant) locate() error {
	src, err := os.ReadFile(m.File)
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(src), "\n")
	same := func(line string) bool { return strings.TrimSpace(line) == m.Source }
	n := slices.IndexFunc(lines, same)
	if n < 0 || slices.ContainsFunc(lines[n+1:], same) || strings.Count(lines[n], m.Old) != 1 {
		return fmt.Errorf("mutants: %s: want %q in one place: the line %q", m.File, m.Old, m.Source)
	}
	m.Line = n + 1
	m.From = len(strings.Join(lines[:n], "")) + strings.Index(lines[n], m.Old)
	m.To = m.From + len(m.Old)
	m.SwitchFrom, m.SwitchTo, m.Left, m.Right = m.From, m.To, m.From, m.To
	return nil
}
