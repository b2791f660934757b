package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"sync/atomic"
)

// A write-ahead log that was cut off or removed looks like one that was never longer: the file then opens without what was acknowledged last. So the highest
// number that was given, which rises with every append, change and deletion, is also kept outside of file and log, in a file named like the store's with "-mark"
// behind. It is written after each commit, so it is never ahead of the file; it costs a write of a few bytes, and no flush.

const (
	markName = "-mark"
	// markBoot is the size of what names the boot of the machine.
	markBoot = 36
	markSize = identitySize + 8 + markBoot + 4
)

// highMark is the file that holds the mark. The zero value keeps none.
type highMark struct {
	file *os.File
	last atomic.Int64
	boot string
}

// bootID names this boot of the machine: what was not flushed does not outlive it. It is empty where the system does not tell.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if id := strings.TrimSpace(string(b)); err == nil && len(id) == markBoot {
		return id
	}
	return ""
}

// raise writes the mark if the number is higher than the one before.
func (m *highMark) raise(identity []byte, n int64) error {
	if m.file == nil || n <= m.last.Load() {
		return nil
	}
	m.last.Store(n)
	return m.write(identity, n)
}

// close ends keeping the mark. When the whole log is in the file the mark is lowered: there is nothing to be missed, and another copy can be put in its place.
// Processes that go on raise it again.
func (m *highMark) close(identity []byte, whole bool) error {
	if m.file == nil {
		return nil
	}
	var err error
	if whole {
		err = m.write(identity, 0)
	}
	return errors.Join(err, m.file.Close())
}

func (m *highMark) write(identity []byte, n int64) error {
	b := make([]byte, markSize)
	copy(b, identity)
	binary.BigEndian.PutUint64(b[identitySize:], uint64(n))
	copy(b[identitySize+8:], m.boot)
	binary.BigEndian.PutUint32(b[markSize-4:], crc32.ChecksumIEEE(b[:markSize-4]))
	_, err := m.file.WriteAt(b, 0)
	return err
}

// readMark returns the number in a mark that belongs to this file, 0 when there is none, and whether it was written since the machine was started.
func (s *Store) readMark() (n int64, sameBoot bool) {
	b, err := os.ReadFile(s.file + markName)
	if err != nil || len(b) != markSize || binary.BigEndian.Uint32(b[markSize-4:]) != crc32.ChecksumIEEE(b[:markSize-4]) || string(b[:identitySize]) != string(s.identity) {
		return 0, false // none, half of one, or that of a file that was here before
	}
	boot := bootID()
	return int64(binary.BigEndian.Uint64(b[identitySize:])), boot != "" && boot == string(b[identitySize+8:markSize-4])
}

// checkMark compares the file with its mark, and then keeps the mark. The file's identity is known.
func (s *Store) checkMark(ctx context.Context) error {
	marked, sameBoot := s.readMark() // first: another process may be appending
	var highest int64
	if err := s.writer.QueryRowContext(ctx, selectHighest).Scan(&highest); err != nil {
		return err
	}
	if lost := marked - highest; lost > 0 {
		switch {
		case s.cfg.Recover == RecoverAccept:
			s.log.WarnContext(ctx, "what was stored last is gone: it is given up", "file", s.file, "changes", lost)
		case sameBoot || s.cfg.Durability == DurabilityPower:
			return fmt.Errorf("%s: the last %d messages or changes are gone: the write-ahead log beside it was cut off or removed, or an older copy was put in its place: put both back, "+
				`or give up what is gone with recover: "accept": %w`, s.file, lost, ErrDamaged)
		default:
			s.log.WarnContext(ctx, `what was stored last did not outlive a stop of the machine; durability: "power" would have kept it`, "file", s.file, "changes", lost)
		}
	}
	if s.readOnly {
		return nil
	}
	file, err := os.OpenFile(s.file+markName, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		s.log.WarnContext(ctx, "there is no mark beside the store: a log that is removed will not be noticed", "file", s.file, "error", err)
		return nil
	}
	s.high.file, s.high.boot = file, bootID()
	s.high.last.Store(-1) // what was given up is given up
	s.markUpTo(ctx, highest)
	return nil
}

// markUpTo raises the mark after a commit.
func (s *Store) markUpTo(ctx context.Context, n int64) {
	if err := s.high.raise(s.identity, n); err != nil {
		s.log.WarnContext(ctx, "the mark beside the store could not be written", "file", s.file, "error", err)
	}
}
