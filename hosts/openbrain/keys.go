package openbrain

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"
)

// Key is one bearer key. It holds a hash, never the key itself.
type Key struct {
	// Name says whose key it is; it stands in the access log.
	Name string `koanf:"name" json:"name" doc:"whose key it is, for the access log"`
	// SHA256 is what HashKey returns for the key.
	SHA256 string `koanf:"sha256" json:"sha256" doc:"hex SHA-256 of the key"`
	// Sources are patterns of the sources that the key may use; "*" in a pattern stands for any text.
	Sources []string `koanf:"sources" json:"sources" doc:"patterns of the sources the key may use; * stands for any text"`
	// Created is when the key was made, RFC 3339; it may be empty.
	Created string `koanf:"created" json:"created,omitempty" doc:"when the key was made, for people"`
}

// keyBytes is how much chance a key is made of.
const keyBytes = 32

// MakeKey returns a new random key for its owner, and what a configuration or a keys file holds instead of it. Nothing else
// knows the key: who loses it makes another one. The error wraps core.ErrInvalid when the name or a pattern cannot be used.
func MakeKey(name string, sources []string, now time.Time) (secret string, k Key, err error) {
	var b [keyBytes]byte
	_, _ = rand.Read(b[:]) // never fails: see crypto/rand
	secret = "ob_" + base64.RawURLEncoding.EncodeToString(b[:])
	k = Key{Name: name, SHA256: HashKey(secret), Sources: slices.Clone(sources), Created: now.UTC().Format(time.RFC3339)}
	if err := k.validate(); err != nil {
		return "", Key{}, invalid("key: " + err.Error())
	}
	return secret, k, nil
}

// HashKey returns what a configuration holds instead of a key: the SHA-256 of it, in hex. Keys should be random, of 32
// characters or more, as MakeKey's are; a guessable key is not made safe by its hash.
func HashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

func (k Key) validate() error {
	sum, err := hex.DecodeString(k.SHA256)
	switch {
	case k.Name == "" || len(k.Name) > 200 || strings.ContainsFunc(k.Name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("name must be printable text of at most 200 bytes")
	case err != nil || len(sum) != sha256.Size:
		return errors.New("sha256 must be 64 hex digits")
	case len(k.Sources) == 0:
		return errors.New(`sources must name at least one pattern; ["*"] allows all`)
	case slices.Contains(k.Sources, ""):
		return errors.New("sources must not hold an empty pattern")
	}
	return nil
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
