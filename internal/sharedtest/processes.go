package sharedtest

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/core"
)

// The environment of a child process: the worker's name, its first message, and how many there are.
const (
	envName     = "SEVERAL_TEST_NAME"
	envFrom     = "SEVERAL_TEST_FROM"
	envMessages = "SEVERAL_TEST_MESSAGES"
)

// Number returns a whole number from the environment.
func Number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// Child runs a worker, and returns true, in a process that Processes started; in any other it returns false. A test begins with it.
func Child(t *testing.T, id core.SessionID, open func(tb testing.TB) core.Store) bool {
	t.Helper()
	name := os.Getenv(envName)
	if name == "" {
		return false
	}
	w := Worker{
		Store: open(t), Session: id, Name: name, From: Number(envFrom, 0), Messages: Number(envMessages, 0), Keyed: true, Log: os.Stdout,
	}
	w.Again = func() error { return open(t).Close() }
	if err := w.Run(t.Context()); err != nil {
		t.Error(err)
	}
	return true
}

// Processes runs workers in four processes at the same time, which are the running test once more, see Child, with env besides. Each says 30 messages, or as
// many as SEVERAL_MESSAGES says, and is killed twice, or as often as SEVERAL_KILLS says: the next one goes on behind what was acknowledged. It
// returns what they logged.
func Processes(t *testing.T, env ...string) string {
	t.Helper()
	messages, kills, seed := Number("SEVERAL_MESSAGES", 30), Number("SEVERAL_KILLS", 2), rand.Uint64()
	t.Logf("seed %d", seed)
	var log Log
	var wg sync.WaitGroup
	for i := range 4 {
		name := string(rune('a' + i))
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() {
			next := 0
			for left := kills; ; left-- {
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
				cmd.Env = append(os.Environ(), envName+"="+name, envFrom+"="+strconv.Itoa(next), envMessages+"="+strconv.Itoa(messages-next))
				cmd.Env = append(cmd.Env, env...)
				fatal := -1 // the line after which it is killed
				if left > 0 {
					fatal = 1 + rnd.IntN(max(messages/(kills+1), 2))
				}
				killed, err := follow(cmd, name, &next, fatal, &log)
				if err != nil {
					t.Errorf("process %s: %v", name, err)
				}
				if !killed {
					return
				}
			}
		})
	}
	wg.Wait()
	return log.String()
}

// follow runs a child, takes over what it logs, and kills it after so many lines; never when that is negative. next becomes the number behind the
// last message that was acknowledged.
func follow(cmd *exec.Cmd, name string, next *int, fatal int, log io.Writer) (killed bool, err error) {
	var other strings.Builder
	cmd.Stderr = &other
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if n == fatal {
			killed = cmd.Process.Kill() == nil
		}
		var k int
		switch text := lines.Text(); {
		case strings.HasPrefix(text, "said "):
			if _, err := fmt.Sscanf(text, "said "+name+"-%d.", &k); err == nil {
				*next = k + 1
			}
			fallthrough
		case strings.HasPrefix(text, "forg"):
			_, _ = fmt.Fprintln(log, text)
		default:
			other.WriteString(text + "\n")
		}
	}
	if err = cmd.Wait(); err != nil && !killed {
		return false, fmt.Errorf("%w\n%s", err, &other)
	}
	return killed, nil
}
