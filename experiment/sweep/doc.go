// Package sweep tries every combination of values, and can be interrupted.
//
//	grid, err := sweep.Parse([]string{"searchers.lexical.k1=0.9,1.2", "retriever.hybrid.meaning=0.1,0.3"})
//	for _, point := range grid.Points() {
//		point.Set(tree, nil) // lays it over a configuration
//	}
//
// A Journal keeps what was finished, one JSON line each, so that a run that was interrupted does not begin anew.
package sweep
