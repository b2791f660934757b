package sweep_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment/sweep"
)

func TestGrid(t *testing.T) {
	grid, err := sweep.Parse([]string{"retriever.hybrid.k=30,60,30", "searchers.lexical.b=0.4", `list=["a,b"],[]`, "store=memory"})
	if err != nil {
		t.Fatal(err)
	}
	points := grid.Points()
	var names []string
	for _, p := range points {
		names = append(names, p.String())
	}
	want := []string{
		`k=30 b=0.4 list=["a,b"] store=memory`, `k=30 b=0.4 list=[] store=memory`,
		`k=60 b=0.4 list=["a,b"] store=memory`, `k=60 b=0.4 list=[] store=memory`,
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	tree := map[string]any{"retriever": "semantic"}
	points[2].Set(tree, func(key string) []string {
		if key == "retriever" {
			return []string{"hybrid"}
		}
		return nil
	})
	wantTree := map[string]any{
		"retriever": map[string]any{"type": "hybrid", "k": 60.0},
		"searchers": map[string]any{"lexical": map[string]any{"b": 0.4}},
		"list":      []any{"a,b"}, "store": "memory",
	}
	if diff := cmp.Diff(wantTree, tree); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	if got := points[0].Map()["retriever.hybrid.k"]; got != "30" {
		t.Errorf("k is %q, want 30", got)
	}
	none, err := sweep.Parse(nil)
	if p := none.Points(); err != nil || len(p) != 1 || p[0].Map() != nil {
		t.Errorf("no settings: %v, %v, want one point", p, err)
	}
}

func TestGridErrors(t *testing.T) {
	many := "x=0" + strings.Repeat(",0", 2)
	for _, settings := range [][]string{{"x"}, {"=1"}, {"a..b=1"}, {"x=1,,2"}, {"x="}, {"x=1", "x=2"}, {"x=1", "x.y=2"}, {"x.y=1", "x=2"}} {
		if _, err := sweep.Parse(settings); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%q: error %v, want ErrInvalid", settings, err)
		}
	}
	if g, err := sweep.Parse([]string{many}); err != nil || len(g.Points()) != 1 {
		t.Errorf("the same value thrice: %v", err)
	}
	thousand := make([]string, 0, 1000)
	for i := range 1000 {
		thousand = append(thousand, strings.Repeat("v", i+1))
	}
	list := strings.Join(thousand, ",")
	if _, err := sweep.Parse([]string{"a=" + list, "b=" + list}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("a million points: error %v, want ErrInvalid", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("retriever.hybrid.k=30,60")
	f.Add(`x=["a,b"],{"c":1}`)
	f.Fuzz(func(t *testing.T, s string) {
		g, err := sweep.Parse([]string{s})
		if err != nil {
			return
		}
		for _, p := range g.Points() {
			p.Set(map[string]any{}, nil)
		}
	})
}

type value struct {
	Name  string
	Share float64
}

func journal(t *testing.T, path string) *sweep.Journal {
	t.Helper()
	j, err := sweep.OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sweep.jsonl")
	j := journal(t, path)
	for _, v := range []value{{"a", 0.1}, {"b", 2.0 / 3}, {"a", 0.3}} {
		if err := j.Record(v.Name, v); err != nil {
			t.Fatal(err)
		}
	}
	check := func(j *sweep.Journal) {
		t.Helper()
		var v value
		if ok, err := j.Lookup("b", &v); !ok || err != nil || v.Share != 2.0/3 {
			t.Errorf("b is %+v, %v, %v", v, ok, err)
		}
		if ok, err := j.Lookup("a", &v); !ok || err != nil || v.Share != 0.3 {
			t.Errorf("a is %+v, %v, %v: want the newest", v, ok, err)
		}
		if ok, err := j.Lookup("c", &v); ok || err != nil {
			t.Errorf("c is there: %v, %v", ok, err)
		}
		if j.Len() != 2 {
			t.Errorf("%d results, want 2", j.Len())
		}
	}
	check(j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	// A crash in the middle of a line.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"key":"c","val`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	j = journal(t, path)
	if !j.Torn {
		t.Error("the torn line is not told of")
	}
	check(j)
	if err := j.Record("c", value{"c", 1}); err != nil {
		t.Fatal(err)
	}
	j = journal(t, path)
	var v value
	if ok, err := j.Lookup("c", &v); !ok || err != nil || j.Torn {
		t.Errorf("what follows a torn line is lost: %v, %v", ok, err)
	}
	if _, err := j.Lookup("c", new(int)); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("a value of another type: error %v, want ErrInvalid", err)
	}
}

func TestJournalErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	if err := os.WriteFile(path, []byte("{\"key\":\"a\",\"value\":1}\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sweep.OpenJournal(path); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error %v, want one of line 2", err)
	}
	if _, err := sweep.OpenJournal(t.TempDir()); err == nil {
		t.Error("a folder is a journal")
	}
}
