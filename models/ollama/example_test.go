package ollama_test

import (
	"fmt"

	"github.com/contextengine/contextengine/models/ollama"
)

func ExampleNewEmbedder() {
	cfg := ollama.DefaultConfig()
	cfg.BaseURL, cfg.Model = "http://localhost:11434", "bge-m3" // or cfg.WithEnv(os.Getenv), which reads OLLAMA_HOST
	e, err := ollama.NewEmbedder(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Model())
	// Output: bge-m3
}
