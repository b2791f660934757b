package verbs_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/contextengine/contextengine/internal/needs"
)

// step is what the document asks its reader to do, and what should come of it.
type step struct {
	kind, text string
	line       int
	want       []string
}

// steps reads the marked blocks: run, serve and stop, and the output of what was run before.
func steps(t *testing.T, text string) []step {
	t.Helper()
	var out []step
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		mark := regexp.MustCompile(`^<!-- (.*) -->$`).FindStringSubmatch(lines[i])
		if mark == nil {
			continue
		}
		kind := mark[1]
		at := i + 1
		var block []string
		if kind != "stop" {
			if !strings.HasPrefix(lines[i+1], "```") {
				t.Fatalf("line %d: %q is not followed by a block", at, lines[i])
			}
			for i += 2; lines[i] != "```"; i++ {
				block = append(block, lines[i])
			}
		}
		switch kind {
		case "run", "serve", "stop":
			out = append(out, step{kind: kind, text: strings.Join(block, "\n"), line: at})
		case "output":
			out[len(out)-1].want = block
		default:
			t.Fatalf("line %d: unknown mark %q", at, kind)
		}
	}
	return out
}

// script is all steps as one shell script. Each begins with a line that names it.
func script(all []step, address string) string {
	b := &strings.Builder{}
	fmt.Fprintln(b, `set -euo pipefail
trap '[ -z "${SERVER:-}" ] || kill $SERVER 2>/dev/null || true' EXIT`)
	for i, s := range all {
		fmt.Fprintf(b, "echo '@@ %d'\n", i)
		switch s.kind {
		case "run":
			fmt.Fprintln(b, s.text)
		case "serve":
			fmt.Fprintf(b, "(exec %s) & SERVER=$!\n", s.text)
			fmt.Fprintf(b, "until contextengine openbrain health --url http://%s >/dev/null 2>&1; do kill -0 $SERVER; sleep 0.1; done\n", address)
		case "stop":
			fmt.Fprintln(b, "kill -TERM $SERVER; wait $SERVER; SERVER=")
		}
	}
	return b.String()
}

// The steps of docs/selfhosting.md work as they are written.
func TestSelfHostingDocument(t *testing.T) {
	for _, program := range []string{"bash", "curl"} {
		needs.Program(t, program)
	}
	text, err := os.ReadFile("../../../docs/selfhosting.md")
	if err != nil {
		t.Fatal(err)
	}
	const written = "127.0.0.1:8787"
	address := freeAddress(t)
	all := steps(t, strings.ReplaceAll(string(text), written, address))
	if len(all) < 10 {
		t.Fatalf("the document has %d steps, marks are lost", len(all))
	}
	home := t.TempDir()
	bin := filepath.Join(home, "bin")
	self, err := os.Executable()
	if err == nil {
		err = os.Mkdir(bin, 0o700)
	}
	if err == nil {
		wrapper := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asProgram, self)
		err = os.WriteFile(filepath.Join(bin, "contextengine"), []byte(wrapper), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script(all, address))
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH")}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // the script then ends the server
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("the steps fail: %v\n%s\n%s", err, stdout.String(), stderr.String())
	}
	outputs := strings.Split(stdout.String(), "@@ ")[1:]
	for i, s := range all {
		number, output, _ := strings.Cut(outputs[i], "\n")
		if number != fmt.Sprint(i) {
			t.Fatalf("the output of step %d is missing:\n%s", i, stdout.String())
		}
		if missing := match(s.want, output); missing != "" {
			t.Errorf("docs/selfhosting.md:%d: the output lacks the line %q:\n%s\n%s", s.line, missing, output, s.text)
		}
	}
}

// match returns the first line that is not in the output, in this order; "…" in it stands for any text.
func match(want []string, output string) (missing string) {
	got := strings.Split(output, "\n")
	for _, w := range want {
		pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(w), "…", ".*") + "$")
		for len(got) > 0 && !pattern.MatchString(got[0]) {
			got = got[1:]
		}
		if len(got) == 0 {
			return w
		}
		got = got[1:]
	}
	return ""
}

// freeAddress returns an address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}
