package engine

import (
	"strings"

	"github.com/contextengine/contextengine/core"
)

// tries holds the entries that a call made at its first try, by the index of the message: a try after that makes what is not stored yet anew with the same
// id, key and time.
type tries map[int]try

// try is an entry as it was made first.
type try struct {
	core.Entry
	// stored is the id under which an earlier try stored it, or found it stored. A later one goes by that: an erasure meanwhile changes the key.
	stored string
}

// same gives an entry what it had at the first try, and reports whether there was one.
func (t tries) same(i int, entry *core.Entry) bool {
	if t == nil {
		return false
	}
	first, again := t[i]
	if again {
		entry.ID, entry.Time = first.ID, first.Time
		entry.Key = strings.ReplaceAll(first.Key, first.Fingerprint, entry.Fingerprint) // it was erased meanwhile, or is what it was
		return true
	}
	t[i] = try{Entry: *entry}
	return false
}

// note says under which id the store has an entry; "" that it is not there any more.
func (t tries) note(i int, id string) {
	if one, ok := t[i]; ok {
		one.stored = id
		t[i] = one
	}
}
