// Command mutants changes a statement here and there and looks whether a test notices: a sample of the small changes that could be made to some packages, each
// built with -overlay, so that the tree stays as it is. It lists the changes that no test noticed.
//
//	go run ./internal/mutants -n 40 -folders core,core/engine,backends/memory -stages './core/... ./backends/memory; -run TestMatrixVariants ./conformance'
//
// The seed is new in each run and printed; -seed repeats one.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// verdict is what came of a mutant.
type verdict int

const (
	killed verdict = iota
	survived
	// invalid ones do not compile: they say nothing about the tests.
	invalid
)

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	n := flags.Int("n", 40, "number of mutants that compile")
	seed := flags.Uint64("seed", 0, "seed of the sample; 0 is a random one")
	folders := flags.String("folders", "core,backends/memory", "folders of the packages, separated by commas")
	stages := flags.String("stages", "./core/... ./backends/memory", "arguments of go test; stages are separated by semicolons, and a later one runs when the earlier ones noticed nothing")
	limit := flags.Duration("limit", 3*time.Minute, "time for one stage; a mutant that hangs is noticed")
	share := flags.Float64("survivors", 1, "fail when a larger share than this survives")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for *seed == 0 {
		*seed = uint64(rand.Uint32())
	}
	all, err := collect(strings.Split(*folders, ","))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "seed %d: %d of %d mutants\n", *seed, *n, len(all))
	rand.New(rand.NewPCG(*seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] }) //nolint:gosec // a sample, no secret
	var tests [][]string
	for stage := range strings.SplitSeq(*stages, ";") {
		tests = append(tests, strings.Fields(stage))
	}
	count := map[verdict]int{}
	for _, m := range all {
		if count[killed]+count[survived] == *n {
			break
		}
		v, err := judge(ctx, m, tests, *limit)
		if err != nil {
			return err
		}
		if count[v]++; v == survived {
			fmt.Fprintln(out, m)
		}
	}
	judged := count[killed] + count[survived]
	fmt.Fprintf(out, "%d of %d survived; %d more did not compile\n", count[survived], judged, count[invalid])
	if float64(count[survived]) > *share*float64(judged) {
		return fmt.Errorf("mutants: %d of %d survived, more than a share of %g", count[survived], judged, *share)
	}
	return nil
}

// judge runs the stages against one mutant.
func judge(ctx context.Context, m mutant, stages [][]string, limit time.Duration) (verdict, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return invalid, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	src, err := os.ReadFile(m.File)
	if err != nil {
		return invalid, err
	}
	if m.To > len(src) || string(src[m.From:m.To]) != m.Old {
		return invalid, fmt.Errorf("mutants: %s changed while the sample was tried", m.File)
	}
	changed, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	file, err := filepath.Abs(m.File)
	if err != nil {
		return invalid, err
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
	if err != nil {
		return invalid, err
	}
	if err := os.WriteFile(changed, m.apply(src), 0o600); err != nil {
		return invalid, err
	}
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return invalid, err
	}
	if err := command(ctx, "build", "-overlay", overlay, "./"+filepath.Dir(m.File)).Run(); err != nil {
		return invalid, ctx.Err()
	}
	for _, stage := range stages {
		args := append([]string{"test", "-overlay", overlay, "-failfast", "-vet=off", "-timeout", limit.String()}, stage...)
		cmd := command(ctx, args...)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Run(); err != nil {
			if bytes.Contains(said.Bytes(), []byte("[build failed]")) || bytes.Contains(said.Bytes(), []byte("[setup failed]")) {
				return invalid, fmt.Errorf("mutants: go test %s: %s", strings.Join(stage, " "), said.String())
			}
			return killed, ctx.Err()
		}
	}
	return survived, ctx.Err()
}

func command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}
