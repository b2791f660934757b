package memory

import (
	"cmp"
	"slices"
	"sort"
)

// blockSize bounds a block of a run. Inserting in the middle or removing moves at most one block and the list of
// blocks, which keeps both cheap for a million entries in one session.
const blockSize = 512

// place is where a record stands within its session: by Seq, then by append.
type place struct {
	seq   int64
	order uint64
}

func (r *record) place() place { return place{seq: r.seq, order: r.order} }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.seq, q.seq), cmp.Compare(p.order, q.order))
}

// run is a sorted list of records in blocks, none of them empty.
type run struct {
	blocks [][]*record
}

// at is a position in a run; block == len(blocks) is its end.
type at struct{ block, index int }

func (l *run) insert(r *record) {
	p := r.place()
	n := len(l.blocks)
	if n == 0 {
		l.blocks = append(l.blocks, []*record{r})
		return
	}
	last := l.blocks[n-1]
	if last[len(last)-1].place().compare(p) < 0 {
		if len(last) >= blockSize {
			l.blocks = append(l.blocks, append(make([]*record, 0, blockSize), r))
			return
		}
		l.blocks[n-1] = append(last, r)
		return
	}
	a := l.seek(p)
	b := slices.Insert(l.blocks[a.block], a.index, r)
	l.blocks[a.block] = b
	if len(b) > blockSize {
		half := len(b) / 2
		tail := slices.Clone(b[half:])
		clear(b[half:])
		l.blocks[a.block] = b[:half]
		l.blocks = slices.Insert(l.blocks, a.block+1, tail)
	}
}

func (l *run) remove(r *record) {
	a := l.seek(r.place())
	if a.block == len(l.blocks) || l.blocks[a.block][a.index] != r {
		return
	}
	b := slices.Delete(l.blocks[a.block], a.index, a.index+1)
	if len(b) == 0 {
		l.blocks = slices.Delete(l.blocks, a.block, a.block+1)
		return
	}
	l.blocks[a.block] = b
}

// seek returns the position of the first record at p or behind it.
func (l *run) seek(p place) at {
	i := sort.Search(len(l.blocks), func(i int) bool {
		b := l.blocks[i]
		return b[len(b)-1].place().compare(p) >= 0
	})
	if i == len(l.blocks) {
		return at{block: i}
	}
	j, _ := slices.BinarySearchFunc(l.blocks[i], p, func(r *record, p place) int { return r.place().compare(p) })
	return at{block: i, index: j}
}

// after yields the records at p and behind it in order, until yield returns false.
func (l *run) after(p place, yield func(*record) bool) {
	a := l.seek(p)
	for ; a.block < len(l.blocks); a.block, a.index = a.block+1, 0 {
		for _, r := range l.blocks[a.block][a.index:] {
			if !yield(r) {
				return
			}
		}
	}
}

// before yields the records in front of p, newest first, until yield returns false.
func (l *run) before(p place, yield func(*record) bool) {
	a := l.seek(p)
	var block []*record
	if a.block < len(l.blocks) {
		block = l.blocks[a.block][:a.index]
	}
	for i := a.block; ; block = l.blocks[i] {
		for _, r := range slices.Backward(block) {
			if !yield(r) {
				return
			}
		}
		if i--; i < 0 {
			return
		}
	}
}

// next returns the Seq behind the last record, 0 when there is none.
func (l *run) next() int64 {
	if len(l.blocks) == 0 {
		return 0
	}
	last := l.blocks[len(l.blocks)-1]
	return last[len(last)-1].seq + 1
}
