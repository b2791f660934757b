package questions_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/contextengine/contextengine/experiment/questions"
)

// Data of one's own is lines: messages, and questions that name the messages with the answer.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "boats.jsonl")
	lines := `{"id":"m1","text":"The boat is called Wren."}
{"question":"What is the boat called?","answer":"Wren","evidence":["m1"]}
`
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	set, err := questions.Open(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.Name, set.Format, set.Measured())
	// Output: boats.jsonl jsonl 1
}
