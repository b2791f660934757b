package transcript

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core/message"
)

// Name is by what a host knows a message.
type Name struct {
	Key, ID string
	Time    time.Time
	// Calls are the ids of the calls that the message makes or answers, Of is what the message says that makes those which it answers, where that is known: hosts use ids
	// again, turn by turn, or have none. Where these are looked at they count where the host has no name for the message.
	Calls, Of string
}

// NameOf returns a message's, without the ids of calls.
func NameOf(m *message.Message) Name { return Name{Key: m.Key, ID: m.ID, Time: m.Time} }

// FullName returns a message's name with the ids of its calls, in order: their letters and digits, since hosts and rules write the rest anew where a provider wants it.
func FullName(m *message.Message) Name {
	n := NameOf(m)
	for _, id := range CallIDs(m) {
		if id != "" {
			n.Calls += " " + strings.Map(func(r rune) rune {
				if r < utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
					return -1
				}
				return r
			}, id)
		}
	}
	return n
}

// CallIDs returns the ids of the calls that a message makes or answers, empty ones, too.
func CallIDs(m *message.Message) []string {
	var out []string
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == message.ToolCall || p.Kind == message.ToolResult {
			out = append(out, p.CallID)
		}
	}
	return out
}

// Same reports whether the host says of two messages that they are one and the same.
func (n Name) Same(other Name) bool {
	switch {
	case n.Key != "" && other.Key != "":
		return n.Key == other.Key
	case n.ID != "" && other.ID != "":
		return n.ID == other.ID
	case !n.Time.IsZero() && !other.Time.IsZero():
		return n.Time.Equal(other.Time)
	}
	if n.Calls != "" && other.Calls != "" && n.Calls != other.Calls || n.Of != "" && other.Of != "" && n.Of != other.Of {
		return false
	}
	return n.Calls != "" && other.Calls != "" || n.Of != "" && other.Of != ""
}

// SameOwn is Same without the ids of calls: hosts use those again.
func (n Name) SameOwn(other Name) bool {
	n.Calls, n.Of = "", ""
	return n.Same(other)
}

// Another reports whether the host says of two messages that they are two, whatever they say.
func (n Name) Another(other Name) bool {
	return !n.Same(other) && (n.Key != "" && other.Key != "" || n.ID != "" && other.ID != "" || !n.Time.IsZero() && !other.Time.IsZero() ||
		n.Calls != "" && other.Calls != "" || n.Of != "" && other.Of != "")
}

// byName tells apart, in what messages say, those that say the same and that the host calls by different names: known and host are returned with the name added where
// a message is among both, and what it says is among either at least so many times.
func byName(known, host []string, least int, names, hosts []Name) (knownAs, hostAs []string) {
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
		if fp == "" || times[fp] < least {
			continue
		}
		for _, name := range names[k].terms() {
			at[fp+name] = append(at[fp+name], k)
		}
	}
	if len(at) == 0 {
		return known, host
	}
	knownAs, hostAs = append([]string(nil), known...), append([]string(nil), host...)
	for i, fp := range host {
		name := hosts[i]
		for _, term := range name.terms() {
			for _, k := range at[fp+term] {
				if name.Same(names[k]) { // one of several: what has one name is as many messages
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
	if n.Calls != "" && n.Of != "" {
		out = append(out, " b"+n.Calls+" "+n.Of)
	}
	if n.Calls != "" {
		out = append(out, " c"+n.Calls)
	}
	if n.Of != "" {
		out = append(out, " o"+n.Of)
	}
	return out
}
