// Package openai asks any endpoint that speaks OpenAI's HTTP API for completions and embeddings.
//
//	cfg := openai.DefaultConfig()
//	cfg.BaseURL, cfg.Model = "http://localhost:11434/v1", "llama3.1"
//	model, err := openai.NewCompleter(cfg)
//	answer, err := model.Complete(ctx, core.CompletionRequest{Prompt: "..."})
//
// Completer is a core.Completer, Embedder a core.Embedder. Both retry what may succeed with exponential backoff, follow
// no redirects, and make errors of their own words only: whatever an endpoint answers, neither the key nor a prompt can
// come back through an error. Refused credentials are a core.ErrAuth, an endpoint that cannot be reached, is overloaded
// or answers nonsense a core.ErrUnavailable, and a request or setting that cannot succeed a core.ErrInvalid.
package openai
