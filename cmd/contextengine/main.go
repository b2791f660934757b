// Command contextengine is the command line with the parts of this repository. See package hosts/cli for what it does, and for how to
// make one with parts of your own.
package main

import (
	"os"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

func main() { os.Exit(cli.Main(builtin.New())) }
