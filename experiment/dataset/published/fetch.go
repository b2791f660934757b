package published

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/contextengine/contextengine/internal/files"
)

// patience is how long one file may take with the default client.
const patience = 5 * time.Minute

// Options say how a set is fetched. The zero value asks the publisher.
type Options struct {
	// From is a mirror: a folder or an http address below which files are named as in the data folder or as the publisher names them, or,
	// for a set of one file, that file itself. Empty means the publisher.
	From string
	// Force replaces files that are there with other content, and fetches those again that are right. Without it the former are errors.
	Force bool
	// Client asks publishers and mirrors; nil means one that gives each file five minutes.
	Client *http.Client
	// Progress, if not nil, is told how much of the set has arrived, in bytes of what is transferred. It is called by one goroutine.
	Progress func(done, total int64)
}

// Outcome is what became of a file.
type Outcome struct {
	File
	// Written tells that the file was put there now; otherwise it was there already.
	Written bool
}

// MismatchError tells that a file is not what the table says.
type MismatchError struct {
	// Where is the file or address whose content differs.
	Where string
	// Want is one of what was expected, Seen what is there.
	Want, Seen Sum
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s is not what was published: expected %s; seen %s", e.Where, e.Want, e.Seen)
}

// Fetch puts the files of a set below a folder: first the publisher's licence text, if there is one, then the files, with a note, SOURCE.txt,
// that says where all of it comes from. Where the whole set is there, nothing is done, and files that are there and right are left alone.
// Every file is checked before it appears, whole, under its name; when Fetch fails or is cancelled, what it has finished stays and a later
// call goes on from there.
//
// Errors are *MismatchError where content is not what the table says, wrap fs.ErrNotExist where a mirror lacks a file, core.ErrInvalid where
// From does not fit, and pass the context's errors through. What is returned beside an error is what was done before it.
func Fetch(ctx context.Context, dir string, set Set, o Options) ([]Outcome, error) {
	list, err := Verify(dir, set)
	if err != nil {
		return nil, err
	}
	s, err := newSource(set, o)
	if err != nil {
		return nil, err
	}
	if text := set.Licence.Text; text != nil && s.file == "" && (o.Force || StateOf(list, set) != Present) {
		list = append(list[len(set.Files):], list[:len(set.Files)]...)
	} else {
		list = list[:len(set.Files)]
	}
	var done []Outcome
	note := filepath.Join(dir, filepath.FromSlash(set.notePath()))
	_, absent := os.Stat(note)
	noted := absent == nil
	for _, at := range list {
		written, err := s.place(ctx, dir, at, o.Force)
		if o.From != "" && at.Path == set.textPath() && errors.Is(err, fs.ErrNotExist) {
			continue // the note names the licence's address
		}
		if err != nil {
			return done, fmt.Errorf("published: fetch %q: %w", at.Path, err)
		}
		done = append(done, Outcome{File: at.File, Written: written})
		if written || !noted {
			if err := write(note, []byte(set.Note())); err != nil {
				return done, fmt.Errorf("published: fetch %q: %w", set.notePath(), err)
			}
			noted = true
		}
	}
	return done, nil
}

// place makes sure that a file is there, and tells whether it had to be written.
func (s *source) place(ctx context.Context, dir string, at Status, force bool) (bool, error) {
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case at.State == Different && !force:
		return false, fmt.Errorf("%w; --force replaces it", at.Err)
	case at.State == Present && !force:
		s.skip(at.File)
		return false, nil
	}
	data, err := s.get(ctx, at.File)
	if err != nil {
		return false, err
	}
	return true, write(at.local(dir), data)
}

// made returns the file that data is, or that is selected from it. Where says where data comes from.
func made(f File, where string, data []byte) ([]byte, error) {
	seen := sumOf(data)
	if seen == f.Sum {
		return data, nil
	}
	if seen != f.arrives() || f.Keep == nil {
		err := error(&MismatchError{Where: where, Want: f.arrives(), Seen: seen})
		if f.Keep != nil {
			err = fmt.Errorf("%w; what is selected from it, %s, would do too", err, f.Sum)
		}
		return nil, err
	}
	kept, err := f.Keep.apply(data)
	if err != nil {
		return nil, fmt.Errorf("select from %s: %w", where, err)
	}
	if seen := sumOf(kept); seen != f.Sum {
		return nil, &MismatchError{Where: "what is selected from " + where, Want: f.Sum, Seen: seen}
	}
	return kept, nil
}

// write lets a file appear whole.
func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp, err := files.Temp(filepath.Dir(path), ".fetch")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}
