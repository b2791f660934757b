package openbrain

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// lookAgain is how often a file that may have changed is looked at.
const lookAgain = time.Second

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

// keyring knows the keys: those of the configuration, and those of the keys file as it is now.
type keyring struct {
	cfg Config
	log *slog.Logger
	// anyone is who calls when no keys are configured.
	anyone *caller
	ring   atomic.Pointer[ring]

	mu   sync.Mutex // held by whoever looks at the file
	file watched
}

// ring is one reading of all keys.
type ring struct {
	sums    [][sha256.Size]byte
	callers []*caller
}

func newKeyring(cfg Config, log *slog.Logger) (*keyring, error) {
	k := &keyring{cfg: cfg, log: log, file: watched{paths: []string{cfg.KeysFile}}}
	if len(cfg.Keys) == 0 && cfg.KeysFile == "" {
		k.anyone = &caller{name: "anyone", bucket: newBucket(cfg)}
		return k, nil
	}
	keys := slices.Clone(cfg.Keys)
	if cfg.KeysFile != "" {
		k.file.changed() // before it is read: what comes later is seen later
		more, err := ReadKeys(cfg.KeysFile)
		if err != nil {
			return nil, err
		}
		keys = append(keys, more...)
	}
	r, err := newRing(keys, cfg, nil)
	if err != nil {
		return nil, err
	}
	k.ring.Store(r)
	return k, nil
}

// newRing keeps the rate limits of keys that old holds.
func newRing(keys []Key, cfg Config, old *ring) (*ring, error) {
	r := &ring{}
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
		c := &caller{name: k.Name, sources: slices.Clone(k.Sources), bucket: newBucket(cfg)}
		if old != nil {
			if i := slices.Index(old.sums, [sha256.Size]byte(sum)); i >= 0 {
				c.bucket = old.callers[i].bucket
			}
		}
		r.sums = append(r.sums, [sha256.Size]byte(sum))
		r.callers = append(r.callers, c)
	}
	return r, nil
}

// find returns who sent this Authorization header, or nil. It takes the same time whichever key it is.
func (k *keyring) find(ctx context.Context, header string, now time.Time) *caller {
	if k.anyone != nil {
		return k.anyone
	}
	k.refresh(ctx, now)
	r := k.ring.Load()
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

// refresh reads the keys file again when it has changed. A file without keys allows nobody; one that cannot be used changes nothing, and
// is read again until it can.
func (k *keyring) refresh(ctx context.Context, now time.Time) {
	if k.cfg.KeysFile == "" || !k.mu.TryLock() {
		return
	}
	defer k.mu.Unlock()
	if !k.file.due(now) || !k.file.changed() {
		return
	}
	keys, err := ListKeys(k.cfg.KeysFile)
	var r *ring
	if err == nil {
		r, err = newRing(slices.Concat(k.cfg.Keys, keys), k.cfg, k.ring.Load())
	}
	if k.file.failed(err) {
		k.log.ErrorContext(ctx, "openbrain: the keys file cannot be used, the keys stay as they were", slog.Any("error", err))
	}
	if err != nil {
		return
	}
	k.ring.Store(r)
	k.log.InfoContext(ctx, "openbrain: keys read again", slog.Int("keys", len(r.callers)))
}

// watched is a set of files that are looked at now and then. It is not safe for concurrent use.
type watched struct {
	paths []string
	last  time.Time
	seen  []os.FileInfo
	// fresh is what the last look saw; told is what was reported to be broken.
	fresh, told []os.FileInfo
}

// due reports whether it is time to look, and sets the next time.
func (w *watched) due(now time.Time) bool {
	if since := now.Sub(w.last); since >= 0 && since < lookAgain {
		return false
	}
	w.last = now
	return true
}

// changed reports whether the files are others than those last taken as seen, and takes them as seen.
func (w *watched) changed() bool {
	fresh := make([]os.FileInfo, len(w.paths))
	for i, p := range w.paths {
		fresh[i], _ = os.Stat(p) // one that is not there says so when it is read
	}
	same := w.seen != nil && slices.EqualFunc(w.seen, fresh, sameFile)
	w.seen, w.fresh = fresh, fresh
	return !same
}

// failed says whether to report err about the files that changed told of. With an error, they count as changed until they can be used; the same
// ones are reported once.
func (w *watched) failed(err error) (report bool) {
	if err == nil {
		w.told = nil
		return false
	}
	w.seen = nil
	report = w.told == nil || !slices.EqualFunc(w.told, w.fresh, sameFile)
	w.told = w.fresh
	return report
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}
