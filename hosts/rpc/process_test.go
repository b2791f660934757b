package rpc_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/contextengine/contextengine/hosts/rpc"
)

// serveEnv makes the test binary a server: "stdio", or the path of a socket.
const serveEnv = "RPC_TEST_SERVE"

func TestMain(m *testing.M) {
	if to := os.Getenv(serveEnv); to != "" {
		os.Exit(serveForTest(to))
	}
	os.Exit(m.Run())
}

func serveForTest(to string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := rpc.New(one{&fake{}}, nil)
	if err != nil {
		return 3
	}
	if to == "stdio" {
		err = s.ServeStdio(ctx, os.Stdin, os.Stdout)
	} else {
		err = s.ServeUnix(ctx, to)
	}
	if err != nil {
		return 4
	}
	if err := s.Close(ctx); err != nil && ctx.Err() == nil {
		return 5
	}
	return 0
}

// process starts a server in a process of its own.
func process(t *testing.T, to string) (*exec.Cmd, *rpc.Client) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), serveEnv+"="+to)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	c := rpc.NewClient(out, in, rpc.ClientOptions{})
	t.Cleanup(func() { _ = c.Close() })
	return cmd, c
}

// ended waits for the end of a process and returns its exit code.
func ended(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	done := make(chan int, 1)
	go func() { _ = cmd.Wait(); done <- cmd.ProcessState.ExitCode() }()
	return receive(t, "end of the process", done)
}

func TestStdioProcess(t *testing.T) {
	t.Parallel()
	initialize := rpc.InitializeParams{Client: rpc.Program{Name: "test"}, Format: "pi"}
	t.Run("the input ends", func(t *testing.T) {
		t.Parallel()
		cmd, c := process(t, "stdio")
		if _, err := c.Initialize(t.Context(), initialize); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		if code := ended(t, cmd); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("shutdown", func(t *testing.T) {
		t.Parallel()
		cmd, c := process(t, "stdio")
		if err := c.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if code := ended(t, cmd); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("SIGTERM", func(t *testing.T) {
		t.Parallel()
		cmd, c := process(t, "stdio")
		if _, err := c.Initialize(t.Context(), initialize); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := ended(t, cmd); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

// A server that was killed leaves its socket; the next one takes its place.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	cmd, _ := process(t, path)
	waitFor(t, path)
	c := dial(t, path)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	ended(t, cmd)
	if _, err := c.Assemble(t.Context(), rpc.AssembleParams{Session: sid("s"), Budget: 9}); err == nil {
		t.Error("a dead server answers")
	} else if _, ok := errors.AsType[*rpc.Error](err); ok {
		t.Errorf("Assemble = %v", err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("the killed server removed its socket: %v", err)
	}
	process(t, path)
	waitFor(t, path)
	if err := dial(t, path).Ping(t.Context()); err != nil {
		t.Errorf("Ping = %v", err)
	}
}
