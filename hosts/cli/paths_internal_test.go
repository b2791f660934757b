package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/contextengine/contextengine/registry/builtin"
)

// texts are the flags that hold words and are no paths. A new flag stands here, or it is made with package pathflag.
var texts = strings.Fields(`agent before budget color combinations compactor default-source embed-api embed-model embed-url entry expand format from listen
	log-format log-level max-age max-bytes metric name pack reason retriever search session sessions set since source store url verdict window`)

// operands are the arguments that are no paths.
var operands = strings.Fields("NAME VALUE")

// TestEveryPathKnowsTheHome: no flag and no argument that is a path is read as a shell left it, and no other word is changed.
func TestEveryPathKnowsTheHome(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("not run: homes are found otherwise there")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			walk(c)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.HasPrefix(f.Value.Type(), "string") {
				return
			}
			if err := cmd.Flags().Set(f.Name, "~/x"); err != nil {
				t.Errorf("%s --%s=~/x: %v", cmd.CommandPath(), f.Name, err)
			}
			want := filepath.Join(home, "x")
			if isText(cmd, f) {
				want = "~/x"
			}
			if got := strings.Trim(f.Value.String(), "[]"); got != want {
				t.Errorf("%s --%s=~/x is %s, want %s", cmd.CommandPath(), f.Name, got, want)
			}
		})
		for i, name := range operandsOf(cmd) {
			args := make([]string, i+1)
			for at := range args {
				args[at] = "~/x"
			}
			if err := cmd.ValidateArgs(args); err != nil && !strings.Contains(err.Error(), "needs") {
				t.Errorf("%s %s: %v", cmd.CommandPath(), args, err)
			}
			if path := !slices.Contains(operands, name); (args[i] == filepath.Join(home, "x")) != path {
				t.Errorf("%s: %s is %s, is it a path: %v", cmd.CommandPath(), name, args[i], path)
			}
		}
	}
	a := &app{reg: builtin.New(), IO: IO{Stdout: os.Stdout, Stderr: os.Stderr}}
	walk(a.root())
}

// isText: one name is a path in one command and words in others.
func isText(cmd *cobra.Command, f *pflag.Flag) bool {
	if f.Name == "from" && strings.HasSuffix(cmd.CommandPath(), "dataset fetch") {
		return false
	}
	return slices.Contains(texts, f.Name)
}
