package transcript

import (
	"time"

	"github.com/contextengine/contextengine/core/message"
)

// Name is by what a host knows a message.
type Name struct {
	Key, ID string
	Time    time.Time
}

// NameOf returns a message's.
func NameOf(m *message.Message) Name { return Name{m.Key, m.ID, m.Time} }

// Same reports whether the host says of two messages that they are one and the same.
func (n Name) Same(other Name) bool {
	switch {
	case n.Key != "" && other.Key != "":
		return n.Key == other.Key
	case n.ID != "" && other.ID != "":
		return n.ID == other.ID
	}
	return !n.Time.IsZero() && n.Time.Equal(other.Time)
}
