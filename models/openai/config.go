package openai

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/endpoint"
)

// Names of the request field that bounds an answer, for Config.MaxTokensField.
const (
	// FieldAuto chooses by the model's name: max_completion_tokens for OpenAI's reasoning models, else max_tokens.
	FieldAuto = "auto"
	// FieldMaxTokens is what nearly every compatible endpoint knows.
	FieldMaxTokens = "max_tokens"
	// FieldMaxCompletionTokens is what OpenAI's reasoning models want; it includes their hidden tokens.
	FieldMaxCompletionTokens = "max_completion_tokens"
)

// Limits of OpenAI's embeddings endpoint for one request.
const (
	maxBatchInputs = 2048
	maxBatchTokens = 300_000
)

// Config is what an operator sets about one model at one endpoint. Printing or logging it hides the key.
type Config struct {
	// BaseURL is the endpoint up to and including its version, as in "http://localhost:11434/v1". Required.
	BaseURL string `koanf:"baseUrl" doc:"endpoint up to its version, such as http://localhost:11434/v1; required"`
	// APIKey is sent as a bearer token; empty sends none.
	APIKey string `koanf:"apiKey" json:"-" doc:"sent as bearer token, never printed; empty sends none"`
	// Model is the endpoint's name for the model. Required.
	Model string `koanf:"model" doc:"the endpoint's name for the model; required"`
	// Timeout bounds one attempt, from connecting to the last byte of the answer.
	Timeout time.Duration `koanf:"timeout" doc:"bounds one attempt"`
	// MaxRetries is how often a failed attempt is repeated, 0 to 20.
	MaxRetries int `koanf:"maxRetries" doc:"repeats of a failed attempt, 0 to 20"`
	// RetryDelay is the upper bound of the first wait between attempts; it doubles with each further one. The wait itself
	// is random below the bound.
	RetryDelay time.Duration `koanf:"retryDelay" doc:"upper bound of the first wait; it doubles"`
	// MaxRetryDelay bounds every wait. An endpoint that asks for a longer one is not asked again.
	MaxRetryDelay time.Duration `koanf:"maxRetryDelay" doc:"upper bound of every wait"`
	// MaxTokensField is FieldAuto, FieldMaxTokens or FieldMaxCompletionTokens. Completions only.
	MaxTokensField string `koanf:"maxTokensField" doc:"auto, max_tokens or max_completion_tokens"`
	// Dimensions is the length every vector must have; 0 takes the length of the first one. Embeddings only.
	Dimensions int `koanf:"dimensions" doc:"length every vector must have; 0 takes that of the first"`
	// RequestDimensions asks the endpoint for vectors of Dimensions; the text-embedding-3 models are always asked.
	// Other models may refuse the question. Embeddings only.
	RequestDimensions bool `koanf:"requestDimensions" doc:"ask the endpoint for vectors of dimensions"`
	// BatchInputs is how many texts one request carries at most, 1 to 2048. Embeddings only.
	BatchInputs int `koanf:"batchInputs" doc:"texts in one request, 1 to 2048"`
	// BatchTokens is how many tokens, taken as bytes/3, one request carries at most, 1 to 300,000; a single text above it
	// goes alone. Embeddings only.
	BatchTokens int `koanf:"batchTokens" doc:"tokens in one request, taken as bytes/3, 1 to 300000"`
}

// DefaultConfig returns a Config that lacks only BaseURL, Model and, where the endpoint wants one, APIKey.
func DefaultConfig() Config {
	return Config{
		Timeout:        2 * time.Minute,
		MaxRetries:     3,
		RetryDelay:     500 * time.Millisecond,
		MaxRetryDelay:  30 * time.Second,
		MaxTokensField: FieldAuto,
		BatchInputs:    maxBatchInputs,
		BatchTokens:    maxBatchTokens,
	}
}

// Validate returns nil or a core.ErrInvalid that names every wrong field and its remedy.
func (c Config) Validate() error {
	var problems []error
	wrong := func(field, remedy string) {
		problems = append(problems, fmt.Errorf("openai: config: %s: %s: %w", field, remedy, core.ErrInvalid))
	}
	check := func(ok bool, field, remedy string) {
		if !ok {
			wrong(field, remedy)
		}
	}
	if c.BaseURL == "" {
		wrong("baseUrl", `is required, set it to the endpoint up to its version, as in "`+example+`"`)
	} else if remedy := endpoint.CheckURL(c.BaseURL, example); remedy != "" {
		wrong("baseUrl", remedy)
	}
	c.settings().Check(wrong)
	switch c.MaxTokensField {
	case FieldAuto, FieldMaxTokens, FieldMaxCompletionTokens:
	default:
		wrong("maxTokensField", fmt.Sprintf("must be %q, %q or %q", FieldAuto, FieldMaxTokens, FieldMaxCompletionTokens))
	}
	check(c.Dimensions >= 0, "dimensions", "must be 0 (unknown) or the length of the model's vectors")
	check(!c.RequestDimensions || c.Dimensions > 0, "requestDimensions", "needs dimensions to be set")
	check(c.BatchInputs >= 1 && c.BatchInputs <= maxBatchInputs, "batchInputs", "must be 1 to 2048")
	check(c.BatchTokens >= 1 && c.BatchTokens <= maxBatchTokens, "batchTokens", "must be 1 to 300000")
	return errors.Join(problems...)
}

const example = "http://localhost:11434/v1"

// settings are the fields that any model at a service has.
func (c Config) settings() endpoint.Settings {
	return endpoint.Settings{
		BaseURL: c.BaseURL, APIKey: c.APIKey, Model: c.Model, Timeout: c.Timeout,
		MaxRetries: c.MaxRetries, RetryDelay: c.RetryDelay, MaxRetryDelay: c.MaxRetryDelay,
	}
}

// String returns the fields that identify the model, without the key.
func (c Config) String() string { return c.settings().Describe("openai") }

// GoString is String.
func (c Config) GoString() string { return c.String() }

// LogValue implements slog.LogValuer, without the key.
func (c Config) LogValue() slog.Value { return c.settings().LogValue() }
