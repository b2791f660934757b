package core

import "context"

// TokenCounter returns how many tokens a model sees in text. It is pure, safe for concurrent use, never negative, 0
// for "", and never below the true count of the encoding it stands for. It cannot be stopped: a call of an Engine whose ctx ends does not wait for a long text,
// whose count goes on and is taken by the next call.
type TokenCounter func(text string) int

// Completer asks a language model for text.
//
// The implementer returns when ctx ends, with ctx's error wrapped; retries only what may succeed; never puts prompts or
// keys into errors. It is safe for concurrent use. The caller treats the text as untrusted; a
// Compactor may hand it on in a Patch as it is, see Replacement.Text.
type Completer interface {
	Complete(ctx context.Context, req CompletionRequest) (Completion, error)
}

// CompletionRequest is one question to a model. Only Prompt is always there.
type CompletionRequest struct {
	// System and Prompt are the instruction and the text to work on.
	System, Prompt string
	// MaxTokens bounds the answer; 0 leaves it to the model.
	MaxTokens int
	// Purpose names the use ("summary", ...) for accounting. It holds no content.
	Purpose string
	// Model overrides the completer's own; empty keeps it.
	Model string
}

// Completion is a model's answer.
type Completion struct {
	Text  string
	Model string
	// InputTokens and OutputTokens are as billed; 0 when the endpoint reports none.
	InputTokens, OutputTokens int
	// StopReason is the endpoint's word ("stop", "length", ...).
	StopReason string
}

// Embedder turns texts into vectors of a fixed number of dimensions.
//
// The result has one vector per text, in order: any number of texts, and any text, also one that is blank, or no UTF-8. One that is longer than the model takes, as
// ten thousand bytes are not, has a vector of that length all the same, or makes the call an ErrInvalid. Every number is finite. Texts that mean different things
// have different vectors; one of zeros stands for a text that cannot be compared. It is safe for concurrent use and returns when ctx ends.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Dimensions is the length of every vector; 0 when it is known only after the first call.
	Dimensions() int
	// Model names the model, so that stored vectors of another one can be recognised.
	Model() string
}
