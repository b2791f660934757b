package dataset_test

import (
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/experiment/dataset"
)

func ExampleRead() {
	lines := `{"role":"user","content":"hello"}` + "\n" + `{"role":"assistant","content":"hi"}` + "\n"
	sessions, err := dataset.Read(strings.NewReader(lines), "chat.jsonl", dataset.Options{})
	for _, s := range sessions {
		fmt.Println(s.Name(), len(s.Messages))
	}
	fmt.Println(err)
	// Output:
	// chat.jsonl 2
	// <nil>
}
