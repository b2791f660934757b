package endpoint

import (
	"fmt"
	"sync/atomic"
)

// Dimensions is the length that the vectors of a model have, learnt with the first ones where nobody set it.
type Dimensions struct{ atomic.Int64 }

// Settle checks that there is a vector of the right length for each of so many texts. Another length is a failure of that kind, with the remedy.
func (d *Dimensions) Settle(vectors [][]float32, want int, kind error, remedy string) *Failure {
	if len(vectors) != want {
		return Nonsense(fmt.Sprintf("holds %d vectors for %d texts", len(vectors), want))
	}
	wrong := func(got, want int64) *Failure {
		return &Failure{Text: fmt.Sprintf("dimensions: vector has %d numbers, expected are %d; %s", got, want, remedy), Kind: kind}
	}
	// All are checked before the length is learnt, so that a broken answer settles nothing.
	length := d.Load()
	for _, v := range vectors {
		got := int64(len(v))
		if got == 0 {
			return Nonsense("holds an empty vector")
		}
		if length == 0 {
			length = got
		}
		if got != length {
			return wrong(got, length)
		}
	}
	if !d.CompareAndSwap(0, length) && d.Load() != length {
		return wrong(length, d.Load()) // a concurrent call learnt another length first
	}
	return nil
}
