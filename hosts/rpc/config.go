package rpc

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Config is what an operator sets about a server.
type Config struct {
	MaxFrame       int           `koanf:"maxFrame" doc:"largest frame in bytes, either way, 4096 to 1073741824"`
	MaxInFlight    int           `koanf:"maxInFlight" doc:"requests of one connection under way, 1 to 65536; more are refused"`
	MaxRunning     int           `koanf:"maxRunning" doc:"requests of all connections that are worked on at once; the others wait"`
	MaxQueued      int64         `koanf:"maxQueued" doc:"bytes of requests under way, of all connections; more are refused"`
	MaxConnections int           `koanf:"maxConnections" doc:"clients on a socket at once"`
	MaxCall        time.Duration `koanf:"maxCall" doc:"longest time for one request"`
	MaxTranscript  int           `koanf:"maxTranscript" doc:"most messages of one transcript"`
	MaxRemembered  int           `koanf:"maxRemembered" doc:"messages of transcripts remembered by their hash, of all sessions; about 100 bytes each"`

	WriteTimeout    time.Duration `koanf:"writeTimeout" doc:"how long a client may leave an answer unread"`
	ShutdownTimeout time.Duration `koanf:"shutdownTimeout" doc:"how long requests under way may take to end at shutdown"`
}

// DefaultConfig returns the configuration that holds where nobody chose.
func DefaultConfig() Config {
	return Config{
		MaxFrame:        64 << 20,
		MaxInFlight:     256,
		MaxRunning:      64,
		MaxQueued:       256 << 20,
		MaxConnections:  64,
		MaxCall:         10 * time.Minute,
		MaxTranscript:   200_000,
		MaxRemembered:   1 << 20,
		WriteTimeout:    30 * time.Second,
		ShutdownTimeout: 10 * time.Second,
	}
}

// Validate returns an error that wraps core.ErrInvalid and names the first field that is not usable.
func (c Config) Validate() error {
	for _, f := range []struct {
		name        string
		value       int64
		least, most int64
	}{
		{"maxFrame", int64(c.MaxFrame), 4 << 10, 1 << 30},
		{"maxInFlight", int64(c.MaxInFlight), 1, 1 << 16},
		{"maxRunning", int64(c.MaxRunning), 1, 1 << 16},
		{"maxQueued", c.MaxQueued, int64(c.MaxFrame), 1 << 40},
		{"maxConnections", int64(c.MaxConnections), 1, 1 << 16},
		{"maxTranscript", int64(c.MaxTranscript), 1, 1 << 30},
		{"maxRemembered", int64(c.MaxRemembered), 0, 1 << 30},
		{"maxCall", int64(c.MaxCall), int64(time.Millisecond), int64(24 * time.Hour)},
		{"writeTimeout", int64(c.WriteTimeout), int64(time.Millisecond), int64(24 * time.Hour)},
		{"shutdownTimeout", int64(c.ShutdownTimeout), int64(time.Millisecond), int64(24 * time.Hour)},
	} {
		if f.value < f.least || f.value > f.most {
			return fmt.Errorf("rpc: config: %s: must be %d to %d: %w", f.name, f.least, f.most, core.ErrInvalid)
		}
	}
	return nil
}

// Option sets what no configuration file can hold.
type Option func(*Server)

// WithConfig sets the limits; without it DefaultConfig holds.
func WithConfig(c Config) Option { return func(s *Server) { s.cfg = c } }

// WithLogger sets where the access log and failures go; without it nothing is logged. It must not write to the output of ServeStdio.
func WithLogger(l *slog.Logger) Option { return func(s *Server) { s.log = l } }

// WithProgram sets the name and version that clients are told.
func WithProgram(p Program) Option { return func(s *Server) { s.program = p } }
