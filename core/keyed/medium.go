package keyed

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
)

// Medium keeps values under keys. Keys are printable ASCII. It is used by many goroutines at once.
type Medium interface {
	// Do runs f alone among all users of the medium, in this process and in others, with all that was kept before, and then keeps the changes that f returns:
	// all of them, for good, before it returns nil, or none. The caller has looked at ctx; f returns soon. When f fails nothing is kept and its error
	// is returned as it is. What the reader returned is not used after f, nor changed.
	Do(ctx context.Context, f func(Reader) ([]Change, error)) error
	// Close is called once, after the last Do.
	Close() error
}

// Reader shows what a medium keeps.
type Reader interface {
	// Get returns the value of a key.
	Get(key string) (value []byte, found bool, err error)
	// Range yields what is kept under the keys from one up to another, that one left out, in byte order or backwards. It stops at the first error.
	Range(from, to string, reverse bool) iter.Seq2[Pair, error]
}

// Pair is a value and its key.
type Pair struct {
	Key   string `json:"key"`
	Value []byte `json:"value,omitempty"`
}

// Change puts a value under a key, or takes the key away when there is no value.
type Change = Pair

// Map is a Reader in memory, for media that hold all they keep there, too. The zero value is empty. It is not safe for concurrent use.
type Map struct {
	keys   []string
	values map[string][]byte
}

var _ Reader = (*Map)(nil)

// Apply makes changes.
func (m *Map) Apply(changes []Change) {
	if m.values == nil {
		m.values = make(map[string][]byte)
	}
	for _, c := range changes {
		i, known := slices.BinarySearch(m.keys, c.Key)
		switch {
		case c.Value == nil && known:
			m.keys = slices.Delete(m.keys, i, i+1)
			delete(m.values, c.Key)
		case c.Value != nil && !known:
			m.keys = slices.Insert(m.keys, i, c.Key)
			m.values[c.Key] = c.Value
		case c.Value != nil:
			m.values[c.Key] = c.Value
		}
	}
}

// Get implements Reader.
func (m *Map) Get(key string) ([]byte, bool, error) {
	v, ok := m.values[key]
	return v, ok, nil
}

// Range implements Reader.
func (m *Map) Range(from, to string, reverse bool) iter.Seq2[Pair, error] {
	first, _ := slices.BinarySearch(m.keys, from)
	last, _ := slices.BinarySearch(m.keys, to)
	keys := m.keys[first:max(first, last)]
	return func(yield func(Pair, error) bool) {
		each := func(_ int, key string) bool { return yield(Pair{key, m.values[key]}, nil) }
		if reverse {
			slices.Backward(keys)(each)
		} else {
			slices.All(keys)(each)
		}
	}
}

// Memory is a Medium in this process; what it keeps is gone with it. The zero value is ready.
type Memory struct {
	mu   sync.Mutex
	data Map
}

var _ Medium = (*Memory)(nil)

// Do implements Medium.
func (m *Memory) Do(_ context.Context, f func(Reader) ([]Change, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	changes, err := f(&m.data)
	if err == nil {
		m.data.Apply(changes)
	}
	return err
}

// Close implements Medium.
func (m *Memory) Close() error { return nil }

// after is the first key behind all those that begin so.
func after(prefix string) string { return strings.TrimSuffix(prefix, "/") + "0" } // "0" follows "/"
