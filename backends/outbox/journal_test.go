package outbox

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/packed"
)

var session = core.SessionID{Agent: "ann", Session: "one"}

// samples is a record of each kind.
func samples() []record {
	return []record{
		{kind: kindHeader, next: 1, delivered: 12, missing: 3},
		{kind: kindTouch, session: session, op: opAppend, at: 1763681630791, changes: []change{{1, "a", 100}, {2, "b", 0}, {9, "c", 1 << 40}}},
		{kind: kindTouch, session: core.SessionID{Agent: "ann"}, op: opDelete, at: 5, changes: []change{{10, "x\x00\xff", 0}}},
		{kind: kindTouch, session: session, op: opUpdate, at: 6, changes: []change{{11, "a", 0}}},
		{kind: kindVoid, session: session, seqs: []uint64{2}},
		{kind: kindDone, session: session, seqs: []uint64{1}, delivered: 1, missing: 1},
		{kind: kindDead, session: session, seqs: []uint64{9}, at: 77, attempts: 5, reason: "invalid"},
		{kind: kindRetry, session: session, seqs: []uint64{9}},
		{kind: kindAlias, session: session, id: "a", remote: "z"},
		{kind: kindCopied, session: core.SessionID{Agent: "ann"}, cursor: "f.1.2"},
		{kind: kindCopied, session: session, done: true},
	}
}

var compare = cmp.AllowUnexported(record{}, change{})

func TestRecordsRoundTrip(t *testing.T) {
	t.Parallel()
	got, err := read(frame(nil, samples()...))
	if err != nil || len(got.damage) > 0 {
		t.Fatalf("read: %+v, %v", got, err)
	}
	if diff := cmp.Diff(samples(), got.records, compare); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// TestBytesStayTheSame: what programs before wrote is what this one writes, so both read it.
func TestBytesStayTheSame(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprintf("%x", sha256.Sum256(frame(nil, samples()...))); got != "783938ce47febd6b26093610f7464ebf7c3d914b86e086276e34d86b8b4eb978" {
		t.Errorf("the samples are written as other bytes, of sum %s", got)
	}
}

// written is a journal of one frame for each sample, and where the frames end.
func written() (b []byte, ends []int) {
	for _, r := range samples() {
		b = frame(b, r)
		ends = append(ends, len(b))
	}
	return b, ends
}

// TestTornAnywhere: wherever a crash cuts a journal off, what is before is kept and nothing is called damage.
func TestTornAnywhere(t *testing.T) {
	t.Parallel()
	b, ends := written()
	for n := range b {
		for _, zeros := range []int{0, 700} {
			torn := append(slices.Clone(b[:n]), make([]byte, zeros)...)
			got, err := read(torn)
			whole := len(slices.DeleteFunc(slices.Clone(ends), func(e int) bool { return e > n }))
			// A frame that ends in zeros may be whole with those that follow.
			if err != nil || len(got.records) < whole || len(got.records) > whole+1 {
				t.Fatalf("cut at %d: %d records, want %d, error %v", n, len(got.records), whole, err)
			}
			if zeros == 0 && len(got.damage) > 0 {
				t.Fatalf("cut at %d: damage at %d", n, got.damage)
			}
		}
	}
}

// TestFlippedAnywhere: every flipped bit is noticed, and every record but the one that it hit is kept.
func TestFlippedAnywhere(t *testing.T) {
	t.Parallel()
	b, ends := written()
	for bit := range len(b) * 8 {
		flipped := bytes.Clone(b)
		flipped[bit/8] ^= 1 << (bit % 8)
		got, err := read(flipped)
		if err != nil {
			t.Fatalf("bit %d: %v", bit, err)
		}
		hit := slices.IndexFunc(ends, func(e int) bool { return bit/8 < e })
		want := slices.Delete(samples(), hit, hit+1)
		if !reflect.DeepEqual(want, got.records) { // thousands of times
			t.Fatalf("bit %d (-want +got):\n%s", bit, cmp.Diff(want, got.records, compare))
		}
		from := 0
		if hit > 0 {
			from = ends[hit-1]
		}
		if !slices.Equal(got.damage, []int{from}) {
			t.Fatalf("bit %d: damage at %v, want %d", bit, got.damage, from)
		}
	}
}

func FuzzJournal(f *testing.F) {
	b, _ := written()
	f.Add(b, 3, byte(1))
	f.Add(b[:len(b)-3], 50, byte(0x80))
	f.Add([]byte{}, 0, byte(0))
	for _, r := range samples() {
		f.Add(r.encode(nil), 0, byte(0))
	}
	var payload []byte
	for _, r := range samples() {
		payload = r.encode(payload)
	}
	f.Add(payload, 0, byte(0))
	f.Add([]byte("not a journal at all"), 2, byte(9))
	f.Add(append(bytes.Clone(b), make([]byte, 64)...), 20, byte(4))
	f.Fuzz(func(t *testing.T, b []byte, at int, flip byte) {
		if _, err := read(b); err != nil && !errors.Is(err, packed.ErrMalformed) && !strings.Contains(err.Error(), "version") {
			t.Errorf("error %v", err)
		}
		// Bytes behind a checksum that matches: few inputs have one.
		if records, err := decodeRecords(b); err == nil {
			// What can be read can be written and read again.
			again, err := read(frame(nil, records...))
			if err != nil || cmp.Diff(records, again.records, compare) != "" {
				t.Errorf("%+v is read again as %+v, %v", records, again.records, err)
			}
			q := newQueue()
			for i := range records {
				q.apply(&records[i])
			}
			rebuilt := newQueue()
			for _, r := range q.records() {
				rebuilt.apply(&r)
			}
			if diff := cmp.Diff(q.records(), rebuilt.records(), compare); diff != "" {
				t.Errorf("the queue is not what its own records say (-want +got):\n%s", diff)
			}
		}
		if len(b) == 0 || flip == 0 || at < 0 {
			return
		}
		// A flipped byte in a good journal costs at most the frame it hits.
		good, ends := written()
		at %= len(good)
		good[at] ^= flip
		got, err := read(good)
		if err != nil || len(got.damage) != 1 || len(got.records) != len(ends)-1 {
			t.Errorf("byte %d: %d records of %d, damage at %v, %v", at, len(got.records), len(ends), got.damage, err)
		}
	})
}

func testJournal(t *testing.T, path string, change func(*Config)) (*journal, []record, error) {
	t.Helper()
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	j, err := newJournal(path, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.close() })
	records, _, err := j.catchUp()
	return j, records, err
}

// TestDamagedFile: the error names file and offset; accepted, the intact records are kept, and the next reading finds nothing wrong.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	b, ends := written()
	b[ends[3]+frameHeader] ^= 8
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := testJournal(t, path, nil)
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), fmt.Sprintf("offset %d:", ends[3])) {
		t.Fatalf("error %v, want ErrDamaged that names %s and offset %d", err, path, ends[3])
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, b) {
		t.Fatalf("a refused journal was changed: %v", err)
	}
	accept := func(c *Config) { c.Recover = RecoverAccept }
	_, got, err := testJournal(t, path, accept)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Delete(samples(), 4, 5), got, compare); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	want := newQueue()
	for i := range got {
		want.apply(&got[i])
	}
	_, got, err = testJournal(t, path, nil)
	if diff := cmp.Diff(want.records(), got, compare); err != nil || diff != "" {
		t.Errorf("repaired: %v (-want +got):\n%s", err, diff)
	}
	if kept, err := os.ReadFile(path + ".damaged"); err != nil || !bytes.Equal(kept, b) {
		t.Errorf("the damaged file is not kept: %v", err)
	}
}

func TestNoJournal(t *testing.T) {
	t.Parallel()
	for name, content := range map[string][]byte{
		"text":     []byte("this is a shopping list, and not a journal of anything"),
		"headless": frame(nil, samples()[1]),
		"newer":    frame(nil, record{kind: 'Z'}),
	} {
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := testJournal(t, path, nil); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want ErrDamaged that names the file", name, err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
			t.Errorf("%s: the file was changed: %v", name, err)
		}
	}
}

// TestTornFileGoesOn: after a torn end is cut off, what is written next can be read.
func TestTornFileGoesOn(t *testing.T) {
	t.Parallel()
	b, ends := written()
	path := filepath.Join(t.TempDir(), "journal")
	// What was cut off is longer than what is written next: nothing of it may stay behind that.
	if err := os.WriteFile(path, b[:ends[1]-1], 0o600); err != nil {
		t.Fatal(err)
	}
	j, got, err := testJournal(t, path, func(c *Config) { c.Durability = DurabilityPower })
	if diff := cmp.Diff(samples()[:1], got, compare); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if err := j.write(samples()[4]); err != nil {
		t.Fatal(err)
	}
	_, got, err = testJournal(t, path, nil)
	if diff := cmp.Diff(append(samples()[:1], samples()[4]), got, compare); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestReplacedFile: a journal that another process wrote anew is read from its front.
func TestReplacedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	one, _, err := testJournal(t, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	two, _, err := testJournal(t, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := one.write(samples()[1]); err != nil {
		t.Fatal(err)
	}
	if got, whole, err := two.catchUp(); err != nil || whole || len(got) != 1 {
		t.Fatalf("catchUp = %+v, %t, %v, want the new record alone", got, whole, err)
	}
	fresh := []record{{kind: kindHeader, next: 40}, samples()[7]}
	if err := one.replace(fresh); err != nil {
		t.Fatal(err)
	}
	if err := one.write(samples()[8]); err != nil {
		t.Fatal(err)
	}
	got, whole, err := two.catchUp()
	if diff := cmp.Diff(append(fresh, samples()[8]), got, compare); err != nil || !whole || diff != "" {
		t.Errorf("catchUp: whole %t, %v (-want +got):\n%s", whole, err, diff)
	}
	if got, _, err := two.catchUp(); err != nil || len(got) != 0 {
		t.Errorf("catchUp again = %+v, %v", got, err)
	}
}
