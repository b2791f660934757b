package transcript

import "github.com/contextengine/contextengine/core/message"

// Anew returns, for what each role says, the kinds of names that the host keeps from list to list, and those that it makes anew with every list: it has none of those that it
// had, although it shows such messages. One that says the same may be another one. listed are names of the list before, last are the kinds of which that was known before. Ids of calls are not among them.
func (in *Reading) Anew(known []Known, listed map[string]Name, last Kinds) (keeps, anew map[message.Role]Kinds) {
	const enough = 2 // messages that are there under other names
	keeps, anew = make(map[message.Role]Kinds), make(map[message.Role]Kinds)
	for _, kind := range [...]Kinds{byKey, byID, byTime} {
		names, says := make(map[string]bool), make(map[string]bool)
		for i := range known {
			if k := &known[i]; !k.Erased && k.Name.kinds()&kind != 0 {
				names[k.Name.term(kind)], says[k.Fingerprint] = true, true
			}
		}
		for _, name := range listed {
			if name.kinds()&kind != 0 {
				names[name.term(kind)] = true
			}
		}
		kept, others, all := make(map[message.Role]bool), make(map[message.Role]int), 0
		for _, r := range in.Rows {
			m := &in.t.Messages[r.Index]
			name := FullName(m)
			if r.Own || name.kinds()&kind == 0 {
				continue
			}
			kept[m.Role] = kept[m.Role] || names[name.term(kind)]
			if says[r.Fingerprint] {
				others[m.Role]++
				all++
			}
		}
		for role, is := range kept {
			if is {
				keeps[role] |= kind
				all = 0 // it keeps what others say
			}
		}
		for role, is := range kept {
			if !is && (max(all, others[role]) >= enough || last&kind != 0) {
				anew[role] |= kind
			}
		}
	}
	return keeps, anew
}
