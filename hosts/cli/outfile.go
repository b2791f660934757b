package cli

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/contextengine/contextengine/internal/files"
)

// stdoutName stands for standard output where a file is named.
const stdoutName = "-"

// outFile is a file that a person wants written. One rule holds for all verbs: it is written whole or not at all, it is never put in the place of a device, a
// pipe, a link or a folder, and in the place of another file only when that was said.
type outFile struct {
	// flag is what the person named it with.
	flag, name string
	force      bool
	// stream says that "-" stands for standard output.
	stream bool
}

// streams reports whether standard output is written instead of a file.
func (o outFile) streams() bool { return o.stream && o.name == stdoutName }

// check says whether the file can be written, before the work is done that fills it.
func (o outFile) check() error {
	if o.streams() {
		return nil
	}
	info, err := os.Lstat(o.name)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s: %s is no regular file: choose another name", o.flag, o.name)
	case err == nil && !o.force:
		return fmt.Errorf("%s: %s exists: choose another name, or overwrite it with --force", o.flag, o.name)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", o.flag, err)
	}
	return o.folder()
}

// folder says whether the folder of the file is there.
func (o outFile) folder() error {
	folder, err := os.Stat(filepath.Dir(o.name))
	if err == nil && !folder.IsDir() {
		err = errors.New("is no folder")
	}
	if err != nil {
		return fmt.Errorf("%s: there is no folder for %s", o.flag, o.name)
	}
	return nil
}

// write lets f fill the file, which has its name when all of it is there. A name that ends with ".gz" is compressed. Standard output is written as it comes.
func (o outFile) write(stdout io.Writer, f func(w io.Writer) error) error {
	if o.streams() {
		return f(stdout)
	}
	if err := o.check(); err != nil {
		return err
	}
	file, err := files.Temp(filepath.Dir(o.name), ".write") // mode 0600: it may come to hold a key, or what people said
	if err != nil {
		return fmt.Errorf("%s: %w", o.flag, err)
	}
	err = compressed(file, strings.HasSuffix(o.name, ".gz"), f)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = o.check() // somebody else may have been faster
	}
	if err == nil {
		err = os.Rename(file.Name(), o.name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// save is write, and says what was written.
func (a *app) save(o outFile, f func(w io.Writer) error) error {
	if err := o.write(a.Stdout, f); err != nil || o.streams() {
		return err
	}
	info, err := os.Stat(o.name)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "wrote %s, %s\n", o.name, size(info.Size()))
	return nil
}

func compressed(w io.Writer, yes bool, f func(w io.Writer) error) error {
	if !yes {
		return f(w)
	}
	z := gzip.NewWriter(w)
	if err := f(z); err != nil {
		return err
	}
	return z.Close()
}

// appendFile is a file that grows: it is opened when the first byte is written to it, so that nothing to write leaves nothing behind.
type appendFile struct {
	flag, name string
	file       *os.File
}

func (p *appendFile) check() error {
	return outFile{flag: p.flag, name: p.name, force: true}.check()
}

// Write implements io.Writer.
func (p *appendFile) Write(data []byte) (int, error) {
	if p.file == nil {
		if err := p.check(); err != nil {
			return 0, err
		}
		file, err := os.OpenFile(p.name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", p.flag, err)
		}
		p.file = file
	}
	return p.file.Write(data)
}

// Close closes the file, if there is one.
func (p *appendFile) Close() error {
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}

// Sync flushes the file to the disk.
func (p *appendFile) Sync() error {
	if p.file == nil {
		return nil
	}
	return p.file.Sync()
}
