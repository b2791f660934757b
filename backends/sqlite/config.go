package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/homepath"
)

// What Config.Durability can be.
const (
	// DurabilityProcess makes appends survive the death of the process: PRAGMA synchronous=NORMAL.
	DurabilityProcess = "process"
	// DurabilityPower makes appends survive a power failure too: PRAGMA synchronous=FULL.
	DurabilityPower = "power"
)

// What Config.Check can be.
const (
	// CheckAuto reads files of up to 4 MiB whole when they are opened, and the header of larger ones. All are read whole in the background a while later, whenever
	// they have doubled, and once a day.
	CheckAuto = "auto"
	// CheckOpen reads the file whole when it is opened, however large it is.
	CheckOpen = "open"
	// CheckNever reads the header alone.
	CheckNever = "never"
)

// What Config.Recover can be.
const (
	// RecoverRefuse makes Open fail when a damaged write-ahead log hides commits.
	RecoverRefuse = "refuse"
	// RecoverAccept makes Open go on without the commits behind the damage. They are lost for good.
	RecoverAccept = "accept"
)

// autoCheck is the size in bytes up to which CheckAuto reads all of a file.
const autoCheck = 4 << 20

// Config says where the store is and how it behaves. Zero values of all fields but Insecure stand for their defaults.
type Config struct {
	// Path is the file; beside it SQLite puts two more, named like it with "-wal" and "-shm", and the store a small one with "-mark", by which it notices that the first
	// was removed. Missing folders are made. A file or folder that may not be written to is opened for reading alone.
	// Empty is DefaultPath. There is no ":memory:": use the memory store for that.
	Path string `koanf:"path" file:"" json:"path" doc:"the file; empty is store.db in contextengine in the place for state, such as ~/.local/state; ~ and $HOME are the user's home"`
	// Durability is "process" or "power".
	Durability string `koanf:"durability" json:"durability" doc:"process: appends survive the death of the process; power: also a power failure, slower"`
	// BusyTimeout is how long a writer waits for a writer in another process, 1 ms to 10 min. A context may end it earlier.
	BusyTimeout time.Duration `koanf:"busyTimeout" json:"busyTimeout" doc:"how long a writer waits for others in other processes while none of them gets anything written, 1ms to 10m"`
	// CacheMiB is the size of the page cache of all connections together, in MiB, 2 to 65536.
	CacheMiB int `koanf:"cacheMiB" json:"cacheMiB" doc:"size of the page cache of all connections together in MiB, 2 to 65536"`
	// Readers is the number of reads that can run at the same time, 1 to 64.
	Readers int `koanf:"readers" json:"readers" doc:"number of reads that can run at the same time, 1 to 64"`
	// Check is "auto", "open" or "never": how much of the file Open verifies.
	Check string `koanf:"check" json:"check" doc:"how much of the file is verified when it is opened: auto (all up to 4 MiB, all in the background later), open (all) or never"`
	// Recover is "refuse" or "accept": what Open does about a write-ahead log that is damaged in front of intact commits.
	Recover string `koanf:"recover" json:"recover" doc:"what to do about a damaged write-ahead log that hides commits: refuse to open, or accept their loss"`
	// Insecure leaves the bytes of deleted and changed entries in the file's free space until they are written over. By default they
	// are overwritten with zeros and leave the write-ahead log as soon as no reader needs them.
	Insecure bool `koanf:"insecure" json:"insecure" doc:"leave the bytes of deleted and changed messages in the free space of the file"`
}

// DefaultConfig returns the defaults. Path is empty, which is DefaultPath.
func DefaultConfig() Config {
	return Config{
		Durability:  DurabilityProcess,
		BusyTimeout: 5 * time.Second,
		CacheMiB:    64,
		Readers:     4,
		Check:       CheckAuto,
		Recover:     RecoverRefuse,
	}
}

// DefaultPath is where the store is when no path is configured: $XDG_STATE_HOME/contextengine/store.db if that
// variable holds an absolute path, else .local/state/contextengine/store.db in the user's home (on Windows
// contextengine\store.db in %LocalAppData%). It fails when the user has no home.
func DefaultPath() (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		var err error
		if runtime.GOOS == "windows" {
			base, err = os.UserCacheDir()
		} else if base, err = os.UserHomeDir(); err == nil {
			base = filepath.Join(base, ".local", "state")
		}
		if err != nil {
			return "", fmt.Errorf("sqlite: config: path is empty and there is no place for state, set path: %w: %w", err, core.ErrInvalid)
		}
	}
	return filepath.Join(base, "contextengine", "store.db"), nil
}

// Validate returns core.ErrInvalid naming the field that is out of range.
func (c Config) Validate() error {
	c = c.normalized()
	invalid := func(field, remedy string) error {
		return fmt.Errorf("sqlite: config: %s: %s: %w", field, remedy, core.ErrInvalid)
	}
	switch {
	case c.Path == ":memory:" || strings.HasPrefix(c.Path, "file:"):
		return invalid("path", "must be a file's path; for a store without a file use the memory store")
	case strings.ContainsRune(c.Path, 0):
		return invalid("path", "must not contain a NUL byte")
	case c.Durability != DurabilityProcess && c.Durability != DurabilityPower:
		return invalid("durability", `must be "process" or "power"`)
	case c.BusyTimeout < time.Millisecond || c.BusyTimeout > 10*time.Minute:
		return invalid("busyTimeout", "must be 1ms to 10m")
	case c.CacheMiB < 2 || c.CacheMiB > 65536:
		return invalid("cacheMiB", "must be 2 to 65536")
	case c.Readers < 1 || c.Readers > 64:
		return invalid("readers", "must be 1 to 64")
	case c.Check != CheckAuto && c.Check != CheckOpen && c.Check != CheckNever:
		return invalid("check", `must be "auto", "open" or "never"`)
	case c.Recover != RecoverRefuse && c.Recover != RecoverAccept:
		return invalid("recover", `must be "refuse" or "accept"`)
	}
	return nil
}

func (c Config) normalized() Config {
	d := DefaultConfig()
	set(&c.Durability, d.Durability)
	set(&c.BusyTimeout, d.BusyTimeout)
	set(&c.CacheMiB, d.CacheMiB)
	set(&c.Readers, d.Readers)
	set(&c.Check, d.Check)
	set(&c.Recover, d.Recover)
	return c
}

// set puts a default where nothing was said.
func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// file returns the absolute path of the store's file.
func (c Config) file() (string, error) {
	path, err := homepath.Expand(c.Path)
	if err != nil {
		return "", fmt.Errorf("sqlite: config: %w", err)
	}
	if path == "" {
		if path, err = DefaultPath(); err != nil {
			return "", err
		}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("sqlite: config: path: %w: %w", err, core.ErrInvalid)
	}
	return abs, nil
}
