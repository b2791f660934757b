package core_test

import (
	"reflect"
	"testing"

	"github.com/contextengine/contextengine/core"
)

// TestTallyPlus adds every field, also one that comes later.
func TestTallyPlus(t *testing.T) {
	var a, b core.Tally
	for i := range reflect.TypeFor[core.Tally]().NumField() {
		reflect.ValueOf(&a).Elem().Field(i).SetInt(int64(100 + i))
		reflect.ValueOf(&b).Elem().Field(i).SetInt(int64(10 * (i + 1)))
	}
	sum := reflect.ValueOf(a.Plus(b))
	for i := range sum.NumField() {
		if got, want := sum.Field(i).Int(), int64(110+11*i); got != want {
			t.Errorf("%s is %d, want %d", sum.Type().Field(i).Name, got, want)
		}
	}
}
