package imports

import (
	"context"
	"fmt"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/erased"
	"github.com/contextengine/contextengine/core/message"
)

// known is what a session has already. It holds no contents.
type known struct {
	// keys says of every idempotency key whether its entry was erased.
	keys map[string]bool
	// prints are the entries by fingerprint, gone is what was erased.
	prints map[string][]origin
	gone   *erased.Messages
	newest time.Time
	n      int
}

// origin is what the host says of a stored message.
type origin struct {
	key, id string
	time    time.Time
	taken   bool
}

// ingestedKey is what the engine puts in front of a host's idempotency key.
const ingestedKey = "k:"

// readKnown reads what a session has.
func readKnown(ctx context.Context, store core.Store, id core.SessionID) (*known, error) {
	k := &known{keys: make(map[string]bool), prints: make(map[string][]origin)}
	emptied := false
	for e, err := range core.All(ctx, store, id.Scope(), false) {
		if err != nil {
			return nil, fmt.Errorf("what session %q has: %w", id, err)
		}
		k.n++
		k.keys[e.Key] = e.Type == core.TypeErased
		if e.Type == core.TypeErased {
			emptied = true
			continue
		}
		if e.Time.After(k.newest) {
			k.newest = e.Time
		}
		k.prints[e.Fingerprint] = append(k.prints[e.Fingerprint], origin{key: e.Message.Key, id: e.Message.ID, time: e.Message.Time})
	}
	if !emptied {
		return k, nil
	}
	var err error
	if k.gone, err = erased.Read(ctx, store, id); err != nil {
		return nil, fmt.Errorf("what session %q has: %w", id, err)
	}
	return k, nil
}

func (k *known) empty() bool { return k.n == 0 }

// verdict says whether a message is stored.
type verdict int

const (
	isNew verdict = iota
	isStored
	isErased
)

// match finds a message among what is known: by its idempotency key, by what the host says of it, or by what its erasure left. What is stored
// once is not found again. key is the one that an import gives it.
func (k *known) match(m message.Message, key string) verdict {
	fp := message.Fingerprint(m)
	list := k.prints[fp]
	for i := range list {
		if !list[i].taken && list[i].same(m) {
			list[i].taken = true
			return isStored
		}
	}
	if gone, ok := k.keys[ingestedKey+key]; ok {
		if gone {
			return isErased
		}
		return isStored
	}
	if k.gone.Holds(m) {
		return isErased
	}
	return isNew
}

// same reports whether the host says that a stored message is m. Keys that an import made say nothing.
func (o *origin) same(m message.Message) bool {
	switch {
	case o.key != "" && m.Key != "":
		return o.key == m.Key
	case o.id != "" && m.ID != "":
		return o.id == m.ID
	}
	return !m.Time.IsZero() && o.time.Truncate(time.Millisecond).Equal(m.Time.Truncate(time.Millisecond))
}
