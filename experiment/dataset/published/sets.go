package published

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
)

//go:embed sets.json
var table []byte

// Set is a public set of conversations.
type Set struct {
	// Name is how a command names the set, and its folder below the data folder.
	Name string `json:"name"`
	// What says what the set holds, in a sentence without a stop.
	What string `json:"what"`
	// Publisher is the address of the publisher's page.
	Publisher string `json:"publisher"`
	// Bases are addresses that every Source is found below, in the order in which they are tried. Each names a revision.
	Bases   []string `json:"bases"`
	Licence Licence  `json:"licence"`
	// Figures name the documents and tests whose figures are measured on the set.
	Figures []string `json:"figures"`
	Files   []File   `json:"files"`
}

// Licence is what a set may be used under.
type Licence struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	// NonCommercial tells that the licence does not allow commercial use.
	NonCommercial bool `json:"nonCommercial,omitempty"`
	// Note is what else a reader should know, such as where the licence is stated.
	Note string `json:"note,omitempty"`
	// Text is the licence as the publisher put it beside the set, if so. A mirror may lack it.
	Text *File `json:"text,omitempty"`
}

// File is a file of a set.
type File struct {
	// Path is where the file is below the data folder, with slashes; it begins with the set's name.
	Path string `json:"path"`
	// Source is where the publisher's file is below a base.
	Source string `json:"source"`
	Sum
	// Published is what the publisher's file must be, where the file is selected from it by Keep; nil where it is that file.
	Published *Sum  `json:"published,omitempty"`
	Keep      *Keep `json:"keep,omitempty"`
}

// local is where the file is below a data folder.
func (f File) local(dir string) string { return filepath.Join(dir, filepath.FromSlash(f.Path)) }

// arrives is what the publisher's file must be.
func (f File) arrives() Sum {
	if f.Published != nil {
		return *f.Published
	}
	return f.Sum
}

// Size returns the bytes of the set's files, without the licence.
func (s Set) Size() int64 {
	n := int64(0)
	for _, f := range s.Files {
		n += f.Bytes
	}
	return n
}

// Sets returns the sets there are, in the order of the table. The error is that of a table somebody edited wrongly.
func Sets() ([]Set, error) { return Parse(table) }

// Parse reads a table of sets in the form of sets.json: {"sets": [...]}. Errors wrap core.ErrInvalid and name the set and the field.
func Parse(data []byte) ([]Set, error) {
	var t struct {
		Sets []Set `json:"sets"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return nil, fmt.Errorf("published: read the table: %w: %w", err, core.ErrInvalid)
	}
	seen := make(map[string]bool)
	for i, s := range t.Sets {
		if err := s.validate(); err != nil {
			return nil, fmt.Errorf("published: read the table: set %d, %q: %w: %w", i+1, s.Name, err, core.ErrInvalid)
		}
		if seen[s.Name] {
			return nil, fmt.Errorf("published: read the table: %q is there twice: %w", s.Name, core.ErrInvalid)
		}
		seen[s.Name] = true
	}
	return t.Sets, nil
}

func (s Set) validate() error {
	switch {
	case s.Name == "" || !filepath.IsLocal(s.Name) || strings.ContainsAny(s.Name, `/\`):
		return errors.New("name: must be the name of a folder")
	case s.What == "":
		return errors.New("what: is empty")
	case s.Licence.Name == "":
		return errors.New("licence.name: is empty")
	case len(s.Files) == 0:
		return errors.New("files: is empty")
	case len(s.Bases) == 0:
		return errors.New("bases: is empty")
	}
	for field, list := range map[string][]string{"publisher": {s.Publisher}, "licence.address": {s.Licence.Address}, "bases": s.Bases} {
		for _, address := range list {
			if u, err := url.Parse(address); err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
				return fmt.Errorf("%s: %q is no address", field, address)
			}
		}
	}
	files := s.Files
	if s.Licence.Text != nil {
		files = append(slices.Clip(files), *s.Licence.Text)
	}
	seen := make(map[string]bool)
	for _, f := range files {
		if err := f.validate(s.Name); err != nil {
			return fmt.Errorf("file %q: %w", f.Path, err)
		}
		if seen[f.Path] || f.Path == s.notePath() {
			return fmt.Errorf("file %q: the path is taken", f.Path)
		}
		seen[f.Path] = true
	}
	return nil
}

func (f File) validate(set string) error {
	switch {
	case !filepath.IsLocal(filepath.FromSlash(f.Path)) || !strings.HasPrefix(f.Path, set+"/"):
		return fmt.Errorf("path: must begin with %q", set+"/")
	case f.Source == "" || !filepath.IsLocal(filepath.FromSlash(f.Source)):
		return errors.New("source: must be a path below a base")
	case !f.valid():
		return errors.New("bytes, sha256: must be a size and 64 hexadecimal digits")
	case (f.Published == nil) != (f.Keep == nil):
		return errors.New("published, keep: one needs the other")
	case f.Published != nil && !f.Published.valid():
		return errors.New("published: must have a size and 64 hexadecimal digits")
	case f.Keep != nil:
		return f.Keep.validate()
	}
	return nil
}

// Sum tells a file from every other.
type Sum struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// sumOf returns what tells data from everything else.
func sumOf(data []byte) Sum {
	sum := sha256.Sum256(data)
	return Sum{Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
}

func (s Sum) valid() bool {
	sum, err := hex.DecodeString(s.SHA256)
	return err == nil && len(sum) == 32 && s.Bytes > 0 && s.SHA256 == strings.ToLower(s.SHA256)
}

func (s Sum) String() string { return fmt.Sprintf("sha256 %s, %d bytes", s.SHA256, s.Bytes) }
