package transcript

import (
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// Known is what has to be known of an entry on the path.
type Known struct {
	Owner       core.SessionID
	Seq         int64
	Fingerprint string
	// Erased entries are known by what they leave, see package erased; Origin is by what the host knew them.
	Erased bool
	Origin string
	// Soft entries are the engine's own or hidden, or stand in front: a host does not show them, and their absence means nothing. An erased entry is one
	// unless the host still has it.
	Soft bool
	// Leads says that it is a system message that stands in front, or did; Stray that it is no anchor, see head.go. ID and Key are its entry's, Name its message's.
	Leads, Stray bool
	Role         message.Role
	ID, Key      string
	// Name is its message's FullName, or what the host called it since; Calls are the ids of the calls that it makes, or answers.
	Name  Name
	Calls []string
	// Alike are the messages of the list that say what an erased entry said, and that the host calls otherwise: one that stands in its place is it, see inPlace. Anew
	// are the kinds of names that tell nothing of it, 0 where one does, Learnt says that one of the messages was found to be it.
	Alike  []int
	Anew   Kinds
	Learnt bool
}

// Mark is a key of core.Entry.Meta and what it says.
type Mark struct{ Key, Value string }

// Plan is how a path goes on: what it is made of, in order.
type Plan struct {
	Course
	// Host are the indexes of the transcript's messages that count, Hard those of the known entries that a host shows.
	Host, Hard []int
	Known      []Known
	// Leaders stand in front from now on, unless there are none.
	Leaders []Leader
	// Keep is how many entries at the beginning of the path stay whatever follows.
	Keep int
	// Renames are the kinds of names of which the host has others for all that it shows, Compared those of which it shows any that could be compared.
	Renames, Compared Kinds
	// Called are the messages of which the host has another name now, Listed those of the end of the list that are known, by the index among Known.
	Called, Listed map[int]int
}

// Plan compares the rows with what is known of the path of v.
func (in *Reading) Plan(v *core.View, known []Known) Plan {
	rows := withoutEchoes(known, in.Rows, in.t.Messages, in.output)
	hard := make([]int, 0, len(known))
	kf := make([]string, 0, len(known))
	strays := make(map[int]string)
	var l links
	for i, k := range known {
		if k.Soft {
			continue
		}
		fp := k.Fingerprint
		if k.Stray {
			fp, strays[len(kf)] = "", k.Fingerprint // no anchor
		}
		if hard, kf = append(hard, i), append(kf, fp); i < in.reach {
			l.reach = len(hard)
		}
		l.roles, l.strays = append(l.roles, k.Role), append(l.strays, k.Stray)
	}
	m := in.matching(known, hard, kf, rows)
	match := m.align()
	if len(rows) > 0 && !rows[0].Gap {
		match = rewound(m.known, m.host, match, in.t.Whole, m.same)
	}
	m.apart(match)
	linked := relink(kf, m.says, match, m.same, m.another)
	m.calledAgain(linked)
	claimStrays(strays, m.says, match, linked, func(k, i int) bool { return rows[i].Index < in.given || m.same(k, i) })
	if in.inPlace(known, hard, linked, rows) {
		return in.Plan(v, known)
	}
	// What the engine made of an entry that is not in force is no new message.
	for i, r := range rows {
		if !r.Own || linked[i] >= 0 {
			l.host, l.match, l.linked = append(l.host, r.Index), append(l.match, match[i]), append(l.linked, linked[i])
			if r.Index < in.output {
				l.output = len(l.host)
			}
			l.own, l.gap, l.fillers = append(l.own, r.Own), append(l.gap, r.Gap), append(l.fillers, r.Fillers)
			l.same = append(l.same, linked[i] >= 0 && m.names[linked[i]].SameOwn(m.hosts[i]))
		}
	}
	l.fillers = append(l.fillers, in.end)
	p := Plan{Course: compose(l, in.t), Host: l.host, Hard: hard, Known: known, Leaders: in.leaders}
	p.Renames, p.Compared = m.renames(linked)
	p.Called, p.Listed = called(m, linked, known, hard, rows), listed(linked, hard, rows)
	if len(in.t.Messages) > 0 && in.t.Messages[0].Role == message.System {
		p.Keep = v.Lead
		if len(p.Leaders) == 0 && p.CommonPrefix() == 0 {
			p.Leaders = LeadersOf(v) // the path begins anew behind the same ones
		}
	}
	if len(hard) == 0 && len(rows) > 0 && rows[0].Gap && len(rows[0].Fillers) == 0 {
		p.Keep = len(known) // a list that goes on behind what no host shows takes nothing back
	}
	return p
}

// inPlace takes messages that are new so far for erased entries that said the same: where both stand between the same two, or, if no name tells anything, right behind one
// that the host calls otherwise now, too. It reports whether there were any.
func (in *Reading) inPlace(known []Known, hard, linked []int, rows []Row) bool {
	if !slices.ContainsFunc(known, func(k Known) bool { return len(k.Alike) > 0 }) {
		return false
	}
	rowOf := make(map[int]int, len(linked))
	front, behind := make([]int, len(rows)), make([]int, len(rows)) // the last one known of what stands in front of a row, the first one of what stands behind it
	last := -1
	for i, k := range linked {
		if front[i] = last; k >= 0 && !known[hard[k]].Stray {
			rowOf[hard[k]], last = i, max(last, hard[k])
		}
	}
	first := len(known)
	for i, k := range slices.Backward(linked) {
		if behind[i] = first; k >= 0 && !known[hard[k]].Stray {
			first = min(first, hard[k])
		}
	}
	h, to := len(hard), len(rows)
	for i, k := range slices.Backward(known) {
		for h > 0 && hard[h-1] >= i {
			h--
		}
		if len(k.Alike) == 0 || k.Leads {
			continue
		}
		end := in.endOf(known, i, hard, h, rowOf, rows)
		for r, row := range slices.Backward(rows[:to]) {
			if linked[r] >= 0 || row.Own || front[r] >= i || behind[r] <= i || to == len(rows) && behind[r] == len(known) && r > end || !slices.Contains(k.Alike, row.Index) {
				continue
			}
			k := &known[i]
			k.Fingerprint, k.Name, k.Soft, k.Alike, k.Learnt = row.Fingerprint, FullName(&in.t.Messages[row.Index]), false, nil, true
			to = r
			break
		}
	}
	return to < len(rows)
}

// endOf returns the last row at which an erased entry may stand if nothing behind it is there: as far behind the one in front, the h-th of the hard ones, as it stands behind that,
// if the host calls that otherwise now by what tells nothing, or, where that was erased too, by more than the two have in common; -1 where it does not.
func (in *Reading) endOf(known []Known, i int, hard []int, h int, rowOf map[int]int, rows []Row) int {
	anew := known[i].Anew
	for h > 0 && known[hard[h-1]].Stray {
		h--
	}
	switch {
	case anew == 0 || h == 0 && len(hard) > 0:
		return -1
	case h == 0:
		return i // everything was erased
	}
	before := hard[h-1]
	r, ok := rowOf[before]
	if !ok {
		return -1
	}
	was, is := known[before].Name.Without(^anew), FullName(&in.t.Messages[rows[r].Index]).Without(^anew)
	if was.Same(is) && (!known[before].Erased || is.kinds()&^was.kinds() == 0) { // of an erased one the name is what the two have in common
		return -1
	}
	return r + i - before
}

// called returns the messages that the host calls otherwise than what they are linked with.
func called(m *matching, linked []int, known []Known, hard []int, rows []Row) map[int]int {
	out := make(map[int]int)
	for i, k := range linked {
		if i > 0 && rows[i-1].Index == rows[i].Index || i+1 < len(rows) && rows[i+1].Index == rows[i].Index {
			continue // it shows several
		}
		if k < 0 || rows[i].Own {
			continue
		}
		if known[hard[k]].Learnt || m.names[k].Another(m.hosts[i]) && m.renamed(k, i) != 0 {
			out[hard[k]] = rows[i].Index
		}
	}
	return out
}

// listed returns which of the newest messages of a list are known ones.
func listed(linked, hard []int, rows []Row) map[int]int {
	const newest = 256
	out := make(map[int]int)
	for i := max(0, len(rows)-newest); i < len(rows); i++ {
		if k := linked[i]; k >= 0 && !rows[i].Own {
			out[hard[k]] = rows[i].Index
		}
	}
	return out
}

// News returns the messages to store, in the order strays, conversation, leaders, and the marks of their entries. The first one gets position next.
func (p *Plan) News(id core.SessionID, next int64, t *core.Transcript) ([]message.Message, map[int]Mark) {
	var messages []message.Message
	for _, i := range p.Strays {
		messages = append(messages, t.Messages[p.Host[i]])
	}
	for _, st := range p.Order {
		if st.Host >= 0 {
			messages = append(messages, t.Messages[p.Host[st.Host]])
		}
	}
	marks := leadMarks(id, p.Leaders, len(messages), next)
	for _, l := range p.Leaders {
		if l.Host >= 0 {
			messages = append(messages, t.Messages[l.Host])
		}
	}
	for i := range p.Strays {
		// In front of everything they are conversation like any other.
		mark := Mark{MetaBefore, p.placeOf(p.At[i])}
		if p.At[i] > 0 || !t.Whole && slices.ContainsFunc(p.Known[:p.Hard[0]], func(k Known) bool { return k.Erased }) {
			mark.Key = MetaStray
		}
		marks[i] = mark
	}
	i, before := len(p.Strays)+p.fresh(), ""
	for _, st := range slices.Backward(p.Order) {
		if st.Known >= 0 {
			before = p.placeOf(st.Known)
			continue
		}
		if i--; before != "" {
			marks[i] = Mark{MetaBefore, before}
		}
	}
	return messages, marks
}

// Keys returns the keys of a session's entries that stay on the path.
func (p *Plan) Keys(id core.SessionID) map[string]bool {
	out := make(map[string]bool)
	stay := func(list ...Known) {
		for _, k := range list {
			if k.Owner == id {
				out[k.Key] = true
			}
		}
	}
	stay(p.Known[:p.CommonPrefix()]...)
	for _, st := range p.Order {
		if st.Known >= 0 {
			stay(p.Known[p.Hard[st.Known]])
			stay(p.softRun(st.Known)...)
		}
	}
	for _, k := range p.Known {
		if k.Leads { // also where the path begins anew
			stay(k)
		}
	}
	return out
}

// GivenUp returns the positions of a session's own entries that a whole list has others for: nothing that is stored for it tells. What it shows elsewhere stays.
func (p *Plan) GivenUp(id core.SessionID) map[int64]bool {
	if p.Superseded == 0 {
		return nil
	}
	stays := make(map[int]bool)
	for _, st := range p.Order {
		stays[st.Known] = true
	}
	out := make(map[int64]bool)
	for hard, i := range p.Hard[:p.Superseded] {
		if k := &p.Known[i]; k.Owner == id && !stays[hard] {
			out[k.Seq] = true
		}
	}
	return out
}

// fresh counts the steps that are new messages.
func (p *Plan) fresh() int {
	n := 0
	for _, st := range p.Order {
		if st.Host >= 0 {
			n++
		}
	}
	return n
}

// placeOf names the place of a hard entry.
func (p *Plan) placeOf(hard int) string {
	k := &p.Known[p.Hard[hard]]
	return PlaceName(k.Owner, k.Seq)
}

// Moves reports whether known entries behind the common beginning stay in force.
func (p *Plan) Moves(common int) bool {
	return slices.ContainsFunc(p.Order, func(st Step) bool { return st.Known >= 0 && p.Hard[st.Known] >= common })
}

// Anew reports whether nothing stays of what was in force behind the first lead entries: the host began anew.
func (p *Plan) Anew(lead int) bool {
	return !slices.ContainsFunc(p.Order, func(st Step) bool { return st.Known >= 0 && p.Hard[st.Known] >= lead })
}

// CommonPrefix returns how many entries at the beginning of the path stay where they are.
func (p *Plan) CommonPrefix() int {
	n := 0
	for n < len(p.Order) && n < len(p.Hard) && p.Order[n].Known == n {
		n++
	}
	if len(p.Hard)+len(p.Order) == 0 {
		return len(p.Known) // there is nothing that could be missing
	}
	if n == 0 {
		// Soft entries in front of everything stay only if something behind them does.
		return min(p.Keep, len(p.Known))
	}
	if n == len(p.Hard) {
		return len(p.Known)
	}
	return p.Hard[n-1] + 1 + len(p.softRun(n-1))
}

// softRun returns the soft entries right behind a hard one.
func (p *Plan) softRun(hard int) []Known {
	from := p.Hard[hard] + 1
	to := len(p.Known)
	if hard+1 < len(p.Hard) {
		to = p.Hard[hard+1]
	}
	return p.Known[from:to]
}

// SoftAfter returns the soft entries right behind each of the hard ones that has some.
func (p *Plan) SoftAfter() map[int][]Known {
	out := make(map[int][]Known)
	for i := range p.Hard {
		if run := p.softRun(i); len(run) > 0 {
			out[i] = run
		}
	}
	return out
}
