package openbrain

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/endpoint"
)

// The environment variables read by Config.WithEnv.
const (
	EnvURL    = "OPENBRAIN_URL"
	EnvAPIKey = "OPENBRAIN_API_KEY"
)

// Config says which server to talk to, and how. BaseURL and APIKey have no default.
type Config struct {
	// BaseURL is the server's address, without "/v1": "http://127.0.0.1:8000".
	BaseURL string `koanf:"baseUrl" json:"baseUrl" doc:"address of the server, without /v1; else OPENBRAIN_URL"`
	// APIKey is sent as bearer token. It is never printed.
	APIKey string `koanf:"apiKey" json:"-" doc:"sent as bearer token, never printed; else OPENBRAIN_API_KEY"`
	// Source is what the source of every thought begins with, before the colon and the agent's id.
	Source string `koanf:"source" json:"source" doc:"what the source of every thought begins with, before the colon and the agent's id"`
	// Timeout bounds one request, 1 ms to 1 h. A call may make several.
	Timeout time.Duration `koanf:"timeout" json:"timeout" doc:"bounds one request, 1ms to 1h"`
	// MaxRetries is how often a request is repeated that failed in a way that may mend itself, 0 to 20.
	MaxRetries int `koanf:"maxRetries" json:"maxRetries" doc:"how often a failed request is repeated, 0 to 20"`
	// MaxWait bounds one wait between two tries, whatever the server asks for, 1 ms to 10 min.
	MaxWait time.Duration `koanf:"maxWait" json:"maxWait" doc:"bounds one wait between two tries, 1ms to 10m"`
	// MaxContent is the largest content of a thought in bytes, 64 to 16 MiB; the text of longer entries is cut for search. The
	// entry itself is kept whole.
	MaxContent int `koanf:"maxContent" json:"maxContent" doc:"largest content of a thought, in bytes, 64 to 16777216; longer text is cut for search, the message is kept whole"`
	// Keep is KeepAll or KeepText: what a thought holds of a message.
	Keep string `koanf:"keep" json:"keep" doc:"what a thought holds of a message: all, byte for byte, or text, which is what is searched; text needs a local store in front, which keeps the rest"`
	// PageSize is the limit of the first listing request, 10 to 10000. Servers that refuse it are asked for less.
	PageSize int `koanf:"pageSize" json:"pageSize" doc:"limit of the first listing request, 10 to 10000; servers that refuse it are asked for less"`
	// Exclusive says that no other process writes entries of the same agents. It saves the look for news before each
	// Append; if it is not true, a key that another process wrote may be stored again, and is then hidden when read.
	Exclusive bool `koanf:"exclusive" json:"exclusive" doc:"no other process writes for the same agents; saves a request per append"`
}

// What Config.Keep can be.
const (
	// KeepAll lets thoughts hold whole messages: the server is all the memory there is.
	KeepAll = "all"
	// KeepText lets thoughts hold what is searched, and what reading needs. A store in front keeps everything, and the server is written, searched
	// and erased, never listed.
	KeepText = "text"
)

// DefaultConfig returns the defaults: everything but BaseURL and APIKey.
func DefaultConfig() Config {
	return Config{
		Source:     "openclaw",
		Timeout:    30 * time.Second,
		MaxRetries: 4,
		MaxWait:    30 * time.Second,
		MaxContent: 16 << 10,
		Keep:       KeepAll,
		PageSize:   500,
	}
}

// WithEnv returns c with BaseURL and APIKey taken from the environment where c has none. getenv is os.Getenv or its like.
func (c Config) WithEnv(getenv func(string) string) Config {
	if strings.TrimSpace(c.BaseURL) == "" {
		c.BaseURL = getenv(EnvURL)
	}
	if strings.TrimSpace(c.APIKey) == "" {
		c.APIKey = getenv(EnvAPIKey)
	}
	return c
}

// Validate returns *ConfigError when BaseURL or APIKey is missing, and core.ErrInvalid naming the field when one is
// out of range. Zero values of the other fields stand for their defaults.
func (c Config) Validate() error {
	c = c.normalized()
	if c.BaseURL == "" || c.APIKey == "" {
		return &ConfigError{}
	}
	invalid := func(field, remedy string) error {
		return fmt.Errorf("openbrain: config: %s: %s: %w", field, remedy, core.ErrInvalid)
	}
	if remedy := endpoint.CheckURL(c.BaseURL, "http://127.0.0.1:8000"); remedy != "" {
		return invalid("baseUrl", remedy)
	}
	switch {
	case !endpoint.KeyFits(c.APIKey):
		return invalid("apiKey", "must be printable ASCII without spaces")
	case strings.ContainsFunc(c.Source, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }):
		return invalid("source", "must be printable text")
	case c.Timeout < time.Millisecond || c.Timeout > time.Hour:
		return invalid("timeout", "must be 1ms to 1h")
	case c.MaxRetries < 0 || c.MaxRetries > 20:
		return invalid("maxRetries", "must be 0 to 20")
	case c.MaxWait < time.Millisecond || c.MaxWait > 10*time.Minute:
		return invalid("maxWait", "must be 1ms to 10m")
	case c.MaxContent < 64 || c.MaxContent > 16<<20:
		return invalid("maxContent", "must be 64 to 16777216 bytes")
	case c.Keep != KeepAll && c.Keep != KeepText:
		return invalid("keep", `must be "all" or "text"`)
	case c.PageSize < 10 || c.PageSize > 10000:
		return invalid("pageSize", "must be 10 to 10000")
	}
	return nil
}

// normalized trims what people paste along and puts defaults where nothing was said. MaxRetries 0 means none.
func (c Config) normalized() Config {
	d := DefaultConfig()
	c.BaseURL = strings.TrimRight(strings.TrimSpace(c.BaseURL), "/")
	c.APIKey = strings.TrimSpace(c.APIKey)
	if c.Source == "" {
		c.Source = d.Source
	}
	if c.Timeout == 0 {
		c.Timeout = d.Timeout
	}
	if c.MaxWait == 0 {
		c.MaxWait = d.MaxWait
	}
	if c.MaxContent == 0 {
		c.MaxContent = d.MaxContent
	}
	if c.Keep == "" {
		c.Keep = d.Keep
	}
	if c.PageSize == 0 {
		c.PageSize = d.PageSize
	}
	return c
}

// String describes c without the key, and without the address when that cannot be parsed or holds a password.
func (c Config) String() string {
	key := "not set"
	if c.APIKey != "" {
		key = "set"
	}
	return fmt.Sprintf("openbrain.Config{baseUrl: %s, apiKey: %s, source: %s, timeout: %s, maxRetries: %d}",
		c.address(), key, c.Source, c.Timeout, c.MaxRetries)
}

// GoString is String, so that %#v shows no key either.
func (c Config) GoString() string { return c.String() }

// LogValue is String, so that no logger shows the key.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

func (c Config) address() string {
	if c.BaseURL == "" {
		return "not set"
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" {
		return "not valid"
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}

// ConfigError is returned at bootstrap, and by every call until then, when BaseURL or APIKey is missing. It is a
// core.ErrInvalid; elsewhere its name is OpenBrainConfigError.
type ConfigError struct{}

// Error returns the one text that tells an operator what to do.
func (*ConfigError) Error() string {
	return configErrorName + ": openclaw-openbrain-context: baseUrl and apiKey are required. Set them in your openclaw.json plugin config."
}

// configErrorName is the error's name in the product document. Its text begins with it.
const configErrorName = "OpenBrainConfigError"

// ErrorName returns the name that the error has on the wire too.
func (*ConfigError) ErrorName() string { return configErrorName }

// Unwrap returns core.ErrInvalid.
func (*ConfigError) Unwrap() error { return core.ErrInvalid }
