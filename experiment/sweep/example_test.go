package sweep_test

import (
	"fmt"

	"github.com/contextengine/contextengine/experiment/sweep"
)

// A grid is every combination of the values of some keys.
func ExampleParse() {
	grid, err := sweep.Parse([]string{"searchers.lexical.k1=0.9,1.2", "retriever.hybrid.k=30,60"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, point := range grid.Points() {
		fmt.Println(point)
	}
	// Output:
	// k1=0.9 k=30
	// k1=0.9 k=60
	// k1=1.2 k=30
	// k1=1.2 k=60
}
