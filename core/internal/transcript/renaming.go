package transcript

import "github.com/contextengine/contextengine/core/message"

// Renaming says, for each role, of which kinds of names a host has some that it had, and of which it makes all anew with every list. Ids of calls are not among them.
type Renaming struct{ Kept, Anew map[message.Role]Kinds }

// enough are the messages that have to be there under other names to show that the host makes those anew, since one that says the same may be another one; or one message that
// is not there under its name for the second time.
const enough = 2

// Renaming compares the names in a list with what is known and was not erased. last are the kinds that were made anew before.
func (in *Reading) Renaming(known []Known, last Kinds) Renaming {
	out := Renaming{make(map[message.Role]Kinds), make(map[message.Role]Kinds)}
	for _, kind := range [...]Kinds{byKey, byID, byTime} {
		names, says := make(map[string]bool), make(map[string]int)
		for i := range known {
			k := &known[i]
			if k.Erased || k.Name.kinds()&kind == 0 {
				continue
			}
			names[k.Name.term(kind)], says[k.Fingerprint] = true, max(says[k.Fingerprint], 1)
			if k.Renamed {
				says[k.Fingerprint] = enough
			}
		}
		others, all := make(map[message.Role]int), 0
		for _, r := range in.Rows {
			m := &in.t.Messages[r.Index]
			name := FullName(m)
			if r.Own || name.kinds()&kind == 0 {
				continue
			}
			if names[name.term(kind)] {
				out.Kept[m.Role] |= kind
			}
			others[m.Role] += says[r.Fingerprint]
			all += says[r.Fingerprint]
		}
		for _, kept := range out.Kept {
			if kept&kind != 0 {
				all = 0 // it keeps what others say
			}
		}
		for role, n := range others {
			if out.Kept[role]&kind == 0 && (max(all, n) >= enough && len(in.Rows) >= enough || last&kind != 0) {
				out.Anew[role] |= kind
			}
		}
	}
	return out
}

// Lost adds that so many erased messages of a role are there under other names, and none under its own. It says nothing of kinds that the host keeps of what others say.
func (r Renaming) Lost(role message.Role, n int) {
	if n < enough {
		return
	}
	anew := byKey | byID | byTime
	for _, kept := range r.Kept {
		anew &^= kept
	}
	r.Anew[role] |= anew
}
