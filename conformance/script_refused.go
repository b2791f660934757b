package conformance

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// unknownRoles hands over messages of a role that there is not, in every call that takes messages: the message is the newest of three.
func (s *script) unknownRoles() string {
	id := recallSession("of unknown roles")
	for _, role := range []message.Role{"narrator", "", "USER"} {
		list := s.transcript(2).Messages
		odd := s.message("user", "is not to be told")
		odd.Role = role
		list = append(list, odd)
		calls := map[string]func() error{
			"ingest": func() error {
				_, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: odd})
				return err
			},
		}
		for name, read := range s.reads() {
			calls[name+" of a transcript"] = func() error { return read(id, &core.Transcript{Messages: list}) }
		}
		for name, way := range s.ways() {
			if name != "ingest" { // which stores those before
				calls[name] = func() error { return way(id, list) }
			}
		}
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			if err := s.heard(name, calls[name]()); !errors.Is(err, core.ErrInvalid) {
				return fmt.Sprintf("%s with a message of the role %q, which is none: error %v, want ErrInvalid", name, role, err)
			}
			if n := len(s.held(id)); n > 0 {
				return fmt.Sprintf("%s with a message of the role %q was refused, and %d entries are stored", name, role, n)
			}
		}
	}
	return ""
}
