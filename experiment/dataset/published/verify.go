package published

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// State is how a file below a data folder compares with the table.
type State string

// The states of a file, and of a set, which alone can be partial.
const (
	Present   State = "present"
	Absent    State = "absent"
	Partial   State = "partial"
	Different State = "different"
)

// Status is the state of a file. Err is the *MismatchError of one that differs.
type Status struct {
	File
	State State
	Err   error
}

// Verify reads the files of a set below a folder and compares them with the table; the licence text comes last, if the set has one. The
// error is that of a file that cannot be read.
func Verify(dir string, set Set) ([]Status, error) {
	files := set.Files
	if set.Licence.Text != nil {
		files = append(slices.Clip(files), *set.Licence.Text)
	}
	var out []Status
	for _, f := range files {
		state, err := check(dir, f)
		if err != nil && state != Different {
			return out, err
		}
		out = append(out, Status{File: f, State: state, Err: err})
	}
	return out, nil
}

// StateOf sums up what Verify says of a set. A licence text that is absent does not count.
func StateOf(list []Status, set Set) State {
	present := 0
	for i, s := range list {
		switch {
		case s.State == Different:
			return Different
		case s.State == Present && i < len(set.Files):
			present++
		}
	}
	switch present {
	case 0:
		return Absent
	case len(set.Files):
		return Present
	}
	return Partial
}

func check(dir string, f File) (State, error) {
	path := f.local(dir)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Absent, nil
	}
	if err != nil {
		return "", fmt.Errorf("published: check %q: %w", f.Path, err)
	}
	if seen := sumOf(data); seen != f.Sum {
		return Different, &MismatchError{Where: path, Want: f.Sum, Seen: seen}
	}
	return Present, nil
}

// notePath is where the note of a set is below the data folder.
func (s Set) notePath() string { return s.Name + "/SOURCE.txt" }

// textPath is where the publisher's licence text is below the data folder, empty if there is none.
func (s Set) textPath() string {
	if s.Licence.Text == nil {
		return ""
	}
	return s.Licence.Text.Path
}

// Note says in plain text what a set is, where it comes from, what it may be used under, and what its files are.
func (s Set) Note() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\nPublisher: %s\n", s.Name, s.What, s.Publisher)
	for _, base := range s.Bases {
		fmt.Fprintf(&b, "Revision: %s\n", base)
	}
	fmt.Fprintf(&b, "Licence: %s\n\n", s.Licence)
	for _, f := range s.Files {
		fmt.Fprintf(&b, "%s: %s\n", f.Path, f.Sum)
		if f.Keep != nil {
			fmt.Fprintf(&b, "  %s of %s: %s\n", f.Keep, f.Source, f.Published)
		} else {
			fmt.Fprintf(&b, "  is %s\n", f.Source)
		}
	}
	return b.String()
}

// String names the licence, its address, and what it does not allow.
func (l Licence) String() string {
	text := l.Name + ", " + l.Address
	if l.Note != "" {
		text += " (" + l.Note + ")"
	}
	if l.NonCommercial {
		text += ". NOT FOR COMMERCIAL USE"
	}
	return text
}
