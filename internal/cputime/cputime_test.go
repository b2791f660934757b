package cputime_test

import (
	"testing"

	"github.com/contextengine/contextengine/internal/cputime"
)

// Processor time grows as work is done, and never shrinks.
func TestUsed(t *testing.T) {
	before, sum := cputime.Used(t), 0
	for cputime.Used(t) == before {
		for i := range 1_000_000 {
			sum += i * i
		}
	}
	if after := cputime.Used(t); after <= before || sum == 1 {
		t.Errorf("it was %v and is %v", before, after)
	}
}
