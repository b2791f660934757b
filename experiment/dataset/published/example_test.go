package published_test

import (
	"fmt"

	"github.com/contextengine/contextengine/experiment/dataset/published"
)

// Sets says what there is; Fetch gets it, Verify looks whether it is there.
func ExampleSets() {
	sets, err := published.Sets()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range sets {
		if s.Name == "locomo" {
			fmt.Println(s.Licence.Name, "commercial use:", !s.Licence.NonCommercial)
		}
	}
	// Output: CC BY-NC 4.0 commercial use: false
}
