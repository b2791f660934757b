package squeeze

import (
	"cmp"
	_ "embed"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The table has a symbol a line, its code's length in bits in front. Single bytes are among them, so that anything can be written. It was made by
// maketable and is never changed: what is stored is read with it.
//
//go:embed table.txt
var text string

const (
	// maxBits bounds a code.
	maxBits = 13
	// maxCells bounds the tree of symbols.
	maxCells = 1 << 13
	// headSize is how many bytes of a symbol are copied at once.
	headSize = 16
)

// code is what is written for a symbol, lowest bit first.
type code struct {
	bits   uint16
	length uint8
}

// read is the symbol whose code some bits begin with, the length of the code in bits and of the symbol in bytes.
type read struct {
	symbol       uint16
	length, size uint8
}

// cell is where a byte leads to from a node of the tree of symbols: to the node, if from is where the byte was read. The cell of another byte lies next
// and as many places behind it as the byte says.
type cell struct {
	node, from, next uint16
	// symbol is the one that ends here, 0 for none.
	symbol uint16
}

// table is what Append and Expand go by. The first 256 symbols are the single bytes. The tree's root is node 1, with its cells from 0 on.
type table struct {
	symbols []string
	// heads are the beginnings of symbols.
	heads   [][headSize]byte
	codes   []code
	reads   [1 << maxBits]read
	longest int
	cells   [maxCells]cell
}

var theTable = sync.OnceValue(func() *table { return newTable(text) })

func newTable(text string) *table {
	t := &table{symbols: make([]string, 256), heads: make([][headSize]byte, 256), codes: make([]code, 256)}
	tree := branches{{}, {}}
	next, length := 0, 0
	for line := range strings.Lines(text) {
		size, quoted, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err1 := strconv.Atoi(size)
		symbol, err2 := strconv.Unquote(quoted)
		if err1 != nil || err2 != nil || n < length || n > maxBits || symbol == "" {
			panic("squeeze: the table is malformed: " + line) // it is part of the program
		}
		// Codes follow each other, the shorter ones first.
		next <<= n - length
		length = n
		c := code{bits: bits.Reverse16(uint16(next)) >> (16 - n), length: uint8(n)}
		next++
		at := int(symbol[0])
		if len(symbol) > 1 {
			at = len(t.symbols)
			t.symbols, t.heads, t.codes = append(t.symbols, ""), append(t.heads, [headSize]byte{}), append(t.codes, code{})
		}
		t.symbols[at], t.codes[at], t.longest = symbol, c, max(t.longest, len(symbol))
		copy(t.heads[at][:], symbol)
		tree.add(symbol, uint16(at))
		for i := int(c.bits); i < len(t.reads); i += 1 << n {
			t.reads[i] = read{uint16(at), uint8(n), uint8(len(symbol))}
		}
	}
	t.grow(tree)
	return t
}

// branch is a node of the tree while it is made.
type branch struct {
	symbol uint16
	// bytes lead to nodes.
	bytes []byte
	nodes []int
	// base is where its cells begin.
	base int
}

type branches []branch

func (b *branches) add(symbol string, is uint16) {
	node := 1
	for i := range len(symbol) {
		of := &(*b)[node]
		k := slices.Index(of.bytes, symbol[i])
		if k < 0 {
			k = len(of.nodes)
			of.bytes, of.nodes = append(of.bytes, symbol[i]), append(of.nodes, len(*b))
			*b = append(*b, branch{})
		}
		node = (*b)[node].nodes[k]
	}
	(*b)[node].symbol = is
}

// grow lays the tree out, nodes with many others behind them first, as long as there is much room.
func (t *table) grow(tree branches) {
	order := make([]int, len(tree))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(tree[b].nodes), len(tree[a].nodes)) })
	places, free := make([]int, len(tree)), 0
	for _, node := range order {
		of := &tree[node]
		if len(of.nodes) == 0 {
			break
		}
		for t.cells[free].node != 0 {
			free++
		}
		base := max(free-int(slices.Max(of.bytes)), 0)
		for slices.ContainsFunc(of.bytes, func(b byte) bool { return t.cells[base+int(b)].node != 0 }) {
			base++
		}
		for i, b := range of.bytes {
			places[of.nodes[i]] = base + int(b)
			t.cells[base+int(b)] = cell{node: uint16(of.nodes[i]), from: uint16(node), symbol: tree[of.nodes[i]].symbol}
		}
		of.base = base // that of the root, which has most, is 0
	}
	for node := 2; node < len(tree); node++ {
		t.cells[places[node]].next = uint16(tree[node].base)
	}
}
