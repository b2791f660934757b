package openbrain

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Config is what an operator sets about a server.
type Config struct {
	Keys           []Key  `koanf:"keys" doc:"who may use the server; without keys it only answers on loopback"`
	KeysFile       string `koanf:"keysFile" doc:"JSON file with more keys, readable by its owner only"`
	TLSCert        string `koanf:"tlsCert" doc:"PEM file with the certificate chain; with tlsKey, the server speaks TLS"`
	TLSKey         string `koanf:"tlsKey" doc:"PEM file with the certificate's private key"`
	AllowPlainHTTP bool   `koanf:"allowPlainHTTP" doc:"listen beyond loopback without TLS, behind something that does TLS"`

	DefaultSource string `koanf:"defaultSource" doc:"source of thoughts that are sent without one"`
	MaxBody       int64  `koanf:"maxBody" doc:"largest request body in bytes, 1024 to 1073741824"`
	MaxLimit      int    `koanf:"maxLimit" doc:"largest limit of a list or search, 1 to 10000"`

	RatePerSecond float64 `koanf:"ratePerSecond" doc:"requests a second for each key; 0 is no limit"`
	RateBurst     int     `koanf:"rateBurst" doc:"requests a key may make at once, at least 1, when ratePerSecond is set"`

	ReadHeaderTimeout time.Duration `koanf:"readHeaderTimeout" doc:"how long a client may take to send a request's header"`
	ReadTimeout       time.Duration `koanf:"readTimeout" doc:"how long a client may take to send a whole request"`
	WriteTimeout      time.Duration `koanf:"writeTimeout" doc:"how long answering one request may take, from the end of its header"`
	IdleTimeout       time.Duration `koanf:"idleTimeout" doc:"how long an idle connection stays open"`
	MaxHeaderBytes    int           `koanf:"maxHeaderBytes" doc:"largest header in bytes, 1024 to 1048576"`
	ShutdownTimeout   time.Duration `koanf:"shutdownTimeout" doc:"how long requests under way may take to end at shutdown"`

	EmbedTimeout   time.Duration `koanf:"embedTimeout" doc:"how long one round of embedding in the background may take"`
	EmbedMaxWait   time.Duration `koanf:"embedMaxWait" doc:"longest wait before the background worker tries a failed embedder again"`
	SearchEmbedFor time.Duration `koanf:"searchEmbedFor" doc:"how long a search waits for vectors before it answers without them"`
}

// DefaultConfig returns the configuration that holds where nobody chose: no keys, so loopback only.
func DefaultConfig() Config {
	return Config{
		DefaultSource:     "default",
		MaxBody:           32 << 20,
		MaxLimit:          1000,
		RateBurst:         50,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      2 * time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ShutdownTimeout:   20 * time.Second,
		EmbedTimeout:      2 * time.Minute,
		EmbedMaxWait:      time.Minute,
		SearchEmbedFor:    5 * time.Second,
	}
}

// Validate returns an error that wraps core.ErrInvalid and names the first field that is not usable, and the remedy. It does
// not open files.
func (c Config) Validate() error {
	for i, k := range c.Keys {
		if err := k.validate(); err != nil {
			return invalid(fmt.Sprintf("keys[%d]: %v", i, err))
		}
	}
	if msg := checkSource(c.DefaultSource); msg != "" {
		return invalid("defaultSource: " + msg)
	}
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return invalid("tlsCert, tlsKey: set both or none")
	case c.MaxBody < 1<<10 || c.MaxBody > 1<<30:
		return invalid("maxBody: must be 1024 to 1073741824 bytes")
	case c.MaxLimit < 1 || c.MaxLimit > 10_000:
		return invalid("maxLimit: must be 1 to 10000")
	case !(c.RatePerSecond >= 0) || math.IsInf(c.RatePerSecond, 0):
		return invalid("ratePerSecond: must not be negative")
	case c.RatePerSecond > 0 && c.RateBurst < 1:
		return invalid("rateBurst: must be at least 1")
	case c.MaxHeaderBytes < 1<<10 || c.MaxHeaderBytes > 1<<20:
		return invalid("maxHeaderBytes: must be 1024 to 1048576 bytes")
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"readHeaderTimeout", c.ReadHeaderTimeout}, {"readTimeout", c.ReadTimeout}, {"writeTimeout", c.WriteTimeout},
		{"idleTimeout", c.IdleTimeout}, {"shutdownTimeout", c.ShutdownTimeout}, {"embedTimeout", c.EmbedTimeout},
		{"embedMaxWait", c.EmbedMaxWait}, {"searchEmbedFor", c.SearchEmbedFor},
	} {
		if d.value < time.Millisecond || d.value > 24*time.Hour {
			return invalid(d.field + ": must be 1ms to 24h")
		}
	}
	return nil
}

// CheckListen returns nil when a server with this configuration may listen on addr, a "host:port" as net.Listen takes it. Beyond
// loopback that needs a key, and TLS or AllowPlainHTTP. A keysFile counts as a key, since New reads it and refuses one
// without keys. An address whose host is empty is every interface. The error wraps core.ErrInvalid.
func (c Config) CheckListen(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return invalid("listen address: must be host:port")
	}
	switch {
	case isLoopback(host):
		return nil
	case len(c.Keys) == 0 && c.KeysFile == "":
		return invalid("keys: a server that is reachable beyond loopback needs at least one; set keys or keysFile, or listen on 127.0.0.1")
	case c.TLSCert == "" && !c.AllowPlainHTTP:
		return invalid("tlsCert: beyond loopback keys must not travel in clear; set tlsCert and tlsKey, or allowPlainHTTP when something in front does TLS")
	}
	return nil
}

// isLoopback reports whether a host, without port, is this machine and nothing else.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func invalid(text string) error {
	return fmt.Errorf("openbrain: config: %s: %w", text, core.ErrInvalid)
}
