package cli_test

import (
	"context"
	"fmt"
	"os"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

// A program with parts of its own adds them to the registry, and has the whole command line for them. Main is Run with this process's arguments.
func ExampleRun() {
	code := cli.Run(context.Background(), builtin.New(), []string{"replay", "--budget", "plenty"}, cli.IO{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stdout})
	fmt.Println(code)
	// Output:
	// error: budget "plenty": want a positive number of tokens, such as 8000 or 8k
	// 2
}
