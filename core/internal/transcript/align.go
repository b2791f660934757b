package transcript

import "slices"

// Align matches the fingerprints of a host's transcript with those of the known entries: for each of host the index of the known
// entry it is, or -1. Matches increase. What is most alike wins: as many matches as possible, of those the ones in the fewest pieces, and among those the
// newest known entries, because hosts that do not show everything show the newest part. A known entry without a fingerprint is no anchor: it is passed over.
func Align(known, host []string) []int {
	if slices.Contains(known, "") {
		var at []int
		var anchors []string
		for i, f := range known {
			if f != "" {
				at, anchors = append(at, i), append(anchors, f)
			}
		}
		out := Align(anchors, host)
		for i, k := range out {
			if k >= 0 {
				out[i] = at[k]
			}
		}
		return out
	}
	out := make([]int, len(host))
	for i := range out {
		out[i] = -1
	}
	if len(known) == 0 || len(host) == 0 {
		return out
	}
	overlap := overlapLen(known, host)
	if overlap == min(len(known), len(host)) {
		for i := range overlap {
			out[i] = len(known) - overlap + i
		}
		return out
	}
	// Common ends are taken as they are; only what lies between is searched.
	end := 0
	for end < min(len(known), len(host)) && known[len(known)-1-end] == host[len(host)-1-end] {
		end++
	}
	begin := 0
	for begin < min(len(known), len(host))-end && known[begin] == host[begin] {
		out[begin] = begin
		begin++
	}
	// The end that both have may be older: what says the same was said since. Where it is not long it is searched, too.
	if back := max(end-mayRepeat, 0); (len(known)-begin-back)*(len(host)-begin-back) <= maxTable {
		end = back
	}
	for i := 1; i <= end; i++ {
		out[len(host)-i] = len(known) - i
	}
	between(known[begin:len(known)-end], host[begin:len(host)-end], begin, begin, out)
	if matched(out) > overlap {
		return out
	}
	for i := range out {
		out[i] = -1
	}
	for i := range overlap {
		out[i] = len(known) - overlap + i
	}
	return out
}

// rewound returns match for a list that may be what was said first as well as what was said last: nothing but the beginning of what is known, or, of a host that
// shows all it has, as much of the beginning as of the end. It is the beginning then, unless same, what the host calls its messages, says otherwise.
func rewound(known, host []string, match []int, whole bool, same func(k, i int) bool) []int {
	out := make([]int, len(host))
	n := 0
	for i := range out {
		out[i] = -1
	}
	for k := 0; k < len(known) && n < len(host) && (known[k] == "" || known[k] == host[n]); k++ {
		if known[k] != "" {
			out[n] = k
			n++
		}
	}
	if n == 0 || n < len(host) && (!whole || n < matched(match)) {
		return match
	}
	for i, k := range match {
		if k >= 0 && same(k, i) && (out[i] < 0 || !same(out[i], i)) {
			return match
		}
	}
	return out
}

// relink finds known entries for host messages that Align left over because the order changed: no message is stored again only because it
// stands elsewhere now. It returns for each of host the index of the known entry, or -1. Of several that say it, the one is taken that the host calls the same, and none
// that it calls another.
func relink(known, host []string, match []int, same, another func(k, i int) bool) []int {
	free := make(map[string][]int)
	taken := make([]bool, len(known))
	for _, k := range match {
		if k >= 0 {
			taken[k] = true
		}
	}
	for i, f := range known {
		if !taken[i] {
			free[f] = append(free[f], i)
		}
	}
	out := slices.Clone(match)
	take := func(i, at int) {
		out[i] = free[host[i]][at]
		free[host[i]] = slices.Delete(free[host[i]], at, at+1)
	}
	for i, k := range match {
		if k >= 0 {
			continue
		}
		if at := slices.IndexFunc(free[host[i]], func(k int) bool { return same(k, i) }); at >= 0 {
			take(i, at)
		}
	}
	for i, k := range out {
		if k >= 0 {
			continue
		}
		if at := slices.IndexFunc(free[host[i]], func(k int) bool { return !another(k, i) }); at >= 0 {
			take(i, at)
		}
	}
	return out
}

func matched(match []int) int {
	n := 0
	for _, k := range match {
		if k >= 0 {
			n++
		}
	}
	return n
}

// overlapLen returns the length of the longest beginning of host that known ends with.
func overlapLen(known, host []string) int {
	fail := make([]int, len(host))
	for i, k := 1, 0; i < len(host); i++ {
		for k > 0 && host[i] != host[k] {
			k = fail[k-1]
		}
		if host[i] == host[k] {
			k++
		}
		fail[i] = k
	}
	k := 0
	for _, f := range known {
		if k == len(host) {
			k = fail[k-1]
		}
		for k > 0 && f != host[k] {
			k = fail[k-1]
		}
		if f == host[k] {
			k++
		}
	}
	return k
}

// mayRepeat is how many messages at the end of two lists may be the same and not of one place.
const mayRepeat = 64

// maxTable bounds the table of the exact search; beyond it a greedy one is good enough.
const maxTable = 4 << 20

// What a cell of between's table says.
const (
	pairJoins uint8 = 1 << iota // the best that ends here joins this pair
	pairRuns                    // where it is joined, so is the pair right before it
	pairLeft                    // where it is not, the host's message is passed over
)

// between finds a longest common subsequence and writes it to out, shifted: of several that in the fewest pieces, since a list that holds together
// was said at one place.
func between(known, host []string, dk, dh int, out []int) {
	if len(known) == 0 || len(host) == 0 {
		return
	}
	if len(known)*len(host) > maxTable {
		greedy(known, host, dk, dh, out)
		return
	}
	const pair, none = 1 << 12, -1 << 30 // no table has as many runs as a pair counts
	w := len(host) + 1
	table := make([]uint8, (len(known)+1)*w)
	// The value of the best so far, and of the best that joins the last pair, for this row and the one before.
	best, last, bestUp, lastUp := make([]int32, w), make([]int32, w), make([]int32, w), make([]int32, w)
	for j := range w {
		last[j], lastUp[j] = none, none
	}
	for i := range known {
		best, bestUp, last, lastUp = bestUp, best, lastUp, last
		for j := range host {
			cell := &table[(i+1)*w+j+1]
			last[j+1] = none
			if known[i] == host[j] {
				if last[j+1] = bestUp[j] + pair; lastUp[j]+1 >= bestUp[j] {
					last[j+1], *cell = lastUp[j]+1+pair, pairRuns
				}
			}
			best[j+1] = max(last[j+1], best[j], bestUp[j+1])
			switch best[j+1] {
			case last[j+1]:
				*cell |= pairJoins
			case best[j]:
				*cell |= pairLeft // the known entry may be found further up: the newest ones count
			}
		}
	}
	runs := false
	for i, j := len(known), len(host); i > 0 && j > 0; {
		switch cell := table[i*w+j]; {
		case runs || cell&pairJoins != 0:
			runs = cell&pairRuns != 0
			i, j = i-1, j-1
			out[dh+j] = dk + i
		case cell&pairLeft != 0:
			j--
		default:
			i--
		}
	}
}

// greedy matches each host message with the next known entry that equals it.
func greedy(known, host []string, dk, dh int, out []int) {
	at := make(map[string][]int)
	for i, f := range known {
		at[f] = append(at[f], i)
	}
	next := 0
	for j, f := range host {
		list := at[f]
		for len(list) > 0 && list[0] < next {
			list = list[1:]
		}
		at[f] = list
		if len(list) > 0 {
			out[dh+j] = dk + list[0]
			next = list[0] + 1
		}
	}
}
