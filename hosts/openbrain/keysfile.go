package openbrain

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/files"
)

// A keys file is a JSON object, readable by its owner only (mode 0600):
//
//	{
//	  "keys": [
//	    {
//	      "name": "laptop",
//	      "sha256": "64 hex digits: the SHA-256 of the key",
//	      "sources": ["openclaw:*", "notes"],
//	      "created": "2026-01-02T03:04:05Z"
//	    }
//	  ]
//	}
//
// AddKey and RemoveKey replace the file in one step, so that a server that reads it sees all of a change or nothing.

// maxKeysFile bounds a keys file, in bytes.
const maxKeysFile = 1 << 20

// keysFile is what a keys file holds.
type keysFile struct {
	Keys []Key `json:"keys"`
}

// ReadKeys reads a keys file, see the package comment. It refuses, with an error that wraps
// core.ErrInvalid, a file that others than its owner may read or write (except on Windows), one with unknown fields, and one without keys.
func ReadKeys(path string) ([]Key, error) {
	keys, err := ListKeys(path)
	if err == nil && len(keys) == 0 {
		return nil, fmt.Errorf("openbrain: read keys %q: holds no keys: %w", path, core.ErrInvalid)
	}
	return keys, err
}

// ListKeys is ReadKeys for a file that may be without keys, because the last one was removed.
func ListKeys(path string) ([]Key, error) {
	fail := func(err error) ([]Key, error) {
		return nil, fmt.Errorf("openbrain: read keys %q: %w", path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat() // of what was opened, not of what the name says by now
	if err != nil {
		return fail(err)
	}
	switch {
	case !info.Mode().IsRegular():
		return fail(fmt.Errorf("not a regular file: %w", core.ErrInvalid))
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return fail(fmt.Errorf("mode is %04o, must be 0600 or less: %w", info.Mode().Perm(), core.ErrInvalid))
	case info.Size() > maxKeysFile:
		return fail(fmt.Errorf("larger than %d bytes: %w", maxKeysFile, core.ErrInvalid))
	}
	keys, err := decodeKeys(io.LimitReader(f, maxKeysFile))
	if err != nil {
		return fail(err)
	}
	return keys, nil
}

// decodeKeys reads what a keys file holds. Its errors repeat nothing of it but names.
func decodeKeys(r io.Reader) ([]Key, error) {
	var file keysFile
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil || d.More() {
		return nil, fmt.Errorf(`must be {"keys": [{"name", "sha256", "sources"}]}: %w`, core.ErrInvalid)
	}
	for i, k := range file.Keys {
		if err := k.validate(); err != nil {
			return nil, fmt.Errorf("keys[%d]: %w: %w", i, err, core.ErrInvalid)
		}
	}
	if _, err := newRing(file.Keys, Config{}, nil); err != nil {
		return nil, err
	}
	return file.Keys, nil
}

// AddKey makes a key with MakeKey, adds it to a keys file, which is made if it is missing, and returns the key. Nothing can bring
// it back later. A running server knows it within a second. A name that is taken is core.ErrConflict.
func AddKey(path, name string, sources []string) (secret string, err error) {
	secret, k, err := MakeKey(name, sources, time.Now())
	if err != nil {
		return "", err
	}
	err = editKeys(path, true, func(keys []Key) ([]Key, error) {
		if slices.ContainsFunc(keys, func(o Key) bool { return o.Name == name }) {
			return nil, fmt.Errorf("name %q is taken, revoke it first: %w", name, core.ErrConflict)
		}
		return append(keys, k), nil
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// RemoveKey removes a key from a keys file by its name; core.ErrNotFound when there is none. A running server refuses it within a second, and
// everybody when it was the last one.
func RemoveKey(path, name string) error {
	return editKeys(path, false, func(keys []Key) ([]Key, error) {
		left := slices.DeleteFunc(slices.Clone(keys), func(k Key) bool { return k.Name == name })
		if len(left) == len(keys) {
			return nil, fmt.Errorf("no key is named %q: %w", name, core.ErrNotFound)
		}
		return left, nil
	})
}

// lockWait is how long an edit waits for another one.
const lockWait = 5 * time.Second

// editKeys changes a keys file. One edit at a time gets to it.
func editKeys(path string, create bool, change func([]Key) ([]Key, error)) error {
	fail := func(err error) error { return fmt.Errorf("openbrain: change keys %q: %w", path, err) }
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a link stays a link
	}
	unlock, err := lockFile(path + ".lock")
	if err != nil {
		return fail(err)
	}
	defer unlock()
	keys, err := ListKeys(path)
	if err != nil && (!create || !errors.Is(err, fs.ErrNotExist)) {
		return err
	}
	if keys, err = change(keys); err != nil {
		return fail(err)
	}
	if keys == nil {
		keys = []Key{}
	}
	text, err := json.MarshalIndent(keysFile{Keys: keys}, "", "  ")
	if err != nil {
		return fail(err)
	}
	if len(text) >= maxKeysFile {
		return fail(fmt.Errorf("would be larger than %d bytes: %w", maxKeysFile, core.ErrInvalid))
	}
	if err := replaceFile(path, append(text, '\n')); err != nil {
		return fail(err)
	}
	return nil
}

// lockFile waits for the lock on a file that marks an edit. The lock ends with its process, however that ends: a file that was left locks nothing.
func lockFile(path string) (unlock func(), err error) {
	for deadline := time.Now().Add(lockWait); ; {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		err = files.TryLock(f)
		if err == nil && !isAt(f, path) {
			err = files.ErrLocked // by who comes next: the last holder removed it meanwhile
		}
		if err == nil || errors.Is(err, errors.ErrUnsupported) { // then two edits must not be made at once
			return func() { _, _ = os.Remove(path), f.Close() }, nil
		}
		if err := errors.Join(err, f.Close()); !errors.Is(err, files.ErrLocked) {
			return nil, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%q is locked: somebody else is changing the keys: try again later: %w", path, core.ErrConflict)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// isAt reports whether a path names an open file.
func isAt(f *os.File, path string) bool {
	have, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(path)
	return err == nil && os.SameFile(have, now)
}

// replaceFile puts text in place of a file, in one step, durably, readable by the owner alone. Run by root, it leaves the file to the
// owner it had, or else to the folder's: the server may run as another user.
func replaceFile(path string, text []byte) error {
	dir := filepath.Dir(path)
	like, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		like, err = os.Stat(dir)
	}
	if err != nil {
		return err
	}
	f, err := files.Temp(dir, ".keys") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone by then if all went well
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = giveTo(f.Name(), like)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	if d, err := os.Open(dir); err == nil { // not every system syncs folders
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}
