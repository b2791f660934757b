package places_test

import (
	"maps"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/internal/places"
)

// TestCount: erased places and those that were passed over count, what comes behind them does not, and sessions that were not read are named.
func TestCount(t *testing.T) {
	a, b := core.SessionID{Agent: "x", Session: "a"}, core.SessionID{Agent: "x", Session: "b"}
	s := places.Set{}
	s.Begin(a)
	s.See(a, 2, false) // 0 and 1 are gone
	s.See(a, 3, true)
	s.See(a, 4, false)
	s.End(a, 6) // 5 is gone
	all := []core.Span{{Session: &a, From: 0, To: 100}}
	for _, c := range []struct {
		from, to int64
		want     int
	}{{0, 2, 2}, {1, 3, 1}, {2, 3, 0}, {3, 4, 1}, {3, 6, 2}, {6, 100, 0}, {0, 100, 4}} {
		if n := s.Count([]core.Span{{Session: &a, From: c.from, To: c.to}}); n != c.want {
			t.Errorf("%d to %d: %d, want %d", c.from, c.to, n, c.want)
		}
	}
	s.Resume(a, 10) // this process wrote 6 to 9
	s.See(a, 12, false)
	s.Add(a, 13)
	was := s.Clone()
	s.Add(a, 20)
	if n := was.Count(all); n != 4+2+1 {
		t.Errorf("%d, want 7: 10 and 11 were passed over, and 13 is empty", n)
	}
	of := []core.Span{{Session: &b, From: 5, To: 7}, {Session: &b, From: 1, To: 3}}
	if n, unknown := s.Count(append(of, all...)), s.Unknown(append(of, all...)); n != 8 || !maps.Equal(unknown, map[core.SessionID]int64{b: 7}) {
		t.Errorf("%d, unknown %v, want 8 and %v up to 7", n, unknown, b)
	}
	s.Resume(b, 4)
	s.See(b, 9, true)
	s.Add(b, 10)
	if len(s.Unknown(of)) == 0 {
		t.Error("a session that was read from its midst on is known")
	}
	var none places.Set
	none.Resume(a, 1)
	none.See(a, 1, true)
	none.End(a, 3)
	none.Add(a, 4)
	if n := none.Count(all); n != 0 || len(none.Unknown(all)) != 1 || len(none.Clone()) > 0 {
		t.Errorf("a nil set knows %d", n)
	}
}

// TestChanged: two looks at a session are the same when they found the same places empty, however far it was read, and whatever else was known.
func TestChanged(t *testing.T) {
	a, b := core.SessionID{Agent: "x", Session: "a"}, core.SessionID{Agent: "x", Session: "b"}
	look := func(id core.SessionID, empty ...bool) places.Set {
		s := places.Set{}
		s.Begin(id)
		for seq, e := range empty {
			s.See(id, int64(seq), e)
		}
		return s
	}
	before := look(a, false, true, true)
	for name, c := range map[string]struct {
		now     places.Set
		changed bool
	}{
		"the same":               {look(a, false, true, true), false},
		"more, not empty":        {look(a, false, true, true, false), false},
		"one more":               {look(a, true, true, true), true},
		"as many others":         {look(a, true, false, true), true},
		"fewer":                  {look(a, false, true), true},
		"of another session":     {look(b, false, true, true), true},
		"another session, whole": {look(b, false), false},
		"nothing":                {places.Set{}, false},
	} {
		if c.now.Changed(before) != c.changed {
			t.Errorf("%s: changed is %t", name, !c.changed)
		}
	}
	if !before.Changed(nil) || look(a, false).Changed(nil) {
		t.Error("what is found first is no change, or nothing is one")
	}
}
