package pgtest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"strings"
)

// watchdog is a shell that runs a command when its standard input ends: at the latest when the test process does.
type watchdog struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

// watch starts a watchdog. before runs at once, and after when the input has ended; both are shell text that finds args as "$1" and so on.
func watch(as []string, before, after string, args ...string) (*watchdog, error) {
	// The signals that end a test run go to its whole process group; the shell has to outlive them.
	script := "trap '' INT TERM HUP QUIT\n" + before + "\nread _\n" + after
	line := append(append([]string{}, as...), append([]string{"sh", "-c", script, "pgtest"}, args...)...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = "/"
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", line[0], err)
	}
	return &watchdog{cmd: cmd, stdin: stdin}, nil
}

// end runs the watchdog's last command and waits for it.
func (w *watchdog) end() {
	_ = w.stdin.Close()
	_ = w.cmd.Wait()
}

// unprivileged returns what to put in front of a command line so that it does not run as root; nothing when it would not anyway.
func unprivileged() ([]string, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		if _, err := exec.LookPath("setpriv"); err != nil {
			return nil, absentError("setpriv (package util-linux) is not installed, and PostgreSQL does not run as root")
		}
		return []string{"setpriv", "--reuid=" + u.Uid, "--regid=" + u.Gid, "--clear-groups", "--"}, nil
	}
	return nil, absentError("there is no user to run PostgreSQL as: it does not run as root")
}

// run runs a command to its end, and returns what it wrote when it fails.
func run(as []string, name string, args ...string) error {
	line := append(append([]string{}, as...), append([]string{name}, args...)...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}
