package postgres

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
)

// The environment variables read by Config.WithEnv.
const (
	EnvDSN        = "CONTEXTENGINE_POSTGRES_DSN"
	EnvReplicaDSN = "CONTEXTENGINE_POSTGRES_REPLICA_DSN"
)

// What Config.Vectors can be.
const (
	// VectorsAuto keeps vectors when the server has the extension, or lets it be created.
	VectorsAuto = "auto"
	// VectorsOn makes Open fail when vectors cannot be kept.
	VectorsOn = "on"
	// VectorsOff keeps no vectors.
	VectorsOff = "off"
)

// Config says which server to use, and how. DSN has no default; zero values of the other fields but MaxRetries, Pooler and
// Distributed stand for their defaults.
type Config struct {
	// DSN is the server's address, as URL or key=value pairs. What it leaves out is taken from the PG* variables and files that libpq knows.
	// It is never printed.
	DSN string `koanf:"dsn" json:"-" doc:"address of the server: postgres://user:password@host/database?sslmode=verify-full; better set in CONTEXTENGINE_POSTGRES_DSN"`
	// ReplicaDSN is the address of a read replica of the same server. Searches are ranked there; what they found is read from DSN, so that
	// what was erased does not come back from a replica that lags.
	ReplicaDSN string `koanf:"replicaDsn" json:"-" doc:"address of a read replica that ranks searches; better set in CONTEXTENGINE_POSTGRES_REPLICA_DSN"`
	// Schema is where the tables are. It is made if need be.
	Schema string `koanf:"schema" json:"schema" doc:"schema that holds the tables: lower-case letters, digits and _, at most 48"`
	// MaxConns is the largest number of connections to a server, 1 to 1000.
	MaxConns int `koanf:"maxConns" json:"maxConns" doc:"largest number of connections to the server, 1 to 1000"`
	// Timeout bounds one call with all its retries, 10 ms to 1 h.
	Timeout time.Duration `koanf:"timeout" json:"timeout" doc:"how long one call may take, retries included, 10ms to 1h"`
	// ConnectTimeout bounds one attempt to connect, 10 ms to 10 min.
	ConnectTimeout time.Duration `koanf:"connectTimeout" json:"connectTimeout" doc:"how long one attempt to connect may take, 10ms to 10m"`
	// MaxRetries is how often a call is repeated that failed in a way that may mend itself, 0 to 20. The waits between grow from 50 ms to 2 s.
	MaxRetries int `koanf:"maxRetries" json:"maxRetries" doc:"how often a call is repeated that failed in a way that may mend itself, 0 to 20"`
	// Vectors is "auto", "on" or "off".
	Vectors string `koanf:"vectors" json:"vectors" doc:"keep embedding vectors: auto (when the server has the extension vector), on or off"`
	// ExactVectors is up to how many vectors of an agent a search compares one by one, 1 to 10000000. With more it uses the index, which
	// may miss some; see Store.IndexVectors.
	ExactVectors int `koanf:"exactVectors" json:"exactVectors" doc:"up to how many vectors of an agent are compared one by one instead of with the index, 1 to 10000000"`
	// Language is the name of a text search configuration of the server. It is fixed when the tables are made.
	Language string `koanf:"language" json:"language" doc:"text search configuration of the server, such as english or simple; fixed when the tables are made"`
	// Partitions divides the tables by a hash of the agent, 2 to 1024; 1 leaves them whole. It is fixed when the tables are made.
	Partitions int `koanf:"partitions" json:"partitions" doc:"number of partitions by agent, 2 to 1024, or 1 for none; fixed when the tables are made"`
	// Pooler says that the DSN is that of a pooler which gives each transaction another connection, such as PgBouncer in transaction mode: no
	// prepared statements and no settings of a session are used.
	Pooler bool `koanf:"pooler" json:"pooler" doc:"the address is that of a pooler such as PgBouncer in transaction mode"`
	// Distributed says that the tables are distributed by agent over several servers, as Citus does: Append then looks for an id among
	// the entries of its agent only.
	Distributed bool `koanf:"distributed" json:"distributed" doc:"the tables are distributed over several servers by agent"`
}

// DefaultConfig returns the defaults: everything but DSN.
func DefaultConfig() Config {
	return Config{
		Schema:         "contextengine",
		MaxConns:       8,
		Timeout:        30 * time.Second,
		ConnectTimeout: 10 * time.Second,
		MaxRetries:     6,
		Vectors:        VectorsAuto,
		ExactVectors:   20_000,
		Language:       "english",
		Partitions:     1,
	}
}

// WithEnv returns c with DSN and ReplicaDSN taken from the environment where c has none. getenv is os.Getenv or its like.
func (c Config) WithEnv(getenv func(string) string) Config {
	if strings.TrimSpace(c.DSN) == "" {
		c.DSN = getenv(EnvDSN)
	}
	if strings.TrimSpace(c.ReplicaDSN) == "" {
		c.ReplicaDSN = getenv(EnvReplicaDSN)
	}
	return c
}

// Validate returns core.ErrInvalid naming the field that is missing or out of range.
func (c Config) Validate() error {
	c = c.normalized()
	invalid := func(field, remedy string) error {
		return fmt.Errorf("postgres: config: %s: %s: %w", field, remedy, core.ErrInvalid)
	}
	name := regexp.MustCompile(`^[a-z_][a-z0-9_]{0,47}$`)
	switch {
	case c.DSN == "":
		return invalid("dsn", "is empty: set it, or "+EnvDSN)
	case !name.MatchString(c.Schema) || strings.HasPrefix(c.Schema, "pg_"):
		return invalid("schema", "must be lower-case letters, digits and _, at most 48, and not begin with pg_")
	case c.MaxConns < 1 || c.MaxConns > 1000:
		return invalid("maxConns", "must be 1 to 1000")
	case c.Timeout < 10*time.Millisecond || c.Timeout > time.Hour:
		return invalid("timeout", "must be 10ms to 1h")
	case c.ConnectTimeout < 10*time.Millisecond || c.ConnectTimeout > 10*time.Minute:
		return invalid("connectTimeout", "must be 10ms to 10m")
	case c.MaxRetries < 0 || c.MaxRetries > 20:
		return invalid("maxRetries", "must be 0 to 20")
	case c.Vectors != VectorsAuto && c.Vectors != VectorsOn && c.Vectors != VectorsOff:
		return invalid("vectors", `must be "auto", "on" or "off"`)
	case c.ExactVectors < 1 || c.ExactVectors > 10_000_000:
		return invalid("exactVectors", "must be 1 to 10000000")
	case !name.MatchString(c.Language):
		return invalid("language", "must be the name of a text search configuration, such as english")
	case c.Partitions < 1 || c.Partitions > 1024:
		return invalid("partitions", "must be 1 to 1024")
	}
	for field, dsn := range map[string]string{"dsn": c.DSN, "replicaDsn": c.ReplicaDSN} {
		if dsn == "" {
			continue
		}
		// The parser's own error repeats the text.
		if _, err := c.pool(dsn); err != nil {
			return invalid(field, "cannot be understood: it must be like postgres://user:password@example.com/database, or key=value pairs")
		}
	}
	return nil
}

// normalized trims what people paste along and puts defaults where nothing was said. MaxRetries 0 means none.
func (c Config) normalized() Config {
	d := DefaultConfig()
	c.DSN, c.ReplicaDSN = strings.TrimSpace(c.DSN), strings.TrimSpace(c.ReplicaDSN)
	set(&c.Schema, d.Schema)
	set(&c.MaxConns, d.MaxConns)
	set(&c.Timeout, d.Timeout)
	set(&c.ConnectTimeout, d.ConnectTimeout)
	set(&c.Vectors, d.Vectors)
	set(&c.ExactVectors, d.ExactVectors)
	set(&c.Language, d.Language)
	set(&c.Partitions, d.Partitions)
	return c
}

// set puts a default where nothing was said.
func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// String describes c without the addresses.
func (c Config) String() string {
	is := func(dsn string) string {
		if strings.TrimSpace(dsn) == "" {
			return "not set"
		}
		return "set"
	}
	return fmt.Sprintf("postgres.Config{dsn: %s, replicaDsn: %s, schema: %s, maxConns: %d, vectors: %s, partitions: %d, pooler: %t}",
		is(c.DSN), is(c.ReplicaDSN), c.Schema, c.MaxConns, c.Vectors, c.Partitions, c.Pooler)
}

// GoString is String, so that %#v shows no address either.
func (c Config) GoString() string { return c.String() }

// LogValue is String, so that no logger shows the addresses.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }
