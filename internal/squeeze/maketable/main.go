// Command maketable makes the table of internal/squeeze from texts: pairs of neighbouring symbols that are frequent become symbols, again and again,
// and each symbol gets a code that is the shorter the more often it comes when texts are read by longest symbols.
//
//	go run ./internal/squeeze/maketable internal/squeeze/maketable/*.txt docs/*.md README.md > internal/squeeze/table.txt
//
// A table that was released is never changed: stored messages are read with it.
package main

import (
	"bufio"
	"cmp"
	"container/heap"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"strings"
)

const (
	// phrases is how many symbols there are besides the 256 single bytes.
	phrases = 1792
	// longest bounds what a learned symbol stands for, in bytes.
	longest = 12
	// maxBits bounds a code.
	maxBits = 13
	// words is what all words of the list weigh together, in bytes of text.
	words = 4_000_000
)

func main() {
	log.SetFlags(0)
	counts := map[string]int{}
	var frames []string
	for _, path := range os.Args[1:] {
		text, err := os.ReadFile(path)
		if err != nil {
			log.Fatal(err)
		}
		switch {
		case strings.HasSuffix(path, "words.txt"):
			list := strings.Fields(string(text))
			for i, w := range list {
				n := words / 60 / (i + 8) // as often as the word at this place of a list by frequency
				counts[" "+w] += n
				counts[" "+w+"."] += n / 12
				counts[" "+w+","] += n / 12
				counts[strings.ToUpper(w[:1])+w[1:]] += n / 12
			}
		case strings.HasSuffix(path, "frames.txt"):
			frames = strings.Split(strings.TrimSpace(string(text)), "\n")
		default:
			for _, w := range split(string(text)) {
				counts[w]++
			}
		}
	}
	symbols := learn(counts, phrases-len(frames))
	symbols = append(symbols, frames...)
	for b := range 256 {
		symbols = append(symbols, string([]byte{byte(b)}))
	}
	used := map[string]int{}
	known := map[string]bool{}
	for _, s := range symbols {
		known[s] = true
	}
	for w, n := range counts {
		for len(w) > 0 {
			k := min(len(w), longest)
			for k > 1 && !known[w[:k]] {
				k--
			}
			used[w[:k]] += n
			w = w[k:]
		}
	}
	total := 0
	for _, n := range used {
		total += n
	}
	for _, f := range frames {
		used[f] = total / 200 / len(frames) * 2
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	lengths := codes(symbols, used)
	slices.SortFunc(symbols, func(a, b string) int { return cmp.Or(cmp.Compare(lengths[a], lengths[b]), cmp.Compare(a, b)) })
	for _, s := range symbols {
		fmt.Fprintf(out, "%d %q\n", lengths[s], s)
	}
}

// split parts text into words, each with the space in front of it. Numbers and punctuation are words of their own.
func split(text string) []string {
	var out []string
	kind := func(b byte) int {
		switch {
		case b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '\'':
			return 1
		case b >= '0' && b <= '9':
			return 2
		case b == ' ':
			return 0
		case b >= 0x80:
			return 4
		}
		return 3
	}
	for i := 0; i < len(text); {
		j := i
		if text[j] == ' ' {
			j++
		}
		if j == len(text) {
			break
		}
		k := kind(text[j])
		for j < len(text) && kind(text[j]) == k {
			j++
		}
		if j == i {
			j++
		}
		if w := text[i:j]; len(w) <= 40 {
			out = append(out, w)
		}
		i = j
	}
	return out
}

// learn joins the most frequent pair of neighbouring symbols until there are n joined ones.
func learn(counts map[string]int, n int) []string {
	list := slices.Sorted(maps.Keys(counts))
	parts := make([][]string, len(list))
	pairs, where := map[[2]string]int{}, map[[2]string]map[int]bool{}
	tell := func(w, sign int) {
		for i := 1; i < len(parts[w]); i++ {
			p := [2]string{parts[w][i-1], parts[w][i]}
			if len(p[0])+len(p[1]) > longest {
				continue
			}
			pairs[p] += sign * counts[list[w]]
			if where[p] == nil {
				where[p] = map[int]bool{}
			}
			where[p][w] = true
		}
	}
	for w := range list {
		parts[w] = strings.Split(latin(list[w]), "")
		tell(w, 1)
	}
	var out []string
	for len(out) < n {
		var best [2]string
		for p, k := range pairs {
			if cmp.Or(cmp.Compare(k, pairs[best]), cmp.Compare(best[0]+"\x00"+best[1], p[0]+"\x00"+p[1])) > 0 {
				best = p
			}
		}
		if pairs[best] < 2 {
			break
		}
		joined := best[0] + best[1]
		if !slices.Contains(out, joined) {
			out = append(out, joined)
		}
		for w := range where[best] {
			tell(w, -1)
			p := parts[w]
			for i := 1; i < len(p); i++ {
				if p[i-1] == best[0] && p[i] == best[1] {
					p[i-1] = joined
					p = slices.Delete(p, i, i+1)
				}
			}
			parts[w] = p
			tell(w, 1)
		}
		delete(pairs, best)
	}
	return out
}

// latin keeps bytes apart that are one character.
func latin(w string) string {
	for i := range len(w) {
		if w[i] >= 0x80 {
			return w[:i]
		}
	}
	return w
}

// codes returns the length of each symbol's code in bits, by Huffman; rare ones are taken for less rare until none is longer than maxBits.
func codes(symbols []string, used map[string]int) map[string]int {
	for floor := 1; ; floor *= 2 {
		var h nodes
		for _, s := range symbols {
			h = append(h, &node{n: max(used[s], floor), symbol: s})
		}
		heap.Init(&h)
		for len(h) > 1 {
			a, b := heap.Pop(&h).(*node), heap.Pop(&h).(*node)
			heap.Push(&h, &node{n: a.n + b.n, symbol: min(a.symbol, b.symbol), a: a, b: b})
		}
		lengths := map[string]int{}
		h[0].measure(0, lengths)
		if slices.Max(slices.Collect(maps.Values(lengths))) <= maxBits {
			return lengths
		}
	}
}

// node is one of a tree of codes.
type node struct {
	n      int
	symbol string
	a, b   *node
}

func (n *node) measure(depth int, lengths map[string]int) {
	if n.a == nil {
		lengths[n.symbol] = depth
		return
	}
	n.a.measure(depth+1, lengths)
	n.b.measure(depth+1, lengths)
}

// nodes is a heap.
type nodes []*node

func (h nodes) Len() int      { return len(h) }
func (h nodes) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *nodes) Push(v any)   { *h = append(*h, v.(*node)) }
func (h nodes) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].n, h[j].n), cmp.Compare(h[i].symbol, h[j].symbol)) < 0
}

func (h *nodes) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
