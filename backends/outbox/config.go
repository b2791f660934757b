package outbox

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/homepath"
)

// What Config.Durability can be; it should be what the local store's is.
const (
	// DurabilityProcess makes what waits survive the death of the process.
	DurabilityProcess = "process"
	// DurabilityPower makes it survive a power failure too: the journal is flushed before the local store is changed.
	DurabilityPower = "power"
)

// What Config.Full can be.
const (
	// FullFail makes Append at the bound return ErrFull.
	FullFail = "fail"
	// FullBlock makes Append at the bound wait for room until its context ends.
	FullBlock = "block"
)

// What Config.Recover can be.
const (
	// RecoverRefuse makes Open fail when the journal is damaged.
	RecoverRefuse = "refuse"
	// RecoverAccept makes Open go on with the intact records. What the damaged ones named may never be delivered: call Requeue.
	RecoverAccept = "accept"
)

// Config says where the queue is and how it behaves. Zero values stand for their defaults.
type Config struct {
	// Path is the journal. Empty is the file of the local store with "-outbox" behind it; a local store without a file needs a path. Beside
	// it lie two empty files, named like it with ".lock" and ".lease".
	Path string `koanf:"path" file:"" json:"path" doc:"the journal of what waits; empty is the file of the local store with -outbox behind it"`
	// Volatile keeps the queue in memory, for local stores that do not outlive the process either. What waits is gone when it ends.
	Volatile bool `koanf:"volatile" json:"volatile" doc:"keep the queue in memory, for a local store that does not outlive the process either"`
	// Durability is "process" or "power".
	Durability string `koanf:"durability" json:"durability" doc:"what the local store has: process (survives the death of the process) or power (also a power failure, slower)"`
	// Recover is "refuse" or "accept": what Open does about a damaged journal.
	Recover string `koanf:"recover" json:"recover" doc:"what to do about a damaged journal: refuse to open, or accept its intact records"`

	// MaxEntries bounds the changes that wait or were set aside, 1 to 10 million.
	MaxEntries int `koanf:"maxEntries" json:"maxEntries" doc:"largest number of changes that wait or were set aside, 1 to 10000000"`
	// MaxBytes bounds the content of the entries that wait or were set aside, in bytes of their messages, at least 1 KiB.
	MaxBytes int64 `koanf:"maxBytes" json:"maxBytes" doc:"largest size of the messages that wait or were set aside in bytes, at least 1024"`
	// MaxAge bounds how long the oldest change that can still be delivered has waited; 0 is no bound, else at least 1 s.
	MaxAge time.Duration `koanf:"maxAge" json:"maxAge" doc:"how long the oldest change may wait before appends are refused, at least 1s; 0 is no bound"`
	// Full is "fail" or "block": what Append does at a bound.
	Full string `koanf:"full" json:"full" doc:"what appends do at a bound: fail, or block until there is room"`

	// BatchEntries is the largest number of entries in one append to the remote, 1 to 1000.
	BatchEntries int `koanf:"batchEntries" json:"batchEntries" doc:"largest number of messages in one append to the remote store, 1 to 1000"`
	// BatchBytes is about the largest size of one append to the remote, in bytes; one entry may be larger. At least 1 KiB.
	BatchBytes int64 `koanf:"batchBytes" json:"batchBytes" doc:"about the largest size of one append to the remote store in bytes, at least 1024"`
	// MaxAttempts is how often a change that the remote refuses for good is tried before it is set aside, 1 to 1000.
	MaxAttempts int `koanf:"maxAttempts" json:"maxAttempts" doc:"how often a change that the remote store refuses for good is tried before it is set aside, 1 to 1000"`
	// AttemptTimeout bounds one call of the remote, 1 ms to 1 h. The first call for an agent may have to list all of its history there.
	AttemptTimeout time.Duration `koanf:"attemptTimeout" json:"attemptTimeout" doc:"how long one call of the remote store may take, 1ms to 1h"`
	// MinBackoff and MaxBackoff bound the wait between two tries where the remote does not ask for another one, 1 ms to 24 h.
	MinBackoff time.Duration `koanf:"minBackoff" json:"minBackoff" doc:"shortest wait between two tries, 1ms to 24h"`
	MaxBackoff time.Duration `koanf:"maxBackoff" json:"maxBackoff" doc:"longest wait between two tries, minBackoff to 24h"`
	// CloseTimeout is how long Close goes on delivering, 1 ms to 1 h. What is left is delivered after the next Open.
	CloseTimeout time.Duration `koanf:"closeTimeout" json:"closeTimeout" doc:"how long delivery goes on when the store is closed, 1ms to 1h"`
	// Poll is how often a process looks for what others put into the journal, and for the lease, 1 ms to 1 h.
	Poll time.Duration `koanf:"poll" json:"poll" doc:"how often to look for what other processes append, 1ms to 1h"`

	// Hydrate copies the history that the remote store has into the local one.
	Hydrate bool `koanf:"hydrate" json:"hydrate" doc:"copy the history that the remote store has into the local one, as agents are first used"`
	// SearchWait is how long a search waits for the delivery of what was appended before it, so that the remote finds that too; up
	// to 1 min. 0 is not at all: entries that wait are then matched by their words.
	SearchWait time.Duration `koanf:"searchWait" json:"searchWait" doc:"how long a search waits for what was appended before it to be delivered, up to 1m"`
	// RemoteWait is how long a search waits for the remote's answer once the local one is there, 1 ms to 1 min.
	RemoteWait time.Duration `koanf:"remoteWait" json:"remoteWait" doc:"how long a search waits for the remote store once the local answer is there, 1ms to 1m; what comes later counts in the next one"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Durability:     DurabilityProcess,
		Recover:        RecoverRefuse,
		MaxEntries:     100_000,
		MaxBytes:       1 << 30,
		Full:           FullFail,
		BatchEntries:   50,
		BatchBytes:     4 << 20,
		MaxAttempts:    5,
		AttemptTimeout: 10 * time.Minute,
		MinBackoff:     200 * time.Millisecond,
		MaxBackoff:     time.Minute,
		CloseTimeout:   5 * time.Second,
		Poll:           time.Second,
		RemoteWait:     300 * time.Millisecond,
	}
}

// Validate returns core.ErrInvalid naming the field that is out of range.
func (c Config) Validate() error {
	c = c.normalized()
	invalid := func(field, remedy string) error {
		return fmt.Errorf("outbox: config: %s: %s: %w", field, remedy, core.ErrInvalid)
	}
	within := func(d, lo, hi time.Duration) bool { return d >= lo && d <= hi }
	switch {
	case strings.ContainsRune(c.Path, 0):
		return invalid("path", "must not contain a NUL byte")
	case c.Volatile && c.Path != "":
		return invalid("volatile", "a queue in memory has no path: set one of the two")
	case c.Durability != DurabilityProcess && c.Durability != DurabilityPower:
		return invalid("durability", `must be "process" or "power"`)
	case c.Recover != RecoverRefuse && c.Recover != RecoverAccept:
		return invalid("recover", `must be "refuse" or "accept"`)
	case c.MaxEntries < 1 || c.MaxEntries > 10_000_000:
		return invalid("maxEntries", "must be 1 to 10000000")
	case c.MaxBytes < 1<<10:
		return invalid("maxBytes", "must be at least 1024")
	case c.MaxAge != 0 && c.MaxAge < time.Second:
		return invalid("maxAge", "must be 0 or at least 1s")
	case c.Full != FullFail && c.Full != FullBlock:
		return invalid("full", `must be "fail" or "block"`)
	case c.BatchEntries < 1 || c.BatchEntries > core.MaxPage:
		return invalid("batchEntries", "must be 1 to 1000")
	case c.BatchBytes < 1<<10:
		return invalid("batchBytes", "must be at least 1024")
	case c.MaxAttempts < 1 || c.MaxAttempts > 1000:
		return invalid("maxAttempts", "must be 1 to 1000")
	case !within(c.AttemptTimeout, time.Millisecond, time.Hour):
		return invalid("attemptTimeout", "must be 1ms to 1h")
	case !within(c.MinBackoff, time.Millisecond, 24*time.Hour):
		return invalid("minBackoff", "must be 1ms to 24h")
	case !within(c.MaxBackoff, c.MinBackoff, 24*time.Hour):
		return invalid("maxBackoff", "must be minBackoff to 24h")
	case !within(c.CloseTimeout, time.Millisecond, time.Hour):
		return invalid("closeTimeout", "must be 1ms to 1h")
	case !within(c.Poll, time.Millisecond, time.Hour):
		return invalid("poll", "must be 1ms to 1h")
	case !within(c.SearchWait, 0, time.Minute):
		return invalid("searchWait", "must be 0 to 1m")
	case !within(c.RemoteWait, time.Millisecond, time.Minute):
		return invalid("remoteWait", "must be 1ms to 1m")
	}
	return nil
}

func (c Config) normalized() Config {
	d := DefaultConfig()
	set(&c.Durability, d.Durability)
	set(&c.Recover, d.Recover)
	set(&c.MaxEntries, d.MaxEntries)
	set(&c.MaxBytes, d.MaxBytes)
	set(&c.Full, d.Full)
	set(&c.BatchEntries, d.BatchEntries)
	set(&c.BatchBytes, d.BatchBytes)
	set(&c.MaxAttempts, d.MaxAttempts)
	set(&c.AttemptTimeout, d.AttemptTimeout)
	set(&c.MinBackoff, d.MinBackoff)
	set(&c.MaxBackoff, max(d.MaxBackoff, c.MinBackoff))
	set(&c.CloseTimeout, d.CloseTimeout)
	set(&c.Poll, d.Poll)
	set(&c.RemoteWait, d.RemoteWait)
	return c
}

// set puts a default where nothing was said.
func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// file returns the absolute path of the journal, "" for a queue in memory.
func (c Config) file(local core.Store) (string, error) {
	if c.Volatile {
		return "", nil
	}
	path, err := homepath.Expand(c.Path)
	if err != nil {
		return "", fmt.Errorf("outbox: config: %w", err)
	}
	if path == "" {
		at, ok := core.As[interface{ Path() string }](local)
		if !ok || at.Path() == "" {
			return "", fmt.Errorf("outbox: config: path: the local store has no file beside which the journal could be: set path, or volatile: %w", core.ErrInvalid)
		}
		path = at.Path() + "-outbox"
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("outbox: config: path: %w: %w", err, core.ErrInvalid)
	}
	return abs, nil
}
