package lexical

import (
	"strings"
	"unicode"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// actor is a speaker with a name.
type actor struct {
	name   string   // as it is written
	pieces []string // its words
}

// generic reports names that are roles, which queries use in another sense.
func generic(name string) bool {
	switch strings.ToLower(name) {
	case "", "user", "assistant", "system", "tool", "developer", "human", "agent", "bot", "ai", "model":
		return true
	}
	return false
}

// actorOf returns the id of who speaks in an entry.
func (s *segment) actorOf(e core.Entry) uint32 {
	id := s.actor(e.Message.Name)
	switch {
	case id != none:
	case e.Role == message.User && !e.Message.HasResults():
		return person
	case e.Role == message.Assistant && !e.Message.HasCalls():
		return helper
	}
	return id
}

// actor returns the id of the speaker of that name, none when it says nothing.
func (s *segment) actor(name string) uint32 {
	name = strings.TrimSpace(name)
	if generic(name) {
		return none
	}
	if id, ok := s.actorIDs[name]; ok {
		return id
	}
	id := uint32(len(s.actors))
	name = strings.Clone(name)
	a := actor{name: name}
	for p := range strings.FieldsFuncSeq(name, endsName) {
		if len(p) > 1 && !generic(p) {
			a.pieces = append(a.pieces, p)
		}
	}
	s.actors = append(s.actors, a)
	s.actorIDs[name] = id
	return id
}

// namedIn reports whether a query names the speaker: by one of the words of the name, or, where the name is written without
// spaces between words, anywhere. Names that are common words ("Will", "May") have to be written like the name.
func (a actor) namedIn(text string, words map[string]struct{}) bool {
	for _, p := range a.pieces {
		lower := strings.ToLower(p)
		_, ok := words[lower]
		if ok && isStopword(lower) {
			_, ok = words["="+p]
		}
		if ok {
			return true
		}
		for _, r := range p {
			if isDense(r) && strings.Contains(text, p) {
				return true
			}
		}
	}
	return false
}

// wordsOf returns the words of a query in lower case and, with "=" in front, as they are written.
func wordsOf(text string) map[string]struct{} {
	m := map[string]struct{}{}
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return endsName(r) || isDense(r) }) {
		w = strings.TrimSuffix(strings.Trim(w, "'-_"), "'s")
		m["="+w] = struct{}{}
		m[strings.ToLower(w)] = struct{}{}
	}
	return m
}

func endsName(r rune) bool {
	return r != '_' && r != '-' && r != '\'' && !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.Is(unicode.M, r)
}
