package core

import "slices"

// align matches the fingerprints of a host's transcript with those of the known entries: for each of host the index of the known
// entry it is, or -1. Matches increase. What is most alike wins: as many matches as possible, and among those the newest known entries, because
// hosts that do not show everything show the newest part. A known entry without a fingerprint is no anchor: it is passed over.
func align(known, host []string) []int {
	if slices.Contains(known, "") {
		var at []int
		var anchors []string
		for i, f := range known {
			if f != "" {
				at, anchors = append(at, i), append(anchors, f)
			}
		}
		out := align(anchors, host)
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
		out[len(host)-end] = len(known) - end
	}
	begin := 0
	for begin < min(len(known), len(host))-end && known[begin] == host[begin] {
		out[begin] = begin
		begin++
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

// relink finds known entries for host messages that align left over because the order changed: no message is stored again only because it
// stands elsewhere now. It returns for each of host the index of the known entry, or -1.
func relink(known, host []string, match []int) []int {
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
	for i, k := range match {
		if k >= 0 || len(free[host[i]]) == 0 {
			continue
		}
		out[i] = free[host[i]][0]
		free[host[i]] = free[host[i]][1:]
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

// maxTable bounds the table of the exact search; beyond it a greedy one is good enough.
const maxTable = 4 << 20

// between finds a longest common subsequence and writes it to out, shifted.
func between(known, host []string, dk, dh int, out []int) {
	if len(known) == 0 || len(host) == 0 {
		return
	}
	if len(known)*len(host) > maxTable {
		greedy(known, host, dk, dh, out)
		return
	}
	w := len(host) + 1
	table := make([]int32, (len(known)+1)*w)
	for i := range known {
		for j := range host {
			at := (i+1)*w + j + 1
			if known[i] == host[j] {
				table[at] = table[at-w-1] + 1
			} else {
				table[at] = max(table[at-1], table[at-w])
			}
		}
	}
	for i, j := len(known), len(host); i > 0 && j > 0; {
		at := i*w + j
		switch {
		case known[i-1] == host[j-1]:
			i, j = i-1, j-1
			out[dh+j] = dk + i
		case table[at-1] >= table[at-w]:
			j-- // the known entry may be found further up: the newest ones count
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
