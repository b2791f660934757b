package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"sync"
)

// handles is what the stores of this process on one file open of it, and of the index beside it, by themselves. Where locks are those of POSIX a process that
// closes any descriptor of a file loses all its locks on it, those of SQLite's connections too, and the next process would take itself for the only one; see
// https://www.sqlite.org/howtocorrupt.html, section 2.2. So they stay open until the last store on the file has closed its connections.
type handles struct {
	info   fs.FileInfo
	stores int
	kept   map[kept]*os.File
	// behind are connections that took no locks, but would end those of others if they were closed before.
	behind []io.Closer
	// replaced are of files that are not at their path any more.
	replaced []*os.File
}

type kept struct {
	path string
	flag int
}

var opened struct {
	sync.Mutex
	files []*handles
}

// holdFile returns the handles of a file, which is made, readable by its owner alone, when it is missing. It comes before the first connection, and release
// behind the last.
func holdFile(path string) (*handles, error) {
	opened.Lock()
	defer opened.Unlock()
	info, err := os.Stat(path)
	if err == nil {
		if i := slices.IndexFunc(opened.files, func(h *handles) bool { return os.SameFile(h.info, info) }); i >= 0 {
			opened.files[i].stores++
			return opened.files[i], nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		var f *os.File
		if f, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600); err == nil {
			info, err = f.Stat()
			err = errors.Join(err, f.Close()) // nobody here has a lock on it yet
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the store: %w", err)
	}
	h := &handles{info: info, stores: 1, kept: make(map[kept]*os.File)}
	opened.files = append(opened.files, h)
	return h, nil
}

// with opens a file and calls use, which neither closes it nor moves its offset. Several may have the file at the same time.
func (h *handles) with(path string, flag int, use func(*os.File) error) error {
	f, err := h.open(path, flag)
	if err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // locks belong to descriptors there, and what is open cannot be removed
		return errors.Join(use(f), f.Close())
	}
	return use(f)
}

func (h *handles) open(path string, flag int) (*os.File, error) {
	if runtime.GOOS == "windows" {
		return os.OpenFile(path, flag, 0)
	}
	opened.Lock()
	defer opened.Unlock()
	at := kept{path, flag}
	if f := h.kept[at]; f != nil {
		was, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if now, err := os.Stat(path); err != nil {
			return nil, err
		} else if os.SameFile(was, now) {
			return f, nil
		}
		h.replaced = append(h.replaced, f)
		delete(h.kept, at)
	}
	f, err := os.OpenFile(path, flag, 0)
	if err == nil {
		h.kept[at] = f
	}
	return f, err
}

// later closes connections with the last store on the file.
func (h *handles) later(connections ...io.Closer) {
	opened.Lock()
	defer opened.Unlock()
	h.behind = append(h.behind, connections...)
}

// release gives the handles back.
func (h *handles) release() error {
	opened.Lock()
	defer opened.Unlock()
	if h.stores--; h.stores > 0 {
		return nil
	}
	opened.files = slices.DeleteFunc(opened.files, func(other *handles) bool { return other == h })
	var err error
	for _, c := range h.behind {
		err = errors.Join(err, c.Close())
	}
	for _, f := range h.kept {
		err = errors.Join(err, f.Close())
	}
	for _, f := range h.replaced {
		err = errors.Join(err, f.Close())
	}
	return err
}
