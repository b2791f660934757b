package ollama_test

import (
	"fmt"

	"github.com/contextengine/contextengine/models/ollama"
)

func ExampleNewEmbedder() {
	cfg := ollama.DefaultConfig()
	cfg.Model = "bge-m3"
	e, err := ollama.NewEmbedder(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Model())
	// Output: bge-m3
}
