package outbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/files"
)

// journal is the file behind a queue. All of its methods need the lock between processes, except grown. A nil journal is one of a volatile
// queue: it keeps nothing.
type journal struct {
	path   string
	flush  bool // before each change of the local store
	accept bool // damage
	log    *slog.Logger
	lock   fileLock
	lease  fileLock

	f *os.File
	// offset is the end of what the queue knows of the file.
	offset int64
	// patience is the size below which the file is not written anew, after that failed.
	patience int64
}

func newJournal(path string, cfg Config, log *slog.Logger) (*journal, error) {
	j := &journal{
		path: path, flush: cfg.Durability == DurabilityPower, accept: cfg.Recover == RecoverAccept, log: log,
		lock: fileLock{path: path + ".lock"}, lease: fileLock{path: path + ".lease"},
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of the journal: %w", err)
	}
	if err := errors.Join(j.lock.open(), j.lease.open()); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the journal's locks: %w", err), j.close())
	}
	return j, nil
}

// close gives up locks and lease.
func (j *journal) close() error {
	err := errors.Join(j.lease.close(), j.lock.close())
	if j.f != nil {
		err = errors.Join(err, j.f.Close())
		j.f = nil
	}
	return err
}

// grown reports whether somebody else may have written to the file.
func (j *journal) grown() bool {
	info, err := os.Stat(j.path)
	return err != nil || info.Size() != j.offset || j.replaced(info)
}

// replaced reports whether another file is at the path than the one that is open.
func (j *journal) replaced(now os.FileInfo) bool {
	if j.f == nil {
		return true
	}
	have, err := j.f.Stat()
	return err != nil || !os.SameFile(have, now)
}

// catchUp reads what is new in the file and returns it. whole says that it is all of the file: what was known before is void.
func (j *journal) catchUp() (records []record, whole bool, err error) {
	info, err := os.Stat(j.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	if err != nil || j.replaced(info) || info.Size() < j.offset {
		if err := j.reopen(); err != nil {
			return nil, false, err
		}
		whole = true
	} else if info.Size() == j.offset {
		return nil, false, nil
	}
	tail, err := io.ReadAll(io.NewSectionReader(j.f, j.offset, 1<<62))
	if err != nil {
		return nil, false, err
	}
	got, err := read(tail)
	if err != nil {
		return nil, false, fmt.Errorf("%s: from offset %d: %w: %w", j.path, j.offset, err, ErrDamaged)
	}
	if len(got.damage) > 0 {
		if !j.accept {
			return nil, false, damaged(j.path, got.damage, j.offset)
		}
		j.log.Warn("damaged outbox journal: its intact records are kept", "file", j.path, "offset", j.offset+int64(got.damage[0]),
			"places", len(got.damage))
		return got.records, whole, j.repair(tail)
	}
	if cut := len(tail) - got.end; cut > 0 {
		j.log.Warn("the end of the outbox journal was cut off by a crash", "file", j.path, "offset", j.offset+int64(got.end), "bytes", cut)
		if err := j.f.Truncate(j.offset + int64(got.end)); err != nil {
			return nil, false, err
		}
	}
	if j.offset == 0 && got.end > 0 && got.records[0].kind != kindHeader {
		return nil, false, fmt.Errorf("%s: %w: %w", j.path, errNoHeader, ErrDamaged)
	}
	j.offset += int64(got.end)
	if j.offset == 0 {
		if err := j.write(record{kind: kindHeader, next: 1}); err != nil {
			return nil, false, err
		}
		got.records = []record{{kind: kindHeader, next: 1}}
		if j.flush {
			return got.records, whole, files.SyncDir(filepath.Dir(j.path))
		}
	}
	return got.records, whole, nil
}

// reopen opens the file at the path, a new one if there is none, and begins at its front.
func (j *journal) reopen() error {
	if j.f != nil {
		_ = j.f.Close() // nothing that was written through it is missing: each write was looked at
		j.f = nil
	}
	f, err := os.OpenFile(j.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("cannot open the journal: %w", err)
	}
	j.f, j.offset = f, 0
	return nil
}

// repair writes the intact frames of a damaged file into a new one, and keeps the old one beside it: there are ids in it and no content.
func (j *journal) repair(tail []byte) error {
	head := make([]byte, j.offset)
	if _, err := j.f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	all, err := read(append(head, tail...))
	if err != nil {
		return err
	}
	q := newQueue()
	q.next = 1
	for i := range all.records {
		q.apply(&all.records[i])
	}
	if err := copyFile(j.path, j.path+".damaged"); err != nil {
		return err
	}
	return j.replace(q.records())
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

// write appends records as one frame: after a crash all of them are there or none.
func (j *journal) write(records ...record) error {
	if j == nil {
		return nil
	}
	b := frame(nil, records...)
	if len(b) > maxFrame {
		return fmt.Errorf("%s: a record of %d bytes: split the call: %w", j.path, len(b), core.ErrInvalid)
	}
	_, err := j.f.WriteAt(b, j.offset)
	if err == nil && j.flush {
		err = j.f.Sync()
	}
	if err != nil {
		// What was written of it must not stand in the way of the next one.
		return fmt.Errorf("%s: %w: %w", j.path, errors.Join(err, j.f.Truncate(j.offset)), core.ErrUnavailable)
	}
	j.offset += int64(len(b))
	return nil
}

// replace puts a new file with these records in place of the old one.
func (j *journal) replace(records []record) error {
	j.patience = 2 * j.offset
	var b []byte
	// A frame each for some thousand records: one for all might become too large.
	const some = 4096
	for len(records) > 0 {
		n := min(some, len(records))
		b = frame(b, records[:n]...)
		records = records[n:]
	}
	f, err := files.Temp(filepath.Dir(j.path), ".outbox")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone by then if all went well
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	// An open file cannot be replaced everywhere.
	if j.f != nil {
		_ = j.f.Close()
		j.f = nil
	}
	if err := os.Rename(f.Name(), j.path); err != nil {
		return err
	}
	if err := files.SyncDir(filepath.Dir(j.path)); err != nil {
		return err
	}
	if j.f, err = os.OpenFile(j.path, os.O_RDWR, 0o600); err != nil {
		return err
	}
	j.offset, j.patience = int64(len(b)), 0
	return nil
}

// The journal is written anew when it is that large and holds mostly what is done.
const (
	compactAt    = 256 << 10
	compactEmpty = 16 << 10
	// recordBytes is about what a change takes.
	recordBytes = 64
)

// crowded reports whether the file should be written anew for a queue.
func (j *journal) crowded(q *queue) bool {
	if j == nil || j.offset < j.patience {
		return false
	}
	live := int64(q.size()+len(q.aliases)+len(q.copied)) * recordBytes
	return j.offset > compactAt && j.offset > 4*live || live == 0 && j.offset > compactEmpty
}
