package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// programs are what the test binary is when it is started under another name: no shell is needed to have programs that doctor looks at.
var programs = map[string]func(verb string) int{
	"contextengine": func(verb string) int {
		switch verb {
		case "version":
			fmt.Println("contextengine v1 go linux")
		case "serve":
			fmt.Println(`{"$defs": {}}`)
		}
		return 0
	},
	"other": func(string) int { fmt.Println(secret); return 0 },
	"old": func(verb string) int {
		if verb != "version" {
			return 2
		}
		fmt.Println("contextengine v0")
		return 0
	},
	"slow": func(string) int { time.Sleep(10 * time.Minute); return 0 },
}

// TestMain gives the process a place for state of its own: the default store is a file there.
func TestMain(m *testing.M) {
	if play, ok := programs[filepath.Base(os.Args[0])]; ok {
		verb := ""
		if len(os.Args) > 1 {
			verb = os.Args[1]
		}
		syscall.Exit(play(verb)) // os.Exit waits a second under the race detector, and these programs run by the hundred
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "contextengine-cli")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if err := os.Setenv("XDG_STATE_HOME", dir); err != nil {
			panic(err)
		}
		return m.Run()
	}())
}
