package verbs

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every flag of serve can be set by a variable.
func TestEveryFlagHasAVariable(t *testing.T) {
	t.Parallel()
	cmd, _, err := New(Parts{}).Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	var flags []string
	for _, m := range regexp.MustCompile(`(?m)^ +--([a-z-]+)`).FindAllStringSubmatch(cmd.LocalFlags().FlagUsages(), -1) {
		flags = append(flags, m[1])
	}
	want := slices.Sorted(slices.Values(envFlags[:]))
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(flags))); diff != "" || len(want) < 20 {
		t.Errorf("flags (-with a variable +all):\n%s", diff)
	}
}
