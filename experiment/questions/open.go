package questions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// The formats.
const (
	formatLoCoMo = "locomo"
	formatBEAM   = "beam"
	formatLines  = "jsonl"
)

// The files of a BEAM chat.
const (
	beamChat   = "chat.json"
	beamProbes = "pq.json"
)

// Open reads a data set from a file or folder; see the package comment for the forms.
func Open(path string) (*Dataset, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("questions: %w", err)
	}
	var d *Dataset
	if info.IsDir() {
		d, err = openFolder(path)
	} else {
		var data []byte
		if data, err = os.ReadFile(path); err == nil {
			d, err = parse(data, path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("questions: open: %w", err)
	}
	d.Name = filepath.Base(filepath.Clean(path))
	if err := d.finish(); err != nil {
		return nil, fmt.Errorf("questions: open: %q: %w", path, err)
	}
	return d, nil
}

// parse reads a file. Errors name it.
func parse(data []byte, path string) (*Dataset, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	switch first := bytes.TrimLeft(data, " \t\r\n"); {
	case len(first) == 0:
		return nil, fmt.Errorf("%q: the file is empty: %w", path, core.ErrInvalid)
	case first[0] == '[' && (filepath.Base(path) == beamChat || filepath.Base(path) == beamProbes):
		return nil, fmt.Errorf("%q: this is one of the two files of a BEAM chat: give the folder that holds %s and %s: %w", path, beamChat, beamProbes, core.ErrInvalid)
	case first[0] == '[':
		return readLoCoMo(data, path)
	default:
		return readLines(data, path)
	}
}

// openFolder reads a BEAM chat, or all of those in the folders of a folder.
func openFolder(path string) (*Dataset, error) {
	chats, err := beamFolders(path)
	if err != nil {
		return nil, err
	}
	d := &Dataset{Format: formatBEAM, Unit: Passage, Groups: []Group{{Name: "all"}}}
	for _, chat := range chats {
		c, notes, err := openBEAM(chat)
		if err != nil {
			return nil, err
		}
		d.Conversations = append(d.Conversations, c)
		d.Notes = append(d.Notes, notes...)
	}
	return d, nil
}

// beamFolders lists the folders with chats; those with numbers for names in the order of these.
func beamFolders(path string) ([]string, error) {
	if isThere(filepath.Join(path, beamChat)) || isThere(filepath.Join(path, beamProbes)) {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		// A file beside the chats, such as a licence, is none of them.
		if info, err := os.Stat(filepath.Join(path, e.Name())); err == nil && info.IsDir() && isThere(filepath.Join(path, e.Name(), beamChat)) {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%q: the folder holds no data set: give a file, or a folder with %s and %s or with folders of these: %w",
			path, beamChat, beamProbes, core.ErrInvalid)
	}
	slices.SortStableFunc(names, func(a, b string) int {
		x, errX := strconv.Atoi(a)
		y, errY := strconv.Atoi(b)
		if errX != nil || errY != nil {
			return strings.Compare(a, b)
		}
		return x - y
	})
	for i, name := range names {
		names[i] = filepath.Join(path, name)
	}
	return names, nil
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// broken is an error about a place in a file.
func broken(path, place, problem string) error {
	return fmt.Errorf("%q: %s: %s: %w", path, place, problem, core.ErrInvalid)
}

// decode reads JSON. The error says where it is wrong, and nothing of what stands there.
func decode(data []byte, into any, path, place string) error {
	err := json.Unmarshal(data, into)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := e.Field
		if field == "" {
			field = "value"
		}
		return broken(path, place, fmt.Sprintf("field %q: found %s, want %s", clip(field), kindOf(e.Value), typeWanted(e)))
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return broken(path, place, fmt.Sprintf("not JSON at byte %d: check that the file is complete", e.Offset))
	}
	return broken(path, place, "not JSON that can be read here: check the form")
}

// kindOf names what stood in a file; numbers are given with their digits, which are left out.
func kindOf(value string) string {
	kind, _, _ := strings.Cut(value, " ")
	return "a JSON " + kind
}

func typeWanted(e *json.UnmarshalTypeError) string {
	switch kind := e.Type.Kind().String(); kind {
	case "slice", "array":
		return "a list"
	case "map", "struct":
		return "an object"
	case "string":
		return "text"
	default:
		return "a number"
	}
}
