package edit_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
)

// A view changes by edits alone.
func Example() {
	id := core.SessionID{Agent: "main", Session: "work"}
	v := core.View{Session: id}
	for seq := range int64(5) {
		v.Apply(edit.Extend{Session: id, Seq: seq}, edit.Count{Next: seq + 1})
	}
	v.Apply(edit.Leave{Start: 2, Entries: []string{"e0", "e1"}, Tokens: 40}, edit.Anew{})
	fmt.Println(v.Len(), v.Front().Left, v.Epoch)
	v.Apply(edit.Cut{To: 1})
	fmt.Println(v.Len(), v.Start, v.Epoch)
	// Output:
	// 5 2 1
	// 1 -1 2
}

// TestInsertKeepsWhatWasDecided: an entry that comes in front of the window moves everything behind it, and what was decided about that stays decided.
func TestInsertKeepsWhatWasDecided(t *testing.T) {
	id := core.SessionID{Agent: "main", Session: "s"}
	for name, c := range map[string]struct{ at, seen, start int }{
		"in front of the window":         {3, 9, 6},
		"right in front of its first":    {5, 9, 6},
		"in the window, which is a step": {7, 7, 5},
	} {
		v := core.View{Session: id, Path: []core.Span{{From: 0, To: 9}}, Next: 9, Start: 5, Frontier: 2, Seen: 8}
		v.Apply(edit.Insert{At: c.at, Session: id, Seq: 9})
		if v.Seen != c.seen || v.Start != c.start || v.Len() != 10 {
			t.Errorf("%s: decided up to %d of %d, and the window begins at %d, want %d of 10 and %d", name, v.Seen, v.Len(), v.Start, c.seen, c.start)
		}
	}
	v := core.View{Session: id, Path: []core.Span{{From: 0, To: 9}}, Next: 9, Start: -1, Frontier: 4, Summaries: []core.Summary{{Covers: 4}}}
	v.Apply(edit.Insert{At: 2, Session: id, Seq: 9})
	if v.Start != -1 || v.Frontier != 5 || v.Summaries[0].Covers != 4 || v.Summaries[0].Late != 1 || v.Floor() != 0 {
		t.Errorf("where the window is sought, it begins at %d behind %+v of %d", v.Start, v.Summaries, v.Frontier)
	}
}

// TestInsertOfALeader: a leading system message that comes moves all behind it, and what was decided, left or summarised is so still; no summary stands for it.
func TestInsertOfALeader(t *testing.T) {
	id := core.SessionID{Agent: "main", Session: "s"}
	for name, c := range map[string]struct{ lead, start, frontier, covers int }{
		"in front of all":          {0, 0, 0, 0},
		"behind another one":       {1, 0, 0, 0},
		"in front of a window":     {1, 4, 0, 0},
		"in front of a summary":    {1, 4, 3, 2},
		"in front of what is gone": {0, 3, 3, 0},
		"where a window is sought": {1, -1, 3, 2},
	} {
		v := core.View{Session: id, Path: []core.Span{{From: 0, To: 9}}, Next: 10, Lead: c.lead, Start: c.start, Frontier: c.frontier}
		if c.covers > 0 {
			v.Summaries = []core.Summary{{Covers: c.covers}}
		}
		first, floor, left := max(v.Start, v.Frontier, v.Lead), v.Floor(), v.Front().Left
		v.Apply(edit.Insert{At: v.Lead, Session: id, Seq: 9, Leads: true})
		if v.Lead != c.lead+1 || v.Len() != 10 || v.Position(id, 9) != c.lead {
			t.Errorf("%s: it is at %d of %d, and %d lead", name, v.Position(id, 9), v.Len(), v.Lead)
		}
		if now := max(v.Start, v.Frontier, v.Lead); now != first+1 || v.Front().Left != left || c.covers > 0 && (v.Summaries[0].Covers != c.covers || v.Floor() != floor+1) {
			t.Errorf("%s: the window begins at %d, before at %d: %+v", name, now, first, v)
		}
	}
}

// TestPathOfSpans: entries that follow one another are one span, whoever's they are.
func TestPathOfSpans(t *testing.T) {
	own, other := core.SessionID{Agent: "main", Session: "s"}, core.SessionID{Agent: "main", Session: "other"}
	v := core.View{Session: own}
	for _, e := range []edit.Extend{
		{Session: other, Seq: 3}, {Session: other, Seq: 4}, {Session: own, Seq: 5}, {Session: own, Seq: 6}, {Session: own, Seq: 9}, {Session: other, Seq: 10},
	} {
		v.Apply(e)
	}
	want := []core.Span{{Session: &other, From: 3, To: 5}, {From: 5, To: 7}, {From: 9, To: 10}, {Session: &other, From: 10, To: 11}}
	if !reflect.DeepEqual(v.Path, want) {
		t.Errorf("path %+v, want %+v", v.Path, want)
	}
}

// TestNobodyElseSetsAView: the engine changes views by edits alone.
func TestNobodyElseSetsAView(t *testing.T) {
	fields := make(map[string]bool)
	for f := range reflect.TypeFor[core.View]().Fields() {
		fields[f.Name] = true
	}
	files, err := filepath.Glob("../engine/*.go")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files of the engine: %v", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		check := func(target ast.Expr) {
			for {
				if at, ok := target.(*ast.IndexExpr); ok {
					target = at.X
					continue
				}
				break
			}
			sel, ok := target.(*ast.SelectorExpr)
			if !ok || !fields[sel.Sel.Name] {
				return
			}
			of := ""
			switch x := sel.X.(type) {
			case *ast.Ident:
				of = x.Name
			case *ast.SelectorExpr:
				of = x.Sel.Name
			}
			if of == "v" || of == "view" || of == "scratch" || of == "parent" || of == "child" {
				t.Errorf("%s: %s.%s is set without an edit", set.Position(sel.Pos()), of, sel.Sel.Name)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, l := range n.Lhs {
						check(l)
					}
				}
			case *ast.IncDecStmt:
				check(n.X)
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "delete" {
					check(n.Args[0])
				}
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					if sel, ok := n.X.(*ast.SelectorExpr); ok && sel.Sel.Name != "Session" {
						check(sel)
					}
				}
			}
			return true
		})
	}
}

// TestRetreatAcrossSummaries: what is given back is taken from the newest summary first, and from the one before where that is not enough; positions and summaries go on
// fitting together, also where entries came late in front of what a summary speaks of.
func TestRetreatAcrossSummaries(t *testing.T) {
	id := core.SessionID{Agent: "main", Session: "s"}
	of := func(from, to int64) []core.Span { return []core.Span{{Session: &id, From: from, To: to}} }
	for late := range 3 {
		for to := 0; to <= 8+late; to++ {
			v := core.View{Session: id, Path: []core.Span{{From: 0, To: 9}}, Next: 9, Start: 8, Frontier: 8, Summaries: []core.Summary{{Covers: 4, Of: of(0, 4)}, {Covers: 4, Of: of(4, 8)}}}
			for n := range late {
				v.Apply(edit.Insert{At: 4 + n, Session: id, Seq: 9 + int64(n)})
			}
			v.Apply(edit.Retreat{To: to})
			covers := 0
			for _, sum := range v.Summaries {
				covers += sum.Places()
			}
			if v.Start != to || v.Frontier > v.Start || v.Floor() != 0 || covers != v.Frontier || v.Left() != min(max(to-4, 0), late) {
				t.Errorf("%d came late, from %d on it is given back: frontier %d, start %d, floor %d, %d left: %+v", late, to, v.Frontier, v.Start, v.Floor(), v.Left(), v.Summaries)
			}
		}
	}
}

// TestRelayInsideASummary: places that are gone leave the summary that stood for them, and a summary of which nothing is left.
func TestRelayInsideASummary(t *testing.T) {
	id, other := core.SessionID{Agent: "main", Session: "s"}, core.SessionID{Agent: "main", Session: "parent"}
	for name, c := range map[string]struct {
		relay           edit.Relay
		covers          []int
		frontier, start int
	}{
		"nothing":                {edit.Relay{}, []int{4, 4}, 8, 9},
		"own":                    {edit.Relay{Gone: map[int64]bool{1: true, 2: true}}, []int{4, 2}, 6, 7},
		"all of one":             {edit.Relay{Gone: map[int64]bool{0: true, 1: true, 2: true, 3: true}}, []int{4}, 4, 5},
		"the parent's":           {edit.Relay{Lost: []core.Span{{Session: &other, From: 0, To: 3}}}, []int{1, 4}, 5, 6},
		"all of the parent's":    {edit.Relay{Lost: []core.Span{{Session: &other, From: 0, To: 4}}}, []int{4}, 4, 5},
		"behind all summaries":   {edit.Relay{Gone: map[int64]bool{4: true}}, []int{4, 4}, 8, 8},
		"of another one, unseen": {edit.Relay{Lost: []core.Span{{Session: &id, From: 9, To: 12}}}, []int{4, 4}, 8, 9},
	} {
		v := core.View{Session: id, Path: []core.Span{{Session: &other, From: 0, To: 4}, {From: 0, To: 7}}, Next: 7, Start: 9, Frontier: 8, Summaries: []core.Summary{
			{ID: "1", Covers: 4, Of: []core.Span{{Session: &other, From: 0, To: 4}}}, {ID: "2", Covers: 4, Of: []core.Span{{Session: &id, From: 0, To: 4}}},
		}}
		v.Apply(c.relay)
		var covers []int
		for _, sum := range v.Summaries {
			covers = append(covers, sum.Covers)
		}
		if !slices.Equal(covers, c.covers) || v.Frontier != c.frontier || v.Start != c.start || v.Floor() != 0 {
			t.Errorf("%s: they stand for %v up to %d, and the window begins at %d; want %v, %d, %d", name, covers, v.Frontier, v.Start, c.covers, c.frontier, c.start)
		}
	}
}
