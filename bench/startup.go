package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	starts = 10 // of each kind
	// The sessions of the store that serve opens.
	longSession, shortSession = 5000, 200
)

// startup measures the program itself, as people and hosts start it: its size, replay of the example that is built in, and how long serve takes from
// its start to its first answer over a store of 100,000 messages, and to its first prompt. The store was closed as it should be, so the file of the
// index lies beside it; everything is in the system's cache of files.
func startup(ctx context.Context, b *board, o options) error {
	const what = "startup"
	program, err := built(ctx, o.dir)
	if err != nil {
		return err
	}
	info, err := os.Stat(program)
	if err != nil {
		return err
	}
	b.add("binary", what, 1, figure{"MB", float64(info.Size()) / 1e6})
	b.note("the binary, built with -ldflags \"-s -w\", has %.1f MB (wanted: under 40)", float64(info.Size())/1e6)

	if err := measured(b, "replay of the example", what, "under 300ms", func() (starting, error) { return replayed(ctx, program, o.dir) }); err != nil {
		return err
	}
	s := &served{program: program, dir: o.dir, messages: min(o.largest, 100_000)}
	if err := s.fill(ctx); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	size, err := folderSize(s.store())
	if err != nil {
		return err
	}
	index, err := folderSize(s.store() + ".d")
	if err != nil {
		return err
	}
	at := fmt.Sprintf("%s/entries=%d", what, s.messages)
	b.add("store", at, 1, figure{"B store", size}, figure{"B index", index})
	for _, socket := range []bool{false, true} {
		name := "serve --stdio, first answer"
		if socket {
			name = "serve --socket, first answer"
		}
		if err := measured(b, name, at, "under 150ms", func() (starting, error) { return s.greet(ctx, socket) }); err != nil {
			return err
		}
	}
	for _, session := range s.sessions() {
		if err := s.firstPrompt(ctx, b, at, session); err != nil {
			return err
		}
	}
	return nil
}

// built makes the program in dir.
func built(ctx context.Context, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/contextengine/contextengine").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	program := filepath.Join(dir, "contextengine")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", program, "./cmd/contextengine")
	build.Dir, build.Stderr = strings.TrimSpace(string(root)), os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("build: %w", err)
	}
	return program, nil
}

// starting is what one start took: the clock's time, and the program's processor time from its start to its end.
type starting struct{ wall, cpu time.Duration }

// measured starts something once to warm up, and then some times.
func measured(b *board, subject, what, want string, once func() (starting, error)) error {
	var wall, cpu []time.Duration
	for i := range starts + 1 {
		took, err := once()
		if err != nil {
			return fmt.Errorf("%s: %w", subject, err)
		}
		if i > 0 {
			wall, cpu = append(wall, took.wall), append(cpu, took.cpu)
		}
	}
	slices.Sort(wall)
	slices.Sort(cpu)
	b.add(subject, what, starts, figure{"ns-min", float64(wall[0])}, figure{"ns-p50", quantile(wall, 0.5)}, figure{"ns-cpu", quantile(cpu, 0.5)})
	b.note("%s, ns-p50: %s, of which the processor %s (wanted: %s)", subject, time.Duration(quantile(wall, 0.5)).Round(time.Millisecond),
		time.Duration(quantile(cpu, 0.5)).Round(time.Millisecond), want)
	return nil
}

// child makes a process that knows of no configuration but what it is given.
func child(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	return cmd
}

func used(s *os.ProcessState) time.Duration { return s.UserTime() + s.SystemTime() }

func replayed(ctx context.Context, program, dir string) (starting, error) {
	cmd := child(ctx, dir, program, "replay")
	begin := time.Now()
	err := cmd.Run()
	if err != nil {
		return starting{}, err
	}
	return starting{time.Since(begin), used(cmd.ProcessState)}, nil
}

// served is a store that serve opens.
type served struct {
	program, dir string
	messages     int
	// transcripts are the messages of the sessions that are continued after a start, as their host has them.
	transcripts map[string][]json.RawMessage
}

func (s *served) store() string { return filepath.Join(s.dir, "startup.db") }

// sessions are those that are continued.
func (s *served) sessions() []string { return []string{"long", "s0"} }

// start runs serve over the store and returns a connection to it.
func (s *served) start(ctx context.Context, socket bool) (*sidecar, error) {
	config := filepath.Join(s.dir, "startup.json")
	text, err := json.Marshal(map[string]any{"store": map[string]string{"type": "sqlite", "path": s.store()}})
	if err == nil {
		err = os.WriteFile(config, text, 0o600)
	}
	if err != nil {
		return nil, err
	}
	args := []string{"serve", "--log-level", "warn", "--config", config}
	path := filepath.Join(s.dir, "startup.sock")
	if socket {
		args = append(args, "--socket", path)
	}
	c := &sidecar{cmd: child(ctx, s.dir, s.program, args...)}
	c.cmd.Stderr = os.Stderr
	if socket {
		if err := c.cmd.Start(); err != nil {
			return nil, err
		}
		for {
			nc, err := new(net.Dialer).DialContext(ctx, "unix", path)
			if err == nil {
				c.in, c.out = nc, bufio.NewReader(nc)
				return c, nil
			}
			if ctx.Err() != nil {
				return nil, errors.Join(err, c.end())
			}
			time.Sleep(200 * time.Microsecond)
		}
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	return c, c.cmd.Start()
}

// greet measures from the start to the answer of the first request.
func (s *served) greet(ctx context.Context, socket bool) (starting, error) {
	begin := time.Now()
	c, err := s.start(ctx, socket)
	if err != nil {
		return starting{}, err
	}
	err = c.hello()
	wall := time.Since(begin)
	if err = errors.Join(err, c.end()); err != nil {
		return starting{}, err
	}
	return starting{wall, used(c.cmd.ProcessState)}, nil
}

// fill stores one long session and many short ones through serve, continues some of them, and ends it.
func (s *served) fill(ctx context.Context) error {
	c, err := s.start(ctx, false)
	if err != nil {
		return err
	}
	err = c.hello()
	messages := newCorpus(13)
	s.transcripts = make(map[string][]json.RawMessage)
	for at := 0; at < s.messages && err == nil; {
		session, n := "long", min(longSession, s.messages/2)
		if at > 0 {
			session, n = fmt.Sprintf("s%d", (at-min(longSession, s.messages/2))/shortSession), min(shortSession, s.messages-at)
		}
		raw := make([]json.RawMessage, n)
		for i := range raw {
			raw[i] = messages.message().Raw
		}
		if slices.Contains(s.sessions(), session) {
			s.transcripts[session] = raw
		}
		at += n
		for part := range slices.Chunk(raw, 500) {
			if err == nil {
				_, err = c.call("ingestBatch", map[string]any{"session": sessionOf(session), "messages": part})
			}
		}
	}
	if err == nil { // makes the index
		_, err = c.call("search", map[string]any{"session": sessionOf("long"), "query": "the first question", "limit": 1})
	}
	for _, session := range s.sessions() {
		if err == nil {
			_, err = s.prompt(c, session, 0, true)
		}
	}
	return errors.Join(err, c.end())
}

// prompt assembles as a host does: the first time with its whole transcript, and then with a word for it.
func (s *served) prompt(c *sidecar, session string, n int, first bool) (json.RawMessage, error) {
	transcript := map[string]any{"messages": s.transcripts[session], "digest": "all"}
	if !first {
		transcript = map[string]any{"skipped": len(s.transcripts[session]), "prefix": "all", "messages": []json.RawMessage{}, "digest": "all"}
	}
	return c.call("assemble", map[string]any{
		"session": sessionOf(session), "tokenBudget": 32_000, "references": true, "transcript": transcript,
		"prompt": sentence(rand.New(rand.NewPCG(14, uint64(n))), newCorpus(uint64(20+n)).text(60)),
	})
}

// firstPrompt measures a session that goes on after a start: the first prompt, for which the index is loaded, a further one, and memory after them.
func (s *served) firstPrompt(ctx context.Context, b *board, what, session string) error {
	var first, further, cpu []time.Duration
	var resident, peak float64
	for n := range starts {
		c, err := s.start(ctx, false)
		if err != nil {
			return err
		}
		err = c.hello()
		for i := 0; i < 2 && err == nil; i++ {
			var answer json.RawMessage
			begin := time.Now()
			answer, err = s.prompt(c, session, 2*n+i, i == 0)
			took := time.Since(begin)
			if degraded := regexp.MustCompile(`"(warnings|degraded)":`).Find(answer); degraded != nil {
				b.note("first prompt of %s: %s", session, degraded)
			}
			if i == 0 {
				first = append(first, took)
			} else {
				further = append(further, took)
			}
		}
		resident, peak = max(resident, c.memory("VmRSS")), max(peak, c.memory("VmHWM"))
		if err = errors.Join(err, c.end()); err != nil {
			return err
		}
		cpu = append(cpu, used(c.cmd.ProcessState))
	}
	slices.Sort(first)
	slices.Sort(further)
	slices.Sort(cpu)
	name := fmt.Sprintf("session of %d", len(s.transcripts[session]))
	b.add(name+", first prompt after the start", what, starts, figure{"ns-min", float64(first[0])}, figure{"ns-p50", quantile(first, 0.5)},
		figure{"ns-cpu", quantile(cpu, 0.5)}, figure{"B resident", resident}, figure{"B peak", peak})
	b.add(name+", further prompt", what, starts, figure{"ns-min", float64(further[0])}, figure{"ns-p50", quantile(further, 0.5)})
	return nil
}

func sessionOf(name string) map[string]string {
	return map[string]string{"agent": agent, "session": name}
}

// sidecar is a process of serve and a connection to it.
type sidecar struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	id  int
}

// hello is what a plugin says first.
func (c *sidecar) hello() error {
	answer, err := c.call("initialize", map[string]any{
		"protocolVersions": []string{"1"}, "client": map[string]string{"name": "bench", "version": "1"}, "format": "openai",
		"capabilities": []string{"delegated-compaction", "runtime-llm-complete"},
	})
	if err == nil && !bytes.Contains(answer, []byte(`"engine":`)) {
		err = fmt.Errorf("serve has no engine: %s", answer)
	}
	return err
}

// call asks and waits for the answer.
func (c *sidecar) call(method string, params any) (json.RawMessage, error) {
	c.id++
	frame, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if _, err := c.in.Write(append(frame, '\n')); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	var answer struct{ Result, Error json.RawMessage }
	if err := json.Unmarshal(line, &answer); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	if answer.Error != nil {
		return nil, fmt.Errorf("%s: %s", method, answer.Error)
	}
	return answer.Result, nil
}

// end asks the process to end, and waits for it.
func (c *sidecar) end() error {
	var err error
	if c.in != nil {
		_, err = c.call("shutdown", map[string]any{})
		_ = c.in.Close()
	}
	if _, ok := c.in.(net.Conn); ok || err != nil || c.in == nil { // a socket's process serves others
		err = errors.Join(err, c.cmd.Process.Signal(os.Interrupt))
	}
	return errors.Join(err, c.cmd.Wait())
}

// memory is a line of the process's status in bytes; 0 where the system has none.
func (c *sidecar) memory(line string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	found := regexp.MustCompile(line + `:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		return 0
	}
	kib, _ := strconv.ParseFloat(string(found[1]), 64)
	return kib * 1024
}

// folderSize is the size of a file, or of all files in a folder, in bytes.
func folderSize(path string) (float64, error) {
	size := 0.0
	err := filepath.WalkDir(path, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += float64(info.Size())
		}
		return err
	})
	return size, err
}
