package report

import (
	"unicode/utf8"
)

// compareView is a comparison as the template shows it. Runs of equal rows are folded.
type compareView struct {
	A, B   sideView
	Counts []countView
	Blocks []blockView
}

type sideView struct {
	Arm          string
	Tokens, Free string
}

type countView struct{ Class, Name, Pieces, Tokens string }

// blockView is a run of rows; Fold is set for rows that are the same.
type blockView struct {
	Fold   bool
	Count  int
	Tokens string
	Rows   []rowView
}

type rowView struct {
	Class, Name string
	What        []string
	A, B        *pieceView
	// NoteA and NoteB say why a side has nothing.
	NoteA, NoteB string
	// Plain says that no arm gave a reason: a narrow page then leaves the empty side out.
	Plain bool
}

type pieceView struct {
	Entry, Role, Reason, Stub, Source string
	Group                             int
	Tokens                            string
	// Head, Diff and Tail are the excerpt; Diff is what the other side does not have.
	Head, Diff, Tail string
}

func (t TurnCompare) prepare(p *page) (view, error) {
	rows := t.Rows
	if len(rows) > 2*maxCompared {
		p.omit("Comparison %q shows the first %d of %d pieces.", t.Title, 2*maxCompared, len(rows))
		rows = rows[:2*maxCompared]
	}
	cv := &compareView{A: sideOf(t.A), B: sideOf(t.B)}
	var count, cost [4]int
	for _, r := range rows {
		rv := r.view(p)
		tokens := r.tokens()
		d := min(max(int(r.Difference), 0), 3)
		count[d]++
		cost[d] += tokens
		fold := r.Difference == Same
		if n := len(cv.Blocks); n == 0 || cv.Blocks[n-1].Fold != fold {
			cv.Blocks = append(cv.Blocks, blockView{Fold: fold})
		}
		b := &cv.Blocks[len(cv.Blocks)-1]
		b.Rows = append(b.Rows, rv)
		b.Count += tokens
		b.Tokens = formatNumber(float64(b.Count), 0)
	}
	for _, d := range []Difference{OnlyA, OnlyB, Changed, Same} {
		class, name := d.names(t)
		cv.Counts = append(cv.Counts, countView{class, name, formatNumber(float64(count[d]), 0), formatNumber(float64(cost[d]), 0)})
	}
	return view{Kind: "compare", Title: t.Title, Caption: t.Caption, Compare: cv}, nil
}

func (d Difference) names(t TurnCompare) (class, name string) {
	switch d {
	case OnlyA:
		return "only-a", "only in " + clipLine(t.A.Arm, 60)
	case OnlyB:
		return "only-b", "only in " + clipLine(t.B.Arm, 60)
	case Changed:
		return "changed", "in both, shown differently"
	}
	return "same", "the same in both"
}

func sideOf(s Side) sideView {
	v := sideView{Arm: clipLine(s.Arm, 80), Tokens: formatNumber(float64(s.Tokens), 0)}
	if s.Budget > 0 {
		v.Free = formatNumber(float64(s.Budget), 0)
	}
	return v
}

// tokens is what a row costs, the dearer side's.
func (r CompareRow) tokens() int {
	n := 0
	if r.A != nil {
		n = r.A.Tokens
	}
	if r.B != nil {
		n = max(n, r.B.Tokens)
	}
	return n
}

func (r CompareRow) view(p *page) rowView {
	v := rowView{}
	switch r.Difference {
	case OnlyA:
		v.Class, v.Name = "only-a", "only in A"
		v.A, v.NoteB = r.A.view(p, ""), note(r.B)
		v.Plain = r.B == nil
	case OnlyB:
		v.Class, v.Name = "only-b", "only in B"
		v.B, v.NoteA = r.B.view(p, ""), note(r.A)
		v.Plain = r.A == nil
	case Changed:
		v.Class, v.Name, v.What = "changed", "differs", r.What
		if r.A != nil && r.B != nil {
			v.A, v.B = r.A.view(p, r.B.Text), r.B.view(p, r.A.Text)
		}
	default:
		v.Class, v.Name = "same", "same"
		v.A = r.A.view(p, "")
	}
	return v
}

func note(p *Piece) string {
	if p == nil {
		return "not in this prompt"
	}
	return reasonWords(p.Reason)
}

// view shows a piece; against other, when there is one, it marks what that text does not have.
func (p *Piece) view(pg *page, other string) *pieceView {
	if p == nil {
		return nil
	}
	v := &pieceView{
		Entry: clipLine(p.Entry, 80), Role: clipLine(string(p.Role), 20), Reason: reasonWords(p.Reason), Stub: stubWords(p.Stub),
		Source: clipLine(p.Source, 60), Group: reasonGroup(p.Reason),
	}
	if p.Tokens > 0 {
		v.Tokens = formatNumber(float64(p.Tokens), 0)
	}
	text := pg.text(clipLine(p.Text, maxShown))
	if other == "" || text == "" {
		v.Head = text
		return v
	}
	v.Head, v.Diff, v.Tail = differing(text, clipLine(other, maxShown))
	return v
}

// differing splits s into what it begins and ends with as o does, and what lies between.
func differing(s, o string) (head, diff, tail string) {
	i := 0
	for i < len(s) && i < len(o) && s[i] == o[i] {
		i++
	}
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	j := 0
	for j < len(s)-i && j < len(o)-i && s[len(s)-1-j] == o[len(o)-1-j] {
		j++
	}
	for j > 0 && !utf8.RuneStart(s[len(s)-j]) {
		j--
	}
	return s[:i], s[i : len(s)-j], s[len(s)-j:]
}
