package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// The layout of a write-ahead log; see https://www.sqlite.org/fileformat2.html#walformat.
const (
	walHeaderSize = 32
	frameHeader   = 24
	walMagic      = 0x377f0682
)

// logLooks is how often a log is read again before it counts as damaged: another process may be writing it.
const logLooks = 3

// checkLog finds damage in the write-ahead log that SQLite passes over in silence. It reads a log up to the first frame that
// does not match its checksum and takes that for the place where a crash cut it off. But a crash leaves no intact
// commit behind that place; where there is one, acknowledged entries would disappear.
func (s *Store) checkLog(ctx context.Context) error {
	name := s.file + "-wal"
	if err := s.checkAlone(ctx, name); err != nil {
		return err
	}
	for look := 0; ; look++ {
		lost, err := lostCommits(name)
		if err != nil {
			return fmt.Errorf("read the write-ahead log: %w", err)
		}
		if lost == 0 {
			return nil
		}
		if look+1 < logLooks {
			pause := time.NewTimer(20 * time.Millisecond)
			select {
			case <-pause.C:
				continue
			case <-ctx.Done():
				pause.Stop()
				return ctx.Err()
			}
		}
		if s.cfg.Recover == RecoverAccept {
			s.log.WarnContext(ctx, "damaged write-ahead log: the commits behind the damage are lost", "file", name, "commits", lost)
			return nil
		}
		return fmt.Errorf("%s: at least %d commits stand behind a damaged part and would be lost: restore the file from a copy, "+
			`or give them up with recover: "accept": %w`, name, lost, ErrDamaged)
	}
}

// checkAlone finds a log whose file is gone, or empty: SQLite would throw away what it holds. Whoever makes a store writes to the file first.
func (s *Store) checkAlone(ctx context.Context, name string) error {
	log, err := os.Stat(name) // before the file
	if err != nil || log.Size() <= walHeaderSize {
		return nil //nolint:nilerr // there is none
	}
	file, err := os.Stat(s.file)
	if err != nil || file.Size() > 0 {
		return err
	}
	if s.cfg.Recover == RecoverAccept {
		s.log.WarnContext(ctx, "the write-ahead log of a file that is gone is given up", "file", name, "bytes", log.Size())
		return nil
	}
	return fmt.Errorf("%s is gone or empty, and its write-ahead log, of %d bytes, is there: put the file back; or give up what the log holds, and remove it, or open the store with recover: \"accept\": %w",
		s.file, log.Size(), ErrDamaged)
}

// lostCommits counts the intact commits behind the first damaged frame of a log.
func lostCommits(name string) (int, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	head := make([]byte, walHeaderSize)
	if _, err := io.ReadFull(f, head); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, nil
		}
		return 0, err
	}
	magic, size := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[8:])
	if magic&^1 != walMagic || size < 512 || size > 65536 || size&(size-1) != 0 {
		// A header is written before anything is committed under it, so a damaged one may hide commits: their frames carry
		// their own checksums, but nothing to begin with.
		info, err := f.Stat()
		if err != nil || info.Size() < walHeaderSize+frameHeader+512 || allZero(head) {
			return 0, err
		}
		return 1, nil
	}
	sum := walSum{order: orderOf(head)}
	sum.add(head[:24])
	salt, broken := head[16:24], !sum.is(head[24:])
	if broken {
		salt = nil // it may be what is damaged
	}
	return countLost(f, salt, int(size), sum, broken)
}

// countLost reads the frames. Each holds the checksum of all before it, so a frame behind a damaged one can be verified
// with what the one in front of it says. The salt tells apart frames of an older log that was written over; nil is any.
func countLost(f io.Reader, salt []byte, size int, sum walSum, broken bool) (int, error) {
	frame := make([]byte, frameHeader+size)
	lost := 0
	for {
		if _, err := io.ReadFull(f, frame); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return lost, nil
			}
			return lost, err
		}
		sum.add(frame[:8])
		sum.add(frame[frameHeader:])
		intact := (salt == nil || bytes.Equal(frame[8:16], salt)) && sum.is(frame[16:24])
		commit := binary.BigEndian.Uint32(frame[4:8]) != 0
		switch {
		case !intact:
			broken = true
			sum.set(frame[16:24])
		case broken && commit:
			lost++
		}
	}
}

// logHolds reports whether commits in the log hold every page of the file from one number to another, of so many bytes each, and are not all in the file: from then
// on nobody looks into the log.
func (s *Store) logHolds(page, from, to int64) bool {
	if copied, err := s.logCopied(); copied || err != nil {
		return false
	}
	f, err := os.Open(s.file + "-wal")
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, walHeaderSize)
	if _, err := io.ReadFull(f, head); err != nil || binary.BigEndian.Uint32(head)&^1 != walMagic || int64(binary.BigEndian.Uint32(head[8:])) != page {
		return false
	}
	sum := walSum{order: orderOf(head)}
	if sum.add(head[:24]); !sum.is(head[24:]) {
		return false
	}
	held, pending := map[int64]bool{}, []int64{}
	for frame, log := make([]byte, frameHeader+page), bufio.NewReaderSize(f, 1<<20); ; {
		if _, err := io.ReadFull(log, frame); err != nil || !bytes.Equal(frame[8:16], head[16:24]) {
			break
		}
		sum.add(frame[:8])
		if sum.add(frame[frameHeader:]); !sum.is(frame[16:24]) {
			break
		}
		pending = append(pending, int64(binary.BigEndian.Uint32(frame)))
		if binary.BigEndian.Uint32(frame[4:8]) == 0 {
			continue // the commit comes later
		}
		for _, n := range pending {
			held[n] = true
		}
		pending = pending[:0]
	}
	for n := from; n <= to; n++ {
		if !held[n] {
			return false
		}
	}
	return true
}

// logCopied reports whether all of the log is in the file, by the index that the processes share.
func (s *Store) logCopied() (bool, error) {
	head, err := s.indexHead()
	return err == nil && binary.NativeEndian.Uint32(head[indexCopied:]) >= binary.NativeEndian.Uint32(head[indexFrames:]), err
}

// Where the numbers of frames in the log, and of those that are in the file, stand in the index;
// see https://www.sqlite.org/walformat.html#the_wal_index_file_format.
const indexFrames, indexCopied = 16, 96

// indexHead is the beginning of the index that the processes share: every commit changes it, and every part of the log that is copied into the file. What
// follows says who reads.
func (s *Store) indexHead() (head [indexCopied + 4]byte, err error) {
	err = s.handles.with(s.file+"-shm", os.O_RDONLY, func(f *os.File) error {
		_, err := f.ReadAt(head[:], 0)
		return err
	})
	return head, err
}

// orderOf is the order of the bytes that a log's checksums are made of.
func orderOf(head []byte) binary.ByteOrder {
	if binary.BigEndian.Uint32(head)&1 != 0 {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// walSum is the checksum of a log.
type walSum struct {
	order  binary.ByteOrder
	s0, s1 uint32
}

func (w *walSum) add(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		w.s0 += w.order.Uint32(b) + w.s1
		w.s1 += w.order.Uint32(b[4:]) + w.s0
	}
}

func (w *walSum) is(b []byte) bool {
	return w.s0 == binary.BigEndian.Uint32(b) && w.s1 == binary.BigEndian.Uint32(b[4:])
}

func (w *walSum) set(b []byte) {
	w.s0, w.s1 = binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
}
