package verbs_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/openbrain/verbs"
)

// A program adds the commands to its own, and says which stores there are.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	root := &cobra.Command{Use: "mine"}
	root.AddCommand(verbs.New(verbs.Parts{
		Stores:    []string{"memory"},
		OpenStore: func(context.Context, string, string, *slog.Logger) (core.Store, error) { return memory.New(), nil },
	}))
	var secret, said bytes.Buffer
	root.SetOut(&secret)
	root.SetErr(&said)
	root.SetArgs([]string{"openbrain", "key", "new", "--keys", filepath.Join(dir, "keys.json"), "--name", "laptop", "--source", "openclaw:*"})
	err = root.Execute()
	fmt.Println(len(bytes.TrimSpace(secret.Bytes())) > 20, err)
	// Output: true <nil>
}
