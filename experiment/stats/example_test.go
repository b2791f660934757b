package stats_test

import (
	"fmt"

	"github.com/contextengine/contextengine/experiment/stats"
)

// Ten sessions of each arm, and what may be said of them.
func ExampleMeasure_Judge() {
	a := []float64{0.5, 0.6, 0.4, 0.5, 0.6, 0.5, 0.4, 0.5, 0.6, 0.5}
	b := []float64{0.7, 0.8, 0.7, 0.9, 0.8, 0.7, 0.8, 0.9, 0.7, 0.8}
	fmt.Println(stats.Share(1).Judge("old", "new", stats.Unpaired(a, b)).Text)
	fmt.Println(stats.Share(1).Judge("old", "new", stats.Unpaired(a[:3], b[:3])).Text)
	// Output:
	// new better by 27.0 points, 95 % 19.8 to 34.2
	// too few to tell (3 sessions in the smaller arm, 5 are needed): 23.3 points more
}
