package ollama

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/endpoint"
)

// EnvHost is the variable in which Ollama's own programs find the server.
const EnvHost = "OLLAMA_HOST"

// Config is what an operator sets about one model on one server. Printing or logging it hides the key.
type Config struct {
	// BaseURL is the server's address, without "/api". Required; see WithEnv.
	BaseURL string `koanf:"baseUrl" doc:"address of the server, without /api, such as http://localhost:11434; else OLLAMA_HOST"`
	// APIKey is sent as a bearer token, for servers behind a proxy that wants one; empty sends none.
	APIKey string `koanf:"apiKey" json:"-" doc:"bearer token, where a proxy in front wants one"`
	// Model is the server's name for the model. Required.
	Model string `koanf:"model" doc:"name of the model, as in bge-m3"`
	// Timeout bounds one attempt, from connecting to the last byte of the answer. The first one may have to load the model.
	Timeout time.Duration `koanf:"timeout" doc:"how long one attempt may take"`
	// MaxRetries is how often a failed attempt is repeated, 0 to 20.
	MaxRetries int `koanf:"maxRetries" doc:"how often a failed attempt is repeated, 0 to 20"`
	// RetryDelay is the upper bound of the first wait between attempts; it doubles with each further one, up to MaxRetryDelay. The wait
	// itself is random below the bound.
	RetryDelay time.Duration `koanf:"retryDelay" doc:"upper bound of the first wait between attempts; it doubles"`
	// MaxRetryDelay bounds every wait. A server that asks for a longer one is not asked again.
	MaxRetryDelay time.Duration `koanf:"maxRetryDelay" doc:"upper bound of every wait between attempts"`
	// Dimensions is the length every vector must have; 0 takes the length of the first one.
	Dimensions int `koanf:"dimensions" doc:"length every vector must have; 0 takes that of the first one"`
	// RequestDimensions asks the model for vectors of Dimensions, which only some can shorten.
	RequestDimensions bool `koanf:"requestDimensions" doc:"ask the model for vectors of that length; only some can"`
	// BatchInputs is how many texts one request carries at most, 1 to 2048.
	BatchInputs int `koanf:"batchInputs" doc:"texts in one request, 1 to 2048"`
	// KeepAlive is how long the server keeps the model in memory after a request; 0 leaves it to the server.
	KeepAlive time.Duration `koanf:"keepAlive" doc:"how long the server keeps the model loaded; 0 leaves it to the server"`
}

// DefaultConfig returns a Config that lacks only BaseURL and Model.
func DefaultConfig() Config {
	return Config{
		Timeout: 2 * time.Minute, MaxRetries: 3, RetryDelay: 500 * time.Millisecond, MaxRetryDelay: 30 * time.Second,
		BatchInputs: 64,
	}
}

// WithEnv returns c with BaseURL taken from OLLAMA_HOST where c has none. As for Ollama itself, that may be an address, a host, or a host and a port.
// getenv is os.Getenv or its like.
func (c Config) WithEnv(getenv func(string) string) Config {
	if strings.TrimSpace(c.BaseURL) == "" {
		c.BaseURL = hostURL(strings.TrimSpace(getenv(EnvHost)))
	}
	return c
}

// ollamaPort is the port of an OLLAMA_HOST that names neither a port nor a scheme.
const ollamaPort = "11434"

// hostURL is the address that a value of OLLAMA_HOST stands for, empty for an empty one.
func hostURL(value string) string {
	if value == "" || strings.Contains(value, "://") {
		return value
	}
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		host, port = strings.Trim(value, "[]"), ollamaPort
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost" // where a server listens on every address, this machine finds it
	}
	return "http://" + net.JoinHostPort(host, port)
}

// Validate returns nil or a core.ErrInvalid that names every wrong field and its remedy.
func (c Config) Validate() error {
	var problems []error
	wrong := func(field, remedy string) {
		problems = append(problems, fmt.Errorf("ollama: config: %s: %s: %w", field, remedy, core.ErrInvalid))
	}
	check := func(ok bool, field, remedy string) {
		if !ok {
			wrong(field, remedy)
		}
	}
	if strings.TrimSpace(c.BaseURL) == "" {
		wrong("baseUrl", `is required, set it or `+EnvHost+` to the address of the server, as in "`+example+`"`)
	} else if remedy := endpoint.CheckURL(c.BaseURL, example); remedy != "" {
		wrong("baseUrl", remedy)
	}
	c.settings().Check(wrong)
	check(c.Dimensions >= 0, "dimensions", "must be 0 (unknown) or the length of the model's vectors")
	check(!c.RequestDimensions || c.Dimensions > 0, "requestDimensions", "needs dimensions to be set")
	check(c.BatchInputs >= 1 && c.BatchInputs <= 2048, "batchInputs", "must be 1 to 2048")
	check(c.KeepAlive >= 0, "keepAlive", "must not be negative")
	return errors.Join(problems...)
}

const example = "http://localhost:11434"

// settings are the fields that any model at a service has.
func (c Config) settings() endpoint.Settings {
	return endpoint.Settings{
		BaseURL: c.BaseURL, APIKey: c.APIKey, Model: c.Model, Timeout: c.Timeout,
		MaxRetries: c.MaxRetries, RetryDelay: c.RetryDelay, MaxRetryDelay: c.MaxRetryDelay,
	}
}

// String returns the fields that identify the model, without the key.
func (c Config) String() string { return c.settings().Describe("ollama") }

// GoString is String.
func (c Config) GoString() string { return c.String() }

// LogValue implements slog.LogValuer, without the key.
func (c Config) LogValue() slog.Value { return c.settings().LogValue() }
