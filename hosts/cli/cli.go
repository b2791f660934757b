// Package cli is the command line around a registry of parts: it replays conversations through configurations, explains
// windows, and checks and writes configuration.
//
// Whoever has parts of their own gets all of it for them. That is the whole program:
//
//	func main() {
//		r := builtin.New()
//		if err := registry.AddStore(r, "mine", "where my team keeps things", mine.DefaultConfig, open); err != nil {
//			log.Fatal(err)
//		}
//		os.Exit(cli.Main(r))
//	}
//
// Run is Main for tests and for programs that have streams and an environment of their own.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/hosts/imports"
	"github.com/contextengine/contextengine/registry"
)

// The exit codes.
const (
	// ExitOK: all is well. Malformed lines that --keep-going passed over are counted on standard error, no more.
	ExitOK = 0
	// ExitFailure: something failed: a file, a store, a replay.
	ExitFailure = 1
	// ExitUsage: the command line or the configuration is wrong.
	ExitUsage = 2
	// ExitViolations: a replay found broken promises.
	ExitViolations = 3
	// ExitCancelled: the command was interrupted.
	ExitCancelled = 130
)

const exitHelp = `Exit codes:
  0    all is well
  1    something failed: a file, a store, a replay
  2    the command line or the configuration is wrong
  3    a replay found broken promises
  130  interrupted`

// IO is what a command reads and writes.
type IO struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Environ is the environment, as os.Environ returns it.
	Environ []string
}

// Main runs the command line of this process with the parts of a registry, and returns the exit code. An interrupt ends the
// command cleanly, a second one at once.
func Main(reg *registry.Registry) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	return Run(ctx, reg, os.Args[1:], IO{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ()})
}

// Run runs a command line, without the program's name in front, and returns the exit code.
func Run(ctx context.Context, reg *registry.Registry, args []string, streams IO) int {
	out := &output{w: streams.Stdout}
	a := &app{reg: reg, IO: streams}
	a.Stdout = out
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if lost := out.lost(); lost != nil && (err == nil || errors.Is(err, lost)) && ctx.Err() == nil {
		err = &exitError{code: ExitFailure, err: fmt.Errorf("standard output: %w", lost)}
	}
	if err == nil {
		return ExitOK
	}
	code := codeOf(err)
	if code == ExitCancelled {
		fmt.Fprintln(a.Stderr, "interrupted")
		return code
	}
	if text := plain(err.Error()); text != "" {
		fmt.Fprintln(a.Stderr, a.paint(a.Stderr, red, "error:")+" "+text)
	}
	return code
}

// kinds are what errors end with for programs. People need it only where nothing else says it.
var kinds = []error{core.ErrConflict, core.ErrNotFound, core.ErrUnavailable, errors.ErrUnsupported, imports.ErrMalformed}

// plain is the text of an error for people: what only tells programs of which kind it is is left out.
func plain(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		for suffix := ": " + core.ErrInvalid.Error(); strings.HasSuffix(line, suffix); {
			line = strings.TrimSuffix(line, suffix)
		}
		for _, kind := range kinds {
			before, ok := strings.CutSuffix(line, ": "+kind.Error())
			if ok && saysWhy(before) {
				line = before
			}
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

// saysWhy reports whether a text ends with a sentence: what is behind its last colon is no mere name.
func saysWhy(text string) bool {
	last := text[strings.LastIndex(text, ": ")+1:]
	return len(strings.Fields(last)) > 2 && !strings.HasSuffix(last, `"`)
}

// app is what all commands share.
type app struct {
	reg *registry.Registry
	// colour is what --color says.
	colour string
	// wide is what --wide says.
	wide bool
	IO
}

func (a *app) getenv(name string) string {
	value := ""
	for _, kv := range a.Environ {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			value = v
		}
	}
	return value
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "contextengine",
		Short: "Try context engines on real conversations, and see that they keep their promises",
		Long: "contextengine tries context engines on conversations, verifies what they\n" +
			"promise, looks after what is stored, and serves programs.\n\n" + exitHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return errors.Join(a.checkColour(), checkFlags(cmd)) },
	}
	root.PersistentFlags().StringVar(&a.colour, "color", "auto", "when to use colours: auto (on a terminal, unless NO_COLOR is set), always, never")
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.Version = version() + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	root.SetVersionTemplate("contextengine {{.Version}}\n")
	root.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownCommand(cmd, args[0])
	}
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Try and measure", []*cobra.Command{a.replayCmd(), a.explainCmd(), a.compareCmd(), a.evaluateCmd(), a.experimentCmd(), a.soakCmd(), a.datasetCmd()}},
		{"Set up", []*cobra.Command{a.initCmd(), a.listCmd(), a.doctorCmd(), a.upgradeCmd(), a.manCmd(), a.versionCmd()}},
		{"Serve other programs", []*cobra.Command{a.serveCmd(), a.openBrainCmd()}},
		{"Look into what is stored", []*cobra.Command{a.agentsCmd(), a.sessionsCmd(), a.inspectCmd(), a.statsCmd(), a.verifyCmd()}},
		{"Move, keep and erase it", []*cobra.Command{a.importCmd(), a.exportCmd(), a.backupCmd(), a.forgetCmd(), a.retainCmd(), a.reembedCmd(), a.vacuumCmd()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, c := range g.commands {
			c.GroupID = g.title
		}
		root.AddCommand(g.commands...)
	}
	asked(root)
	a.completing(root)
	speaking(root)
	helping(root)
	return root
}

// exitError is an error with the code that it ends the command with.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// failed marks an error of something that was done, as opposed to one in what was asked for.
func failed(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*exitError](err); ok {
		return err
	}
	code := ExitFailure
	if errors.Is(err, core.ErrInvalid) || errors.Is(err, capability.ErrRequirement) {
		code = ExitUsage
	}
	return &exitError{code: code, err: err}
}

// codeOf returns the exit code of an error; one that no command marked is about the command line.
func codeOf(err error) int {
	if errors.Is(err, context.Canceled) {
		return ExitCancelled
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return ExitUsage
}
