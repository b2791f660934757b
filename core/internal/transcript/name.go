package transcript

import (
	"slices"
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
			n.Calls += " " + strings.Map(inCallID, id)
		}
	}
	return n
}

// inCallID leaves out of an id what FullName does.
func inCallID(r rune) rune {
	if r < utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
		return -1
	}
	return r
}

// Calls is a digest of the ids of calls of a list of messages, as FullName has them: 0 where there are none.
type Calls uint64

// Add returns the digest of the list with another message behind it. It is reckoned for all of a window in each call, as FNV-1a without a copy of the ids.
func (c Calls) Add(m *message.Message) Calls {
	const offset, prime = 14695981039346656037, 1099511628211
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.CallID == "" || p.Kind != message.ToolCall && p.Kind != message.ToolResult {
			continue
		}
		if c == 0 {
			c = offset
		}
		for _, r := range p.CallID {
			if inCallID(r) >= 0 {
				c = (c ^ Calls(r)) * prime
			}
		}
		c = (c ^ ' ') * prime // ids do not run into each other
	}
	return c
}

// String returns the digest as text, "" where there are no calls.
func (c Calls) String() string {
	if c == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(c), 36)
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
	kind := n.Tells(other)
	return kind != 0 && n.equal(other, kind)
}

// SameOwn is Same without the ids of calls: hosts use those again.
func (n Name) SameOwn(other Name) bool {
	n.Calls, n.Of = "", ""
	return n.Same(other)
}

// Without returns a name without some of its kinds.
func (n Name) Without(kinds Kinds) Name {
	if kinds&byKey != 0 {
		n.Key = ""
	}
	if kinds&byID != 0 {
		n.ID = ""
	}
	if kinds&byTime != 0 {
		n.Time = time.Time{}
	}
	if kinds&byCalls != 0 {
		n.Calls = ""
	}
	return n
}

// Tells returns the kind that decides whether two names are one, 0 where they cannot be compared.
func (n Name) Tells(other Name) Kinds { return n.kinds().tells(other.kinds()) }

// Another reports whether the host says of two messages that they are two, whatever they say.
func (n Name) Another(other Name) bool {
	kind := n.Tells(other)
	return kind != 0 && !n.equal(other, kind)
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
	type named struct {
		as   string // what it says, and the name
		with Kinds
	}
	at, with := make(map[named][]int), make(map[string][]Kinds)
	for k, fp := range known {
		if fp == "" || times[fp] < least {
			continue
		}
		has := names[k].kinds()
		if !slices.Contains(with[fp], has) {
			with[fp] = append(with[fp], has)
		}
		for _, kind := range has.each() {
			n := named{fp + names[k].term(kind), has}
			at[n] = append(at[n], k)
		}
	}
	if len(at) == 0 {
		return known, host
	}
	knownAs, hostAs = slices.Clone(known), slices.Clone(host)
	for i, fp := range host {
		has := hosts[i].kinds()
		for _, kind := range has.each() {
			as := fp + hosts[i].term(kind)
			for _, other := range with[fp] {
				n := named{as, other}
				if has.tells(other) != kind {
					continue
				}
				// What has one name is as many messages.
				if of, ok := at[n]; ok {
					hostAs[i] = as
					for _, k := range of {
						knownAs[k] = as
					}
					at[n] = of[:0] // they are called so now
				}
			}
			if hostAs[i] != fp {
				break
			}
		}
	}
	return knownAs, hostAs
}

// Kinds are the parts that a name has.
type Kinds uint8

const (
	byKey Kinds = 1 << iota
	byID
	byTime
	byCalls
	byOf
	byBoth = byCalls | byOf
)

// Calls reports whether the ids of calls are among the kinds.
func (k Kinds) Calls() bool { return k&byCalls != 0 }

// Unnamed returns a message without what a host calls it by some kinds of names.
func (k Kinds) Unnamed(m *message.Message) *message.Message {
	out := *m
	if k&byKey != 0 {
		out.Key = ""
	}
	if k&byID != 0 {
		out.ID = ""
	}
	if k&byTime != 0 {
		out.Time = time.Time{}
	}
	if k&byCalls != 0 {
		out.Parts = slices.Clone(m.Parts)
		for i := range out.Parts {
			out.Parts[i].CallID = ""
		}
	}
	return &out
}

// OfCalls is the kind of the ids of calls.
const OfCalls = byCalls

// order is what counts for most first; calls and what they ask are one, and each alone.
var order = [...]Kinds{byKey, byID, byTime, byBoth, byCalls, byOf}

func (n Name) kinds() Kinds {
	var out Kinds
	if n.Key != "" {
		out |= byKey
	}
	if n.ID != "" {
		out |= byID
	}
	if !n.Time.IsZero() {
		out |= byTime
	}
	if n.Calls != "" {
		out |= byCalls
	}
	if n.Of != "" {
		out |= byOf
	}
	return out
}

// own are the kinds that a host makes up.
func (n Name) own() Kinds { return n.kinds() &^ byOf }

// each returns the kinds in order.
func (k Kinds) each() []Kinds {
	var out []Kinds
	for _, kind := range order {
		if k&kind == kind {
			out = append(out, kind)
		}
	}
	return out
}

// tells returns the kind that decides whether two names with these kinds are one, 0 for none.
func (k Kinds) tells(other Kinds) Kinds {
	for _, kind := range order {
		if k&other&kind == kind {
			return kind
		}
	}
	return 0
}

// equal compares two names by one kind that both have.
func (n Name) equal(other Name, kind Kinds) bool {
	switch kind {
	case byKey:
		return n.Key == other.Key
	case byID:
		return n.ID == other.ID
	case byTime:
		return n.Time.Equal(other.Time)
	case byCalls:
		return n.Calls == other.Calls
	case byOf:
		return n.Of == other.Of
	}
	return n.Calls == other.Calls && n.Of == other.Of
}

// term is a part of a name, in a form that no other has.
func (n Name) term(kind Kinds) string {
	switch kind {
	case byKey:
		return " k" + n.Key
	case byID:
		return " i" + n.ID
	case byTime:
		return " t" + strconv.FormatInt(n.Time.UnixNano(), 10)
	case byBoth:
		return " b" + n.Calls + " " + n.Of
	case byCalls:
		return " c" + n.Calls
	}
	return " o" + n.Of
}
