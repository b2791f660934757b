// Package ollama asks an Ollama server for embeddings, over Ollama's own API.
//
//	cfg := ollama.DefaultConfig()
//	cfg.BaseURL, cfg.Model = "http://localhost:11434", "bge-m3"
//	e, err := ollama.NewEmbedder(cfg)
//	vectors, err := e.Embed(ctx, []string{"..."})
//
// Ollama speaks OpenAI's API too, which package openai asks; only here can it be told not to cut long texts silently. For
// completions use package openai with Ollama's address and "/v1".
//
// Retries, errors and secrets are as in package openai: what may succeed is tried again with exponential backoff, redirects are not
// followed, and neither a key nor a text comes back through an error. Refused credentials are a core.ErrAuth; a server that cannot be reached,
// is overloaded, answers nonsense, or does not have the model (yet) a core.ErrUnavailable; a text that is too long for the model, or a
// setting that cannot succeed, a core.ErrInvalid.
package ollama
