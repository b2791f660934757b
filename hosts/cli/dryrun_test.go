package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

// TestDryRunChoosesNoArm: a dry run leaves no session behind, where sessions get arms too.
func TestDryRunChoosesNoArm(t *testing.T) {
	config := write(t, "c.yaml", "store: {type: sqlite, path: "+filepath.Join(t.TempDir(), "store.db")+"}\narms: [{name: a}, {name: b}]\n")
	run(t, builtin.New(), "", "import", "--config", config, "--dry-run", chat(t, "one", 4)).want(t, cli.ExitOK, "would import 4")
	if got := run(t, builtin.New(), "", "agents", "--config", config, "--json"); strings.TrimSpace(got.out) != "[]" {
		t.Errorf("agents behind a dry run: %s%s", got.out, got.errors)
	}
}
