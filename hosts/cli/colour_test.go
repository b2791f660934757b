package cli_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

// What is no terminal never gets a colour unless it is asked for, and asking for it colours what says how things are.
func TestColours(t *testing.T) {
	config := write(t, "c.yaml", "store: memory\n")
	plain := run(t, builtin.New(), "", "doctor", "--config", config)
	plain.want(t, cli.ExitOK, "ok    configuration")
	if strings.Contains(plain.out+plain.errors, "\x1b") {
		t.Errorf("a pipe gets colours: %q", plain.out)
	}
	run(t, builtin.New(), "", "doctor", "--config", config, "--color", "always").want(t, cli.ExitOK, "\x1b[32mok  \x1b[0m  configuration")
}
