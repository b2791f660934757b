package openbrain_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/openbrain"
	"github.com/contextengine/contextengine/internal/files"
)

// testClock is a clock that tests set.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *testClock { return &testClock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestAddAndRemoveKeys(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "keys.json")
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	secrets := map[string]bool{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 20 { // edits at the same time do not undo each other
		wg.Go(func() {
			s, err := openbrain.AddKey(path, fmt.Sprint(i), []string{"a*", "b"})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			secrets[s] = true
		})
	}
	wg.Wait()
	if len(secrets) != 20 {
		t.Errorf("%d different keys, want 20", len(secrets))
	}
	if err := openbrain.RemoveKey(link, "7"); err != nil {
		t.Error(err)
	}
	keys, err := openbrain.ReadKeys(path)
	if err != nil || len(keys) != 19 {
		t.Errorf("ReadKeys = %d keys, %v; want 19", len(keys), err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for s := range secrets {
		if bytes.Contains(text, []byte(s)) {
			t.Error("the file holds a key in clear")
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 2 {
		t.Errorf("the folder holds %q, want the file and the link", left)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v now", info.Mode())
	}
	if err := openbrain.RemoveKey(path, "7"); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("RemoveKey again = %v, want ErrNotFound", err)
	}
	if _, err := openbrain.AddKey(path, "8", []string{"*"}); !errors.Is(err, core.ErrConflict) {
		t.Errorf("AddKey of a name that is there = %v, want ErrConflict", err)
	}
	if _, err := openbrain.AddKey(path, "x", nil); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("AddKey without sources = %v, want ErrInvalid", err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := openbrain.AddKey(path, "x", []string{"*"}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("AddKey to a file that others can read = %v, want ErrInvalid", err)
	}
}

// TestLockThatWasLeft: the lock file of an edit that was killed locks nothing, and goes with the next edit; one that somebody holds is respected.
func TestLockThatWasLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	lock := path + ".lock"
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openbrain.AddKey(path, "first", []string{"*"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(lock); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the edit: %v", err)
	}
	held, err := os.Create(lock)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := files.TryLock(held); err != nil {
		t.Fatal(err)
	}
	if _, err := openbrain.AddKey(path, "second", []string{"*"}); !errors.Is(err, core.ErrConflict) {
		t.Errorf("while somebody holds the lock: %v, want ErrConflict", err)
	}
}

func TestKeysFileIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	first, err := openbrain.AddKey(path, "first", []string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	clock := newClock()
	f := serve(t, nil, func(c *openbrain.Config) {
		c.KeysFile = path
		c.Keys = []openbrain.Key{key("fixed", mainKey, "team-*")}
		c.RatePerSecond, c.RateBurst = 0.001, 5
	}, openbrain.WithClock(clock.Now))
	status := func(secret string) int { return f.ask(t, secret, http.MethodGet, "/v1/stats", "").status }
	check := func(when, secret string, want int) {
		t.Helper()
		if got := status(secret); got != want {
			t.Errorf("%s: status %d, want %d", when, got, want)
		}
	}
	check("at the start", first, 200)
	second, err := openbrain.AddKey(path, "second", []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	check("within the second", second, 401)
	clock.add(2 * time.Second)
	check("a new key", second, 200)

	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, good[:len(good)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	clock.add(2 * time.Second)
	check("a broken file", second, 200)
	clock.add(2 * time.Second)
	check("still broken", second, 200)
	if n := strings.Count(f.log.String(), "keys file cannot be used"); n != 1 {
		t.Errorf("a broken file is reported %d times, want once", n)
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := openbrain.RemoveKey(path, "second"); err != nil {
		t.Fatal(err)
	}
	clock.add(2 * time.Second)
	check("a revoked key", second, 401)
	check("a key that stays", first, 200)
	for range 3 {
		status(first)
	}
	check("a rate limit that a reading does not lift", first, 429)
	if err := openbrain.RemoveKey(path, "first"); err != nil {
		t.Fatal(err)
	}
	clock.add(2 * time.Second)
	check("no keys are left in the file", first, 401)
	check("a key of the configuration", mainKey, 200)
	check("nobody", "", 401)
	if strings.Contains(f.log.String(), first) || strings.Contains(f.log.String(), second) {
		t.Error("the log shows a key")
	}
}

// When the last key is revoked nobody gets in; a server that starts with such a file does not start.
func TestLastKeyRevoked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	secret, err := openbrain.AddKey(path, "only", []string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	clock := newClock()
	f := serve(t, nil, func(c *openbrain.Config) { c.KeysFile = path }, openbrain.WithClock(clock.Now))
	f.want(t, 200, secret, http.MethodGet, "/v1/stats", "", nil)
	if err := openbrain.RemoveKey(path, "only"); err != nil {
		t.Fatal(err)
	}
	clock.add(2 * time.Second)
	f.want(t, 401, secret, http.MethodGet, "/v1/stats", "", nil)
	f.want(t, 401, "", http.MethodGet, "/v1/stats", "", nil)
	if _, err := openbrain.ReadKeys(path); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("ReadKeys = %v, want ErrInvalid", err)
	}
}
