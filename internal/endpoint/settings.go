package endpoint

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"
)

// Settings is what an operator sets about a model at any service. Printing or logging it hides the key.
type Settings struct {
	BaseURL, APIKey, Model    string
	Timeout                   time.Duration
	MaxRetries                int
	RetryDelay, MaxRetryDelay time.Duration
}

// Check calls wrong with every field that is not usable but BaseURL, and its remedy.
func (s Settings) Check(wrong func(field, remedy string)) {
	if !KeyFits(s.APIKey) {
		wrong("apiKey", "must be visible ASCII without blanks; look for a line break at its end")
	}
	if strings.TrimSpace(s.Model) == "" {
		wrong("model", "is required, set it to a model the server has")
	}
	if s.Timeout <= 0 {
		wrong("timeout", `must be above 0, as in "2m"`)
	}
	if s.MaxRetries < 0 || s.MaxRetries > 20 {
		wrong("maxRetries", "must be 0 to 20")
	}
	if s.RetryDelay <= 0 {
		wrong("retryDelay", `must be above 0, as in "500ms"`)
	}
	if s.MaxRetryDelay < s.RetryDelay {
		wrong("maxRetryDelay", "must not be below retryDelay")
	}
}

// KeyFits reports whether a header can carry the key.
func KeyFits(key string) bool {
	return !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// CheckURL returns what to change in the address of a service, or "". It never repeats the address, which may hold a password.
func CheckURL(address, example string) (remedy string) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return `must be an http or https address, as in "` + example + `"`
	case u.User != nil:
		return "must not hold a user or password, set apiKey instead"
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(address, "#"):
		return "must not have a query or fragment"
	}
	return ""
}

// Describe returns the fields that identify the model, without the key.
func (s Settings) Describe(name string) string {
	return fmt.Sprintf("%s.Config{BaseURL: %q, Model: %q, APIKey: %s}", name, s.safeBaseURL(), s.Model, s.keyState())
}

// LogValue implements slog.LogValuer, without the key.
func (s Settings) LogValue() slog.Value {
	return slog.GroupValue(slog.String("baseUrl", s.safeBaseURL()), slog.String("model", s.Model), slog.String("apiKey", s.keyState()))
}

// safeBaseURL leaves out an address that CheckURL refuses, since that may hold a secret.
func (s Settings) safeBaseURL() string {
	if CheckURL(s.BaseURL, "") != "" {
		return ""
	}
	return s.BaseURL
}

func (s Settings) keyState() string {
	if s.APIKey == "" {
		return "none"
	}
	return "set"
}
