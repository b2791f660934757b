package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
)

// copies is a store of which a scan may fail, and to which others may write meanwhile.
type copies struct {
	*memory.Store
	scanned error
	// before is called before each append.
	before  func(entries []core.Entry)
	appends int
}

func (s *copies) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if s.appends++; s.before != nil {
		s.before(entries)
	}
	return s.Store.Append(ctx, entries)
}

func (s *copies) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	if s.scanned != nil {
		return core.Page{}, s.scanned
	}
	return s.Store.Scan(ctx, q)
}

func copied(id string, seq int64) core.Entry {
	return core.Entry{ID: id, Key: id, Agent: "a", Session: "s", Seq: seq}
}

// TestCopiesThatShareAPosition: the second of two copies with one position is put behind all that the session holds, so far behind that what is copied after it finds its own
// position free, unless what the session holds is as far already.
func TestCopiesThatShareAPosition(t *testing.T) {
	const far = 1 << 20
	for name, c := range map[string]struct {
		copies []core.Entry
		want   []int64
	}{
		"none shares":            {[]core.Entry{copied("1", 5), copied("2", 6)}, []int64{5, 6}},
		"two, and a third":       {[]core.Entry{copied("1", 5), copied("2", 5), copied("3", 6)}, []int64{5, 6, 6 + far}},
		"two, twice":             {[]core.Entry{copied("1", 5), copied("2", 5), copied("3", 6), copied("4", 6)}, []int64{5, 6, 6 + far, 7 + far}},
		"half as far already":    {[]core.Entry{copied("1", 5), copied("2", far/2+4), copied("3", 5)}, []int64{5, far/2 + 4, far/2 + 5}},
		"not half as far by one": {[]core.Entry{copied("1", 5), copied("2", far/2+3), copied("3", 5)}, []int64{5, far/2 + 3, far/2 + 4 + far}},
	} {
		s := &copies{Store: memory.New()}
		res, err := core.AppendMoved(t.Context(), s, c.copies)
		if err != nil || len(res.IDs) != len(c.copies) || res.Duplicates != 0 {
			t.Fatalf("%s: %+v, error %v", name, res, err)
		}
		var at []int64
		for e, err := range core.All(t.Context(), s, core.Scope{Agent: "a"}, false) {
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, e.Seq)
		}
		if !slices.Equal(at, c.want) {
			t.Errorf("%s: positions %v, want %v", name, at, c.want)
		}
		again, err := core.AppendMoved(t.Context(), s, append(c.copies, copied("new", 5)))
		if err != nil || again.Duplicates != len(c.copies) || !slices.Equal(again.IDs[:len(c.copies)], res.IDs) {
			t.Errorf("%s: copied again: %+v, error %v, want %d that were there", name, again, err, len(c.copies))
		}
	}
}

// TestCopiesThatFail: what fails while a copy is put elsewhere is said beside the conflict, with what was copied before. An id that is another entry's is tried once, and a
// position behind the session's end thirteen times where others are always first.
func TestCopiesThatFail(t *testing.T) {
	s, fault := &copies{Store: memory.New()}, errors.New("away")
	if _, err := core.AppendMoved(t.Context(), s, []core.Entry{copied("1", 5), copied("2", 6)}); err != nil {
		t.Fatal(err)
	}
	s.scanned = fault
	res, err := core.AppendMoved(t.Context(), s, []core.Entry{copied("3", 7), copied("4", 5), copied("5", 8)})
	if !errors.Is(err, fault) || !errors.Is(err, core.ErrConflict) || !slices.Equal(res.IDs, []string{"3"}) {
		t.Errorf("%+v, error %v, want the first one, the conflict and what failed", res, err)
	}
	s.scanned, s.appends = nil, 0
	other := copied("1", 200)
	other.Key = "other"
	if _, err := core.AppendMoved(t.Context(), s, []core.Entry{other}); !errors.Is(err, core.ErrConflict) || s.appends != 2 {
		t.Errorf("error %v after %d appends, want the conflict after that of all and that of one", err, s.appends)
	}
	s.appends = 0
	s.before = func(entries []core.Entry) {
		before := entries[0]
		before.ID, before.Key = fmt.Sprint("theirs", s.appends), fmt.Sprint("theirs", s.appends)
		if _, err := s.Store.Append(t.Context(), []core.Entry{before}); err != nil && s.appends > 2 {
			t.Fatal(err)
		}
	}
	if _, err := core.AppendMoved(t.Context(), s, []core.Entry{copied("6", 5)}); !errors.Is(err, core.ErrConflict) || s.appends != 1+1+12 {
		t.Errorf("error %v after %d appends, want the conflict after that of all, that of one and 12 more", err, s.appends)
	}
}
