//go:build linux

package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

// terminal is a terminal that remembers what was written to it. seen is told of all of it each time something comes.
func terminal(t *testing.T, seen func(string)) (tty *os.File, all func() string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("not run: no terminals here: %v", err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skipf("not run: no terminals here: %v", err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Skipf("not run: no terminals here: %v", err)
	}
	var out bytes.Buffer
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if out.Write(buf[:n]); err != nil {
				return // nobody has it open any more
			}
			seen(out.String())
		}
	}()
	return tty, func() string {
		_ = tty.Close()
		<-ended
		_ = master.Close()
		return out.String()
	}
}

// escapes are what moves or colours, not what is seen; the one that takes a line away is kept as a mark.
var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]")

// screen is what stands on a terminal in the end.
func screen(written string) string {
	written = escapes.ReplaceAllString(strings.ReplaceAll(written, "\x1b[2K", "\x00"), "")
	var lines []string
	for line := range strings.SplitSeq(strings.ReplaceAll(written, "\r\n", "\n"), "\n") {
		var shown []rune
		at := 0
		for _, r := range line {
			switch {
			case r == 0:
				shown = nil
			case r == '\r':
				at = 0
			case at < len(shown):
				shown[at] = r
				at++
			default:
				shown, at = append(shown, []rune(strings.Repeat(" ", at-len(shown))+string(r))...), at+1
			}
		}
		lines = append(lines, strings.TrimRight(string(shown), " "))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// On a terminal a bar shows how far a command is, and leaves nothing behind: not when it ends, and nothing but one word when it is interrupted.
func TestProgressOnATerminal(t *testing.T) {
	replay := []string{"replay", "--combinations", "all", "--budget", "1k"}
	tty, all := terminal(t, func(string) {})
	var out bytes.Buffer
	code := cli.Run(t.Context(), builtin.New(), replay, cli.IO{Stdout: &out, Stderr: tty})
	if written := all(); code != cli.ExitOK || !strings.Contains(written, "messages") || screen(written) != "" {
		t.Errorf("exit code %d, %q was written and %q stays", code, written, screen(written))
	}
	if strings.ContainsAny(out.String(), "\r\x1b") {
		t.Errorf("standard output has more than text: %q", out.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tty, all = terminal(t, func(s string) {
		if strings.Contains(s, "messages") {
			cancel()
		}
	})
	replay[len(replay)-1] = "1k,2k,3k,4k,5k,6k,7k,8k" // far more than is done before the interrupt comes
	code = cli.Run(ctx, builtin.New(), replay, cli.IO{Stdout: &out, Stderr: tty})
	if written := all(); code != cli.ExitCancelled || screen(written) != "interrupted" {
		t.Errorf("exit code %d, %q was written and %q stays", code, written, screen(written))
	}
}

// A question that is interrupted is answered: nothing was erased.
func TestQuestionInterrupted(t *testing.T) {
	config, _ := keeping(t)
	run(t, builtin.New(), "", "import", "--config", config, "--agent", "ann", chat(t, "one", 4)).want(t, cli.ExitOK)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tty, all := terminal(t, func(s string) {
		if strings.Contains(s, "Type yes") {
			cancel()
		}
	})
	answers, hold, err := os.Pipe() // nobody answers
	if err != nil {
		t.Fatal(err)
	}
	defer answers.Close()
	defer hold.Close()
	code := cli.Run(ctx, builtin.New(), []string{"forget", "--config", config, "--agent", "ann"}, cli.IO{Stdin: answers, Stdout: tty, Stderr: tty})
	if written := all(); code != cli.ExitCancelled || !strings.HasSuffix(screen(written), "nothing was erased\ninterrupted") {
		t.Errorf("exit code %d, %q stays", code, screen(written))
	}
	run(t, builtin.New(), "", "agents", "--config", config).want(t, cli.ExitOK, "ann           1      2         4")
}

// On a terminal an error has a colour, unless colours are not wanted.
func TestErrorOnATerminal(t *testing.T) {
	for environ, want := range map[string]string{"": "\x1b[31;1merror:\x1b[0m unknown command", "NO_COLOR=1": "error: unknown command", "TERM=dumb": "error: unknown command"} {
		tty, all := terminal(t, func(string) {})
		code := cli.Run(t.Context(), builtin.New(), []string{"repaly"}, cli.IO{Stdout: tty, Stderr: tty, Environ: []string{environ}})
		if got := all(); code != cli.ExitUsage || !strings.HasPrefix(got, want) {
			t.Errorf("with %q: exit code %d, %q", environ, code, got)
		}
	}
}
