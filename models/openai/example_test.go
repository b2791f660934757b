package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/models/openai"
)

func ExampleCompleter() {
	// Stands for any endpoint that speaks OpenAI's API.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"choices":[{"message":{"content":"They agreed on Friday."},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()

	cfg := openai.DefaultConfig()
	cfg.BaseURL, cfg.Model = server.URL+"/v1", "llama3.1"
	model, err := openai.NewCompleter(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := model.Complete(context.Background(), core.CompletionRequest{
		System: "Summarise in one sentence.", Prompt: "...", MaxTokens: 60, Purpose: "summary",
	})
	fmt.Println(answer.Text, err)
	// Output: They agreed on Friday. <nil>
}
