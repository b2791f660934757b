package report

import (
	"strconv"

	"github.com/contextengine/contextengine/core"
)

// TurnCompare shows what the model sees of the same turn under two arms.
type TurnCompare struct {
	Title, Caption string
	A, B           Side
	// Rows are in the order of the prompts.
	Rows []CompareRow
}

// Side is one arm's prompt as a whole.
type Side struct {
	Arm            string
	Budget, Tokens int
}

// Difference says how the two sides of a row differ.
type Difference int

// The differences.
const (
	Same    Difference = iota
	OnlyA              // the other arm does not show it
	OnlyB              // the other arm does not show it
	Changed            // both show it: elsewhere, shortened, or with another text
)

// CompareRow is one piece under both arms.
type CompareRow struct {
	Difference Difference
	// A and B are what the arms show. For a piece that an arm leaves out its side has the reason, if the arm gave one, and no text.
	A, B *Piece
	// What names what changed: "place", "length", "text".
	What []string
}

// Turn is one arm's answer for a turn.
type Turn struct {
	Arm    string
	Budget int
	Result core.AssembleResult
	// IDs holds the entry ids of the session's messages in their order. With it the arms' entries are matched by position: stores give ids of
	// their own. Nil matches by id.
	IDs []string
	// Lookup finds messages by the arm's ids; it may be nil.
	Lookup Lookup
}

// maxCompared bounds the pieces of each side.
const maxCompared = 1500

// CompareTurns matches what two arms show. Entries are matched by their place in the session or their id; what an engine made itself is
// matched by its text.
func CompareTurns(title string, a, b Turn) TurnCompare {
	ka, kb := a.pieces(), b.pieces()
	t := TurnCompare{
		Title: title,
		A:     Side{Arm: a.Arm, Budget: a.Budget, Tokens: a.Result.EstimatedTokens},
		B:     Side{Arm: b.Arm, Budget: b.Budget, Tokens: b.Result.EstimatedTokens},
	}
	t.Rows = align(ka, kb)
	return t
}

// keyed is the pieces of one side with the keys that match them.
type keyed struct {
	keys   []string
	pieces []Piece
	// out finds by its key why a piece is out.
	out map[string]Piece
	at  map[string]int
}

func (t Turn) pieces() keyed {
	place := make(map[string]int, len(t.IDs))
	for i, id := range t.IDs {
		place[visible(id)] = i
	}
	key := func(p Piece) string {
		if i, ok := place[p.Entry]; ok && p.Entry != "" {
			return "#" + strconv.Itoa(i)
		}
		if p.Entry != "" {
			return "=" + p.Entry
		}
		return string(p.Reason) + "\x00" + p.Text
	}
	c := WindowFrom(0, 0, t.Budget, t.Result, t.Lookup)
	k := keyed{out: map[string]Piece{}, at: map[string]int{}}
	for _, p := range c.In {
		id := key(p)
		if p.Reason == reasonBlock { // one block faces the other, whatever they hold
			id = string(p.Reason)
		}
		if _, twice := k.at[id]; twice {
			continue
		}
		k.at[id] = len(k.keys)
		k.keys, k.pieces = append(k.keys, id), append(k.pieces, p)
	}
	for _, p := range c.Out {
		if p.Entry != "" {
			k.out[key(p)] = Piece{Reason: p.Reason, Count: 1}
		}
	}
	return k
}

// align lists the pieces of both sides in an order that keeps each side's own as far as one list can.
func align(a, b keyed) []CompareRow {
	partner := common(a, b)
	var rows []CompareRow
	next := 0
	onlyB := func(until int) {
		for ; next < until; next++ {
			if _, both := a.at[b.keys[next]]; !both {
				rows = append(rows, CompareRow{Difference: OnlyB, A: a.why(b.keys[next]), B: &b.pieces[next]})
			}
		}
	}
	for i, key := range a.keys {
		j, both := b.at[key]
		if !both {
			rows = append(rows, CompareRow{Difference: OnlyA, A: &a.pieces[i], B: b.why(key)})
			continue
		}
		inOrder := partner[i] == j
		if inOrder {
			onlyB(j)
			next = max(next, j+1)
		}
		row := CompareRow{A: &a.pieces[i], B: &b.pieces[j]}
		row.What = row.changes(!inOrder)
		if len(row.What) > 0 {
			row.Difference = Changed
		}
		rows = append(rows, row)
	}
	onlyB(len(b.keys))
	return rows
}

func (k keyed) why(key string) *Piece {
	if p, ok := k.out[key]; ok {
		return &p
	}
	return nil
}

// changes names what differs between two views of the same entry.
func (r CompareRow) changes(moved bool) []string {
	var out []string
	if moved || r.A.Reason != r.B.Reason {
		out = append(out, "place")
	}
	if r.A.Stub != r.B.Stub {
		out = append(out, "length")
	}
	if r.A.Text != "" && r.B.Text != "" && r.A.Text != r.B.Text {
		out = append(out, "text")
	}
	return out
}

// common finds a longest list of pieces that both sides show in the same order: for each piece of a its partner in b, or -1.
func common(a, b keyed) []int {
	partner := make([]int, len(a.keys))
	for i := range partner {
		partner[i] = -1
	}
	n, m := min(len(a.keys), maxCompared), min(len(b.keys), maxCompared)
	length := make([][]int16, n+1)
	for i := range length {
		length[i] = make([]int16, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if a.keys[i] == b.keys[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case a.keys[i] == b.keys[j]:
			partner[i] = j
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return partner
}
