package transcript

import (
	"strconv"
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

// Another reports whether the host says of two messages that they are two, whatever they say.
func (n Name) Another(other Name) bool {
	return !n.Same(other) && (n.Key != "" && other.Key != "" || n.ID != "" && other.ID != "" || !n.Time.IsZero() && !other.Time.IsZero())
}

// byName tells apart, in what messages say, those that say the same and that the host calls by different names: known and host are returned with the name added where
// a message is among both, and what it says is among either more than once.
func byName(known, host []string, nameOf func(k int) Name, hostName func(i int) Name) (knownAs, hostAs []string) {
	times := make(map[string]int)
	for _, list := range [][]string{known, host} {
		in := make(map[string]int)
		for _, fp := range list {
			in[fp]++
			times[fp] = max(times[fp], in[fp])
		}
	}
	at := make(map[string][]int)
	for k, fp := range known {
		if fp == "" || times[fp] < 2 {
			continue
		}
		for _, name := range nameOf(k).terms() {
			at[fp+name] = append(at[fp+name], k)
		}
	}
	if len(at) == 0 {
		return known, host
	}
	knownAs, hostAs = append([]string(nil), known...), append([]string(nil), host...)
	for i, fp := range host {
		name := hostName(i)
		for _, term := range name.terms() {
			for _, k := range at[fp+term] {
				if name.Same(nameOf(k)) { // one of several: what has one name is as many messages
					hostAs[i], knownAs[k] = fp+term, fp+term
				}
			}
			if hostAs[i] != fp {
				break
			}
		}
	}
	return knownAs, hostAs
}

// terms are what a name consists of, each in a form that no other has.
func (n Name) terms() []string {
	var out []string
	if n.Key != "" {
		out = append(out, " k"+n.Key)
	}
	if n.ID != "" {
		out = append(out, " i"+n.ID)
	}
	if !n.Time.IsZero() {
		out = append(out, " t"+strconv.FormatInt(n.Time.UnixNano(), 10))
	}
	return out
}
