package engine

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/drawn"
)

func TestOwnership(t *testing.T) {
	for _, tc := range []struct {
		name    string
		n       int
		entries []string // of the messages behind the rules
		of      []int
		first   []int
		members [][]int
	}{
		{"nothing", 0, nil, []int{}, []int{}, nil},
		{"as it was", 3, []string{"0", "1", "2"}, []int{0, 1, 2}, []int{0, 1, 2}, [][]int{{0}, {1}, {2}}},
		{"merged", 4, []string{"0", "1,2", "3"}, []int{0, 1, 1, 2}, []int{0, 1, 3}, [][]int{{0}, {1, 2}, {3}}},
		{"made by a rule", 2, []string{"0", "", "1"}, []int{0, 2}, []int{0, -1, 1}, [][]int{{0}, {}, {1}}},
		{"moved", 3, []string{"0", "2", "1"}, []int{0, 2, 1}, []int{0, 2, 1}, [][]int{{0}, {2}, {1}}},
		{"what is dropped follows what stood before", 4, []string{"0", "3"}, []int{0, 0, 0, 1}, []int{0, 3}, [][]int{{0, 1, 2}, {3}}},
		{"the first ones dropped", 3, []string{"2"}, []int{-1, -1, 0}, []int{2}, [][]int{{2}}},
		{"all dropped", 2, nil, []int{-1, -1}, []int{}, nil},
		{"merged out of order", 3, []string{"2,0", "1"}, []int{0, 1, 0}, []int{2, 1}, [][]int{{0, 2}, {1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var o ownership
			for range 2 { // the second time in used room
				checkOwnership(t, &o, tc.n, tc.entries, tc.of, tc.first, tc.members)
			}
		})
	}
}

// TestOwnershipIsReadAnew: whatever was read before, the numbers are those of the messages at hand.
func TestOwnershipIsReadAnew(t *testing.T) {
	r := drawn.Rand(t)
	var used ownership
	for range 2000 {
		n := r.IntN(12)
		var entries []string
		for k := range n {
			switch r.IntN(6) {
			case 0: // dropped
			case 1:
				entries = append(entries, "")
				fallthrough
			default:
				number := strconv.Itoa(k)
				if last := len(entries) - 1; last >= 0 && entries[last] != "" && r.IntN(4) == 0 {
					entries[last] += "," + number
				} else {
					entries = append(entries, number)
				}
			}
		}
		var fresh ownership
		fresh.read(messagesOf(entries), numbersTo(n))
		var members [][]int
		for i := range entries {
			members = append(members, fresh.members(i))
		}
		checkOwnership(t, &used, n, entries, fresh.of, fresh.first, members)
	}
}

func checkOwnership(t *testing.T, o *ownership, n int, entries []string, of, first []int, members [][]int) {
	t.Helper()
	o.read(messagesOf(entries), numbersTo(n))
	if diff := cmp.Diff(of, o.of); diff != "" {
		t.Errorf("%q of %d: messages of the numbers (-want +got):\n%s", entries, n, diff)
	}
	if diff := cmp.Diff(first, o.first); diff != "" {
		t.Errorf("%q of %d: first numbers (-want +got):\n%s", entries, n, diff)
	}
	for i := range entries {
		if diff := cmp.Diff(members[i], o.members(i)); diff != "" {
			t.Errorf("%q of %d: members of message %d (-want +got):\n%s", entries, n, i, diff)
		}
	}
}

func messagesOf(entries []string) []message.Message {
	out := make([]message.Message, len(entries))
	for i, e := range entries {
		out[i].Entry = strings.Clone(e)
	}
	return out
}

func numbersTo(n int) []string { return new(workspace).numbers(n) }

// TestWorkspaceLetsGo: what a larger window left behind does not stay.
func TestWorkspaceLetsGo(t *testing.T) {
	one, two := 1, 2
	before := []*int{&one, &two, &one}
	now := append(before[:0], &two)
	if got := kept(now, before); len(got) != 1 || got[0] != &two {
		t.Errorf("kept %v, want what is there now", got)
	}
	if before[1] != nil || before[2] != nil {
		t.Errorf("behind what is kept stands %v, want nothing", before[1:])
	}
}
