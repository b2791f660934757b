package pathflag_test

import (
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/pathflag"
)

func TestFlags(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("not run: homes are found otherwise there")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	var one, letter string
	var several []string
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	pathflag.Var(fs, &one, "one", "", "a file")
	pathflag.VarP(fs, &letter, "letter", "l", "usual", "a file")
	pathflag.SliceVar(fs, &several, "several", "files")
	if usage := fs.FlagUsages(); strings.Count(usage, "default") != 1 || !strings.Contains(usage, `(default "usual")`) {
		t.Errorf("usage:\n%s", usage)
	}
	if err := fs.Parse([]string{"--one=~/a", "-l=$HOME/b", "--several=~/c,./~/d", "--several", "e,${HOME}/f"}); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(home, name) }
	if diff := cmp.Diff([]string{in("a"), in("b"), in("c"), "./~/d", "e", in("f")}, append([]string{one, letter}, several...)); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	for _, flag := range []string{"one", "letter", "several"} {
		if err := fs.Set(flag, "~bob/x"); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("--%s=~bob/x: %v, want core.ErrInvalid", flag, err)
		}
	}
}
