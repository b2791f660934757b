package transcript

import (
	"slices"

	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// matching compares what a host shows with what is known: what both say, and by what names.
type matching struct {
	// anchors and says are the fingerprints of the known entries that hosts show, "" of one that is no anchor, and of the rows. known and host are the same with the names
	// added where these tell several apart that say the same.
	anchors, says, known, host []string
	// names and hosts are those of both. blank says which rows say nothing, asks which are a user's.
	names, hosts []Name
	blank, asks  []bool
	// calls is, for each row that answers a call which the host shows, the row with that call, else -1; called the known entry that a known entry answers, or -1.
	calls, called []int
	// knownIDs and hostIDs are the ids of calls of both, also where hosts use them again; "" where rules may have made them others.
	knownIDs, hostIDs []string
	// The first rows are what the engine returned when the first anchors were known; given is 0 where they may be alike only.
	given, then int
	// anew are the kinds of names that the host made anew for messages which others of their names show to be the same.
	anew Kinds
}

// matching prepares the comparison of rows with the known entries at hard, whose fingerprints are anchors.
func (in *Reading) matching(known []Known, hard []int, anchors []string, rows []Row) *matching {
	m := matching{anchors: anchors, says: fingerprints(rows), blank: make([]bool, len(rows)), asks: make([]bool, len(rows))}
	ids := !again(known) && !in.again(rows) // else they say nothing
	names, called := namesOf(known, ids)
	m.names, m.called = make([]Name, len(hard)), make([]int, len(hard))
	m.knownIDs = make([]string, len(hard))
	at := make(map[int]int, len(hard))
	for i, k := range hard {
		at[k] = i
		m.names[i], m.called[i], m.knownIDs[i] = names[k], -1, known[k].Name.Calls
		if c, ok := at[called[k]]; ok {
			m.called[i] = c
		}
	}
	m.hosts, m.hostIDs, m.calls = in.names(rows, known, names, ids)
	for i, r := range rows {
		m.blank[i] = !r.Own && window.SaysNothing(in.t.Messages[r.Index])
		m.asks[i] = !r.Own && in.t.Messages[r.Index].Role == message.User
	}
	behind := func(r Row) bool { return r.Index >= in.given }
	if n := slices.IndexFunc(rows, behind); n > 0 && slices.ContainsFunc(rows[:n], func(r Row) bool { return r.Own }) {
		m.given, m.then = n, len(hard)
		if at := slices.IndexFunc(hard, func(k int) bool { return k >= in.then }); at >= 0 {
			m.then = at
		}
	}
	m.anew = m.madeAnew()
	for i := range m.names {
		m.names[i] = m.names[i].Without(m.anew)
	}
	for i := range m.hosts {
		m.hosts[i] = m.hosts[i].Without(m.anew)
	}
	m.known, m.host = byName(anchors, m.says, 2, m.names, inAll(m.says, m.hosts))
	return &m
}

// madeAnew returns the kinds of names that no message has any more, although some are the same by another kind and have both.
func (m *matching) madeAnew() Kinds {
	if !slices.ContainsFunc(m.hosts, func(n Name) bool { return len(n.own().each()) > 1 }) {
		return 0
	}
	var kept, gone Kinds
	for _, kind := range order {
		switch some, same := m.share(kind); {
		case same:
			kept |= kind
		case some:
			gone |= kind
		}
	}
	if gone == 0 || kept == 0 {
		return 0
	}
	const most = 8 // that say the same under one name are looked at
	at := make(map[string][]int)
	for k, fp := range m.anchors {
		for _, kind := range (m.names[k].kinds() & kept).each() {
			if as := fp + m.names[k].term(kind); len(at[as]) < most {
				at[as] = append(at[as], k)
			}
		}
	}
	var anew Kinds
	for i, fp := range m.says {
		has := m.hosts[i].kinds()
		for _, by := range (has & kept).each() {
			for _, k := range at[fp+m.hosts[i].term(by)] {
				anew |= has & m.names[k].kinds() & gone
			}
		}
	}
	return anew
}

// share reports whether both sides have names of a kind that a host makes up, and whether one of them is the same.
func (m *matching) share(kind Kinds) (some, same bool) {
	if kind&byOf != 0 {
		return false, false
	}
	has := func(n Name) bool { return n.kinds()&kind == kind }
	first := slices.IndexFunc(m.hosts, has)
	if first < 0 || !slices.ContainsFunc(m.names, has) {
		return false, false
	}
	// Most hosts keep the names that they give, so that the first message looked at tells.
	if slices.ContainsFunc(m.names, func(n Name) bool { return has(n) && n.equal(m.hosts[first], kind) }) {
		return true, true
	}
	there := make(map[string]bool)
	for k := range m.names {
		if has(m.names[k]) {
			there[m.names[k].term(kind)] = true
		}
	}
	return true, slices.ContainsFunc(m.hosts[first:], func(n Name) bool { return has(n) && there[n.term(kind)] })
}

// same reports whether a known entry and a row have one name.
func (m *matching) same(k, i int) bool { return m.names[k].Same(m.hosts[i]) }

// another reports whether a row may be another message than a known entry, although it says the same.
func (m *matching) another(k, i int) bool {
	return m.names[k].Another(m.hosts[i]) || m.blank[i] && !m.same(k, i)
}

// agreeing counts the matches that no name speaks against, and once more those that one speaks for; all says whether none has one against it.
func (m *matching) agreeing(match []int) (n int, all bool) {
	all = true
	for i, k := range match {
		switch {
		case k < 0:
		case m.another(k, i):
			all = false
		case m.same(k, i):
			n += 2
		default:
			n++
		}
	}
	return n, all
}

// renames returns the kinds of names of which every one that could be compared is another, where one message alone does not tell, and those that could be compared.
func (m *matching) renames(match []int) (anew, compared Kinds) {
	same, others := m.compared(match)
	if matched(match) < 2 {
		return m.anew, same | others
	}
	return others&^same | m.anew, same | others
}

// compared returns the kinds by which matched messages have the same names, and those by which they have others.
func (m *matching) compared(match []int) (same, others Kinds) {
	for i, k := range match {
		switch {
		case k < 0:
		case m.same(k, i):
			same |= m.names[k].Tells(m.hosts[i])
		default:
			others |= m.renamed(k, i)
		}
	}
	return same &^ byOf, others
}

// renamed returns the kind by which a message may be a known one that has another name now. What it answers is no name.
func (m *matching) renamed(k, i int) Kinds {
	known, host := &m.names[k], &m.hosts[i]
	kind := known.Tells(*host)
	if kind&byBoth != 0 && known.Of != "" && host.Of != "" && known.Of != host.Of {
		return 0
	}
	return kind &^ byOf
}

// align is Align, unless that matches messages that the host calls by other names although more would be matched whose names do not speak against it: polls are alike,
// turn by turn.
func (m *matching) align() []int {
	match := Align(m.known, m.host)
	agreeing, all := m.agreeing(match)
	if all {
		return match
	}
	if m.given > 0 { // what came behind it came since
		match = append(Align(m.known[:m.then], m.host[:m.given]), Align(m.known[m.then:], m.host[m.given:])...)
		for i := m.given; i < len(match); i++ {
			if match[i] >= 0 {
				match[i] += m.then
			}
		}
		return match
	}
	// What has another name than all that say the same matches none of them here; what cannot be compared with one of them may.
	with := make(map[string][]Kinds)
	for k, fp := range m.anchors {
		if has := m.names[k].kinds(); !slices.Contains(with[fp], has) {
			with[fp] = append(with[fp], has)
		}
	}
	known, host := byName(m.anchors, m.says, 1, m.names, m.hosts)
	host = slices.Clone(host)
	for i, fp := range m.says {
		has := m.hosts[i].kinds()
		if host[i] == fp && (m.blank[i] || !slices.ContainsFunc(with[fp], func(other Kinds) bool { return has.tells(other) == 0 })) {
			host[i] = fp + " another"
		}
	}
	strict := Align(known, host)
	if n, _ := m.agreeing(strict); n <= agreeing {
		return match
	}
	Fill(strict, m.known, m.host) // what lies between may be known under other names
	return strict
}

// Fill aligns what lies between the matches, whose known and host are given.
func Fill(match []int, known, host []string) {
	k, i := 0, 0
	for end := 0; end <= len(host); end++ {
		to := len(known)
		if end < len(host) {
			if match[end] < 0 {
				continue
			}
			to = match[end]
		}
		for n, of := range Align(known[k:to], host[i:end]) {
			if of >= 0 {
				match[i+n] = k + of
			}
		}
		k, i = to+1, end+1
	}
}

// apart takes back matches of messages that may have said the same, where what stands beside them does not bear them out: that is what no name speaks against, or what is
// borne out itself; anything that is matched, where no message has a name of the same kind that it had. That both stand first bears a match out where something else is known, or
// nothing was said behind it: sessions begin alike. A result whose call is shown, and is another one, is another one. So is what a user says at the end in the words of a turn that was taken back, where
// the host calls it otherwise and others as it did.
func (m *matching) apart(match []int) {
	m.calledAgain(match)
	for i, k := range match {
		if k >= 0 && m.another(k, i) && m.calls[i] >= 0 && m.called[k] >= 0 && match[m.calls[i]] != m.called[k] {
			match[i] = -1
		}
	}
	next := func(k int) int { // the anchor behind k
		for k++; k < len(m.anchors) && m.anchors[k] == ""; k++ {
		}
		return k
	}
	same, _ := m.compared(match)
	sure := make([]bool, len(match))
	for i, k := range match {
		sure[i] = k >= 0 && (!m.another(k, i) || i == 0 && next(-1) == k && (next(k) == len(m.anchors) || matched(match) > 1))
	}
	beside := func(i, j int) bool { // i stands right in front of j, here and there
		return i >= 0 && j < len(match) && match[i] >= 0 && match[j] >= 0 && next(match[i]) == match[j]
	}
	bears := func(i, j int) bool { // i bears out j, where it stands beside it
		if sure[i] {
			return true
		}
		kind := m.renamed(match[j], j)
		return same == 0 || kind != 0 && same&kind == 0
	}
	for i := range match {
		sure[i] = sure[i] || beside(i-1, i) && bears(i-1, i)
	}
	for i := range slices.Backward(match) {
		sure[i] = sure[i] || beside(i, i+1) && bears(i+1, i)
	}
	for i := range match {
		if !sure[i] {
			match[i] = -1
		}
	}
	end := len(match)
	for end > 0 && m.asks[end-1] {
		end--
	}
	asked := slices.Clone(match[:end])
	for i := range asked {
		if !m.asks[i] {
			asked[i] = -1
		}
	}
	kept, others := m.compared(asked)
	same &^= others &^ kept // a user's messages are called otherwise each time
	for i := len(match) - 1; i >= end; i-- {
		k := match[i]
		if k >= 0 && (next(k) == len(m.anchors) || !m.another(k, i) || m.renamed(k, i)&same == 0) {
			return
		}
		match[i] = -1
	}
}

// calledAgain takes back matches of calls under other ids all of whose results are others: the same was called again, and what is shown of it would answer another call.
func (m *matching) calledAgain(match []int) {
	answered, shown, borne := make([]bool, len(m.anchors)), make([]bool, len(match)), make([]bool, len(match))
	for _, k := range m.called {
		if k >= 0 {
			answered[k] = true
		}
	}
	for i, call := range m.calls {
		if call >= 0 {
			shown[call] = true
			borne[call] = borne[call] || match[i] >= 0 && m.called[match[i]] == match[call]
		}
	}
	for i, k := range match {
		if k >= 0 && shown[i] && answered[k] && !borne[i] && m.hostIDs[i] != "" && m.hostIDs[i] != m.knownIDs[k] {
			match[i] = -1
		}
	}
}

// callers tells which of the messages so far made a call.
type callers map[string]int

// of returns the message that made the call which a result answers first, -1 for none, and notes that message n makes calls itself.
func (c callers) of(role message.Role, ids []string, n int) int {
	if len(ids) == 0 {
		return -1
	}
	if role == message.Tool {
		if at, ok := c[ids[0]]; ok {
			return at
		}
		return -1
	}
	for _, id := range ids {
		c[id] = n
	}
	return -1
}

// again reports whether two of the known calls have one id: some hosts use ids again in each turn.
func again(known []Known) bool {
	made := make(map[string]bool)
	for i := range known {
		if k := &known[i]; k.Role == message.Assistant && repeats(made, k.Calls) {
			return true
		}
	}
	return false
}

// again reports whether two of the host's calls have one id.
func (in *Reading) again(rows []Row) bool {
	made, last := make(map[string]bool), -1
	for _, r := range rows {
		m := &in.t.Messages[r.Index]
		if r.Index != last && m.Role == message.Assistant && repeats(made, CallIDs(m)) {
			return true
		}
		last = r.Index
	}
	return false
}

// repeats reports whether one of the ids was seen before, or is among them twice, and notes them.
func repeats(seen map[string]bool, ids []string) bool {
	for _, id := range ids {
		if id != "" && seen[id] {
			return true
		}
		seen[id] = true
	}
	return false
}

// namesOf returns the names of known entries, those of results with what they answer, and which entry that is, or -1.
func namesOf(known []Known, ids bool) (out []Name, called []int) {
	out, called = make([]Name, len(known)), make([]int, len(known))
	made := callers{}
	for i := range known {
		k := &known[i]
		if k.Erased && k.Role == message.Assistant {
			clear(made) // nobody knows what it called
		}
		out[i] = k.Name
		if called[i] = made.of(k.Role, k.Calls, i); called[i] >= 0 {
			out[i].Of = known[called[i]].Fingerprint
		}
		if !ids {
			out[i].Calls = ""
		}
	}
	return out, called
}

// names returns those of the host's messages, with the ids of calls, where they tell, and with what results answer. In what the engine returned rules may have made the
// ids others, and merged a result with others: there these count where they are known, names being those of the known. raw are the ids also where they do not tell, calls the rows that
// make the calls which rows answer, or -1.
func (in *Reading) names(rows []Row, known []Known, names []Name, ids bool) (out []Name, raw []string, calls []int) {
	type place struct{ says, calls, of string }
	there := make(map[place]bool)
	if in.output == 0 && !slices.ContainsFunc(rows, func(r Row) bool { return r.Own }) {
		known = nil // nothing of the engine's own is among the rows
	}
	for k := range known {
		if p := (place{known[k].Fingerprint, names[k].Calls, names[k].Of}); p.calls+p.of != "" {
			there[p], there[place{p.says, p.calls, ""}], there[place{p.says, "", p.of}] = true, true, true
		}
	}
	out, raw, calls = make([]Name, len(rows)), make([]string, len(rows)), make([]int, len(rows))
	made := callers{}
	for i, r := range rows {
		m := &in.t.Messages[r.Index]
		row := i
		if i > 0 && rows[i-1].Index == r.Index || i+1 < len(rows) && rows[i+1].Index == r.Index {
			row = -1 // one of several that a message shows
		}
		n := FullName(m)
		raw[i] = n.Calls
		if calls[i] = made.of(m.Role, CallIDs(m), row); calls[i] >= 0 {
			n.Of = rows[calls[i]].Fingerprint
		}
		if !ids {
			n.Calls = ""
		}
		if (r.Own || r.Index < in.output) && !there[place{r.Fingerprint, n.Calls, n.Of}] {
			n.Calls, n.Of, raw[i] = "", "", ""
		}
		if r.Own { // what it is called is the engine's own doing
			n = Name{Calls: n.Calls, Of: n.Of}
		}
		out[i] = n
	}
	return out, raw, calls
}

// inAll leaves out of names what not all have whose messages say the same: one without could not be told from another one.
func inAll(says []string, names []Name) []Name {
	calls, of := make(map[string]bool), make(map[string]bool)
	for i, fp := range says {
		calls[fp] = calls[fp] || names[i].Calls == ""
		of[fp] = of[fp] || names[i].Of == ""
	}
	out := slices.Clone(names)
	for i, fp := range says {
		if calls[fp] {
			out[i].Calls = ""
		}
		if of[fp] {
			out[i].Of = ""
		}
	}
	return out
}
