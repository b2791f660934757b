package verbs_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/hosts/openbrain/verbs"
	"github.com/contextengine/contextengine/registry/builtin"
)

// asProgram makes this test binary the program that is tested.
const asProgram = "OPENBRAIN_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		syscall.Exit(program(os.Args[1:])) // os.Exit waits a second under the race detector
	}
	os.Exit(m.Run())
}

// program is the command line with the verbs of this package.
func program(args []string) int {
	if len(args) == 0 || args[0] != "openbrain" {
		return cli.Main(builtin.New())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := verbs.New(parts())
	cmd.SetArgs(args[1:])
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

func parts() verbs.Parts {
	return verbs.Parts{
		Stores: []string{"memory", "sqlite"},
		OpenStore: func(ctx context.Context, name, path string, log *slog.Logger) (core.Store, error) {
			if name == "memory" {
				return memory.New(), nil
			}
			cfg := sqlite.DefaultConfig()
			cfg.Path = path
			return sqlite.Open(ctx, cfg)
		},
	}
}
