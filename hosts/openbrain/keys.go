package openbrain

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// Key is one bearer key. It holds a hash, never the key itself.
type Key struct {
	// Name says whose key it is; it stands in the access log.
	Name string `koanf:"name" json:"name" doc:"whose key it is, for the access log"`
	// SHA256 is what HashKey returns for the key.
	SHA256 string `koanf:"sha256" json:"sha256" doc:"hex SHA-256 of the key"`
	// Sources are patterns of the sources that the key may use; "*" in a pattern stands for any text.
	Sources []string `koanf:"sources" json:"sources" doc:"patterns of the sources the key may use; * stands for any text"`
}

// HashKey returns what a configuration holds instead of a key: the SHA-256 of it, in hex. Keys should be random, of 32
// characters or more; a guessable key is not made safe by its hash.
func HashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

func (k Key) validate() error {
	sum, err := hex.DecodeString(k.SHA256)
	switch {
	case k.Name == "" || strings.ContainsFunc(k.Name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("name must be printable text")
	case err != nil || len(sum) != sha256.Size:
		return errors.New("sha256 must be 64 hex digits")
	case len(k.Sources) == 0:
		return errors.New(`sources must name at least one pattern; ["*"] allows all`)
	case slices.Contains(k.Sources, ""):
		return errors.New("sources must not hold an empty pattern")
	}
	return nil
}

// maxKeysFile bounds a keys file, in bytes.
const maxKeysFile = 1 << 20

// ReadKeys reads a keys file: {"keys": [{"name": ..., "sha256": ..., "sources": [...]}]}. It refuses, with an error that wraps
// core.ErrInvalid, a file that others than its owner may read or write (except on Windows), one with unknown fields, and one without keys.
func ReadKeys(path string) ([]Key, error) {
	fail := func(err error) ([]Key, error) {
		return nil, fmt.Errorf("openbrain: read keys %q: %w", path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat() // of what was opened, not of what the name says by now
	if err != nil {
		return fail(err)
	}
	switch {
	case !info.Mode().IsRegular():
		return fail(fmt.Errorf("not a regular file: %w", core.ErrInvalid))
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return fail(fmt.Errorf("mode is %04o, must be 0600 or less: %w", info.Mode().Perm(), core.ErrInvalid))
	case info.Size() > maxKeysFile:
		return fail(fmt.Errorf("larger than %d bytes: %w", maxKeysFile, core.ErrInvalid))
	}
	var file struct {
		Keys []Key `json:"keys"`
	}
	d := json.NewDecoder(io.LimitReader(f, maxKeysFile))
	d.DisallowUnknownFields()
	// The decoder's own error may quote the file.
	if err := d.Decode(&file); err != nil || d.More() {
		return fail(fmt.Errorf(`must be {"keys": [{"name", "sha256", "sources"}]}: %w`, core.ErrInvalid))
	}
	if len(file.Keys) == 0 {
		return fail(fmt.Errorf("holds no keys: %w", core.ErrInvalid))
	}
	for i, k := range file.Keys {
		if err := k.validate(); err != nil {
			return fail(fmt.Errorf("keys[%d]: %w: %w", i, err, core.ErrInvalid))
		}
	}
	return file.Keys, nil
}

// caller is who makes a request.
type caller struct {
	name string
	// sources are patterns; nil allows every source.
	sources []string
	bucket  *bucket
}

// may reports whether the caller may use a source.
func (c *caller) may(source string) bool {
	return c.sources == nil || slices.ContainsFunc(c.sources, func(p string) bool { return match(p, source) })
}

// keyring knows the keys.
type keyring struct {
	sums    [][sha256.Size]byte
	callers []*caller
	// anyone is who calls when there are no keys.
	anyone *caller
}

func newKeyring(keys []Key, cfg Config) (*keyring, error) {
	r := &keyring{}
	if len(keys) == 0 {
		r.anyone = &caller{name: "anyone", bucket: newBucket(cfg)}
		return r, nil
	}
	names := map[string]bool{}
	for _, k := range keys {
		sum, err := hex.DecodeString(k.SHA256)
		if err != nil || len(sum) != sha256.Size || names[k.Name] {
			return nil, invalid(fmt.Sprintf("keys: %q: names must differ and sha256 must be 64 hex digits", k.Name))
		}
		if slices.Contains(r.sums, [sha256.Size]byte(sum)) {
			return nil, invalid(fmt.Sprintf("keys: %q: another name has the same key", k.Name))
		}
		names[k.Name] = true
		r.sums = append(r.sums, [sha256.Size]byte(sum))
		r.callers = append(r.callers, &caller{name: k.Name, sources: slices.Clone(k.Sources), bucket: newBucket(cfg)})
	}
	return r, nil
}

// find returns who sent this Authorization header, or nil. It takes the same time whichever key it is.
func (r *keyring) find(header string) *caller {
	if r.anyone != nil {
		return r.anyone
	}
	scheme, token, ok := strings.Cut(header, " ")
	ok = ok && strings.EqualFold(scheme, "bearer")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	found := -1
	for i := range r.sums {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], r.sums[i][:]), i, found)
	}
	if !ok || found < 0 {
		return nil
	}
	return r.callers[found]
}

// match reports whether text matches a pattern in which "*" stands for any text.
func match(pattern, text string) bool {
	pieces := strings.Split(pattern, "*")
	if len(pieces) == 1 {
		return pattern == text
	}
	first, last := pieces[0], pieces[len(pieces)-1]
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, p := range pieces[1 : len(pieces)-1] {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return true
}
