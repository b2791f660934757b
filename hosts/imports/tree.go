package imports

import "slices"

// tree is a conversation in which answers were made anew and messages edited: nodes that name their parents. What the host shows is
// the path from the root to one of them.
type tree struct {
	order  []string // ids as they stand in the file
	parent map[string]string
	leaf   string
}

func newTree() *tree { return &tree{parent: make(map[string]string)} }

// add puts a node behind those before it. A node that is there already keeps its place.
func (t *tree) add(id, parent string) {
	if _, ok := t.parent[id]; ok {
		return
	}
	t.order = append(t.order, id)
	t.parent[id] = parent
}

// path returns the nodes from the root to the leaf, and false when a parent is missing, there is a circle, or there are no nodes.
func (t *tree) path() ([]string, bool) {
	var back []string
	seen := make(map[string]bool)
	for id := t.leaf; id != ""; id = t.parent[id] {
		if _, ok := t.parent[id]; !ok || seen[id] {
			return nil, false
		}
		seen[id] = true
		back = append(back, id)
	}
	slices.Reverse(back)
	return back, len(back) > 0
}

// branches returns the nodes that are not on a path, as the runs that end where nothing follows: every node is in one of them. The order is that
// of the file.
func (t *tree) branches(path []string) [][]string {
	taken := make(map[string]bool, len(t.order))
	for _, id := range path {
		taken[id] = true
	}
	inner := make(map[string]bool, len(t.order))
	for _, id := range t.order {
		inner[t.parent[id]] = true
	}
	var out [][]string
	walk := func(id string) {
		var run []string
		for ; id != "" && !taken[id]; id = t.parent[id] {
			if _, ok := t.parent[id]; !ok {
				break
			}
			taken[id] = true
			run = append(run, id)
		}
		slices.Reverse(run)
		if len(run) > 0 {
			out = append(out, run)
		}
	}
	for _, id := range t.order {
		if !inner[id] {
			walk(id)
		}
	}
	for _, id := range t.order { // what is left are circles
		walk(id)
	}
	return out
}
