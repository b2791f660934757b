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
	KeysFile       string `koanf:"keysFile" doc:"JSON file with more keys, readable by its owner only; read again when it changes"`
	TLSCert        string `koanf:"tlsCert" doc:"PEM file with the certificate chain; with tlsKey, the server speaks TLS; read again when it changes"`
	TLSKey         string `koanf:"tlsKey" doc:"PEM file with the certificate's private key; read again when it changes"`
	AllowPlainHTTP bool   `koanf:"allowPlainHTTP" doc:"listen beyond loopback without TLS, behind something that does TLS"`

	DefaultSource string `koanf:"defaultSource" doc:"source of thoughts that are sent without one"`
	MaxBody       int64  `koanf:"maxBody" doc:"largest request body in bytes, 1024 to 1073741824"`
	MaxPage       int    `koanf:"maxPage" doc:"largest page of a list in bytes, 65536 to 1073741824; what follows is behind its next"`
	MaxLimit      int    `koanf:"maxLimit" doc:"largest limit of a list or search, 1 to 10000"`

	MaxConcurrent int `koanf:"maxConcurrent" doc:"requests that are worked on at the same time, 1 to 100000; others wait a little, then are told to come back"`

	RatePerSecond float64 `koanf:"ratePerSecond" doc:"requests a second for each key; 0 is no limit"`
	RateBurst     int     `koanf:"rateBurst" doc:"requests a key may make at once, at least 1, when ratePerSecond is set"`

	ReadHeaderTimeout time.Duration `koanf:"readHeaderTimeout" doc:"how long a client may take to send a request's header"`
	ReadTimeout       time.Duration `koanf:"readTimeout" doc:"how long a client may take to send a whole request"`
	RequestTimeout    time.Duration `koanf:"requestTimeout" doc:"how long working on one request may take; then it is answered with 503"`
	WriteTimeout      time.Duration `koanf:"writeTimeout" doc:"how long answering one request may take, from the end of its header; not below requestTimeout"`
	StallTimeout      time.Duration `koanf:"stallTimeout" doc:"how long a client may take nothing of its answer; then its connection is closed"`
	IdleTimeout       time.Duration `koanf:"idleTimeout" doc:"how long an idle connection stays open"`
	MaxHeaderBytes    int           `koanf:"maxHeaderBytes" doc:"largest header in bytes, 1024 to 1048576"`
	ShutdownTimeout   time.Duration `koanf:"shutdownTimeout" doc:"how long requests under way may take to end at shutdown"`

	EmbedMaxBytes  int           `koanf:"embedMaxBytes" doc:"how much of a thought is embedded, from its beginning, in bytes, 100 to 1000000"`
	EmbedTimeout   time.Duration `koanf:"embedTimeout" doc:"how long one round of embedding in the background may take"`
	EmbedMaxWait   time.Duration `koanf:"embedMaxWait" doc:"longest wait before the background worker tries a failed embedder again"`
	SearchEmbedFor time.Duration `koanf:"searchEmbedFor" doc:"how long a search waits for vectors before it answers without them"`
}

// DefaultConfig returns the configuration that holds where nobody chose: no keys, so loopback only.
func DefaultConfig() Config {
	return Config{
		DefaultSource:     "default",
		MaxBody:           32 << 20,
		MaxPage:           16 << 20,
		MaxLimit:          1000,
		MaxConcurrent:     256,
		RateBurst:         50,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		RequestTimeout:    time.Minute,
		WriteTimeout:      2 * time.Minute,
		StallTimeout:      10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ShutdownTimeout:   20 * time.Second,
		EmbedMaxBytes:     6000,
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
	case c.MaxPage < 64<<10 || c.MaxPage > 1<<30:
		return invalid("maxPage: must be 65536 to 1073741824 bytes")
	case c.MaxLimit < 1 || c.MaxLimit > 10_000:
		return invalid("maxLimit: must be 1 to 10000")
	case c.MaxConcurrent < 1 || c.MaxConcurrent > 100_000:
		return invalid("maxConcurrent: must be 1 to 100000")
	case c.EmbedMaxBytes < 100 || c.EmbedMaxBytes > 1_000_000:
		return invalid("embedMaxBytes: must be 100 to 1000000")
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
		{"readHeaderTimeout", c.ReadHeaderTimeout}, {"readTimeout", c.ReadTimeout}, {"requestTimeout", c.RequestTimeout}, {"writeTimeout", c.WriteTimeout},
		{"stallTimeout", c.StallTimeout}, {"idleTimeout", c.IdleTimeout}, {"shutdownTimeout", c.ShutdownTimeout}, {"embedTimeout", c.EmbedTimeout},
		{"embedMaxWait", c.EmbedMaxWait}, {"searchEmbedFor", c.SearchEmbedFor},
	} {
		if d.value < time.Millisecond || d.value > 24*time.Hour {
			return invalid(d.field + ": must be 1ms to 24h")
		}
	}
	if c.WriteTimeout < c.RequestTimeout {
		return invalid("writeTimeout: must not be below requestTimeout, or what was worked on cannot be answered")
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
