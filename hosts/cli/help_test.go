package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

// Every help text fits a terminal of 80 columns; a command or a line of a file that is shown as an example is all that may be longer.
func TestHelpFits(t *testing.T) {
	list := regexp.MustCompile(`(?m)^  ([a-z]+)  +\S`)
	shots := os.Getenv("CONTEXTENGINE_SHOTS")
	seen := 0
	var visit func(path ...string)
	visit = func(path ...string) {
		got := run(t, builtin.New(), "", append(path, "--help")...)
		got.want(t, cli.ExitOK)
		seen++
		for line := range strings.SplitSeq(got.out, "\n") {
			if utf8.RuneCountInString(line) > 80 && !strings.HasPrefix(line, "  contextengine ") && !strings.HasPrefix(line, "  {") {
				t.Errorf("%s --help: %d columns: %s", strings.Join(path, " "), utf8.RuneCountInString(line), line)
			}
		}
		if shots != "" {
			name := strings.Join(append([]string{"help"}, path...), "-") + ".txt"
			if err := os.WriteFile(filepath.Join(shots, name), []byte(got.out), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before, _, _ := strings.Cut(got.out, "\nFlags:")
		if _, commands, ok := strings.Cut(before, "\nUsage:"); ok {
			for _, m := range list.FindAllStringSubmatch(commands, -1) {
				if m[1] != "help" && m[1] != "contextengine" {
					visit(append(slices.Clip(path), m[1])...)
				}
			}
		}
	}
	visit()
	if seen < 30 {
		t.Errorf("%d help texts were looked at: does this test still find the commands?", seen)
	}
}
