package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/rpc"
	"github.com/contextengine/contextengine/internal/pathflag"
	"github.com/contextengine/contextengine/registry"
)

func (a *app) serveCmd() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Let another program drive the engines, by JSON-RPC",
		Long: `serve is the sidecar of hosts that are not written in Go. It speaks JSON-RPC 2.0, one message a line, in both
directions; the protocol is described in hosts/rpc/PROTOCOL.md, and --schema prints its JSON Schema. One process serves all
agents and sessions, each with the engine that the configuration gives it.

It ends when its input ends, when the client asks for it, or at an interrupt; calls under way are finished first. What an
operator should know goes to standard error; contents of messages never do.

` + exitHelp,
		Example: `  contextengine serve --config contextengine.yaml
  contextengine serve --socket /run/user/1000/contextengine.sock`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return failed(a.serve(cmd.Context(), f))
		},
	}
	pathflag.Var(cmd.Flags(), &f.config, "config", "", "configuration file (default: the file that CONTEXTENGINE_CONFIG names, or the defaults)")
	cmd.Flags().BoolVar(&f.stdio, "stdio", false, "serve one client on standard input and output; so it is without --socket")
	pathflag.Var(cmd.Flags(), &f.socket, "socket", "", "serve clients on this unix socket, which only the same user can open")
	cmd.Flags().StringVar(&f.level, "log-level", "info", "what to log: debug, info, warn or error")
	cmd.Flags().BoolVar(&f.schema, "schema", false, "print the JSON Schema of the protocol and end")
	cmd.MarkFlagsMutuallyExclusive("stdio", "socket", "schema")
	return cmd
}

type serveFlags struct {
	config, socket, level string
	stdio, schema         bool
}

func (a *app) serve(ctx context.Context, f serveFlags) error {
	if f.schema {
		_, err := io.WriteString(a.Stdout, rpc.Schema())
		return err
	}
	log, err := a.logger(f.level)
	if err != nil {
		return err
	}
	cfg, err := a.load(f.config, nil)
	if err != nil {
		return err
	}
	defer a.spacious()()
	host := rpc.NewHost()
	instance, err := a.reg.Build(ctx, cfg, registry.BuildOptions{Getenv: a.getenv, Logger: log, Host: host, Version: version()})
	if err != nil {
		return err
	}
	server, err := rpc.New(engines{instance}, host, rpc.WithLogger(log), rpc.WithProgram(rpc.Program{Name: "contextengine", Version: version()}))
	if err != nil {
		return closing(ctx, instance, err)
	}
	if f.socket != "" {
		err = server.ServeUnix(ctx, f.socket)
	} else {
		err = server.ServeStdio(ctx, a.Stdin, a.Stdout)
	}
	if ctx.Err() != nil {
		err = nil // asked to end, it ends well
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return errors.Join(err, server.Close(end))
}

// headroom is how much garbage may gather before the collector runs, in bytes, besides as much as is in use. An agent's sidecar has little in
// use, some 30 MiB with 5,000 messages, and makes 5 MiB of garbage a turn: by Go's default the collector runs every sixth turn. With the headroom a
// turn takes a sixth less processor time, for 30 to 60 MiB more of memory; four times the headroom saves hardly more, and takes 100 to 250 MiB.
const headroom = 32 << 20

// spacious gives the garbage collector its headroom, unless GOGC or GOMEMLIMIT say what the operator wants. It ends with the function returned. A
// higher GOGC would do the same for a small heap, but waste as many times the memory of a large one; a memory limit that a large heap outgrows keeps
// the collector running without end.
func (a *app) spacious() (end func()) {
	if a.getenv("GOGC") != "" || a.getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	// Nobody writes to it, so the system never gives it memory: it only counts.
	unused := make([]byte, headroom)
	return func() { runtime.KeepAlive(unused) }
}

// logger writes to standard error from a level on.
func (a *app) logger(level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level: %q is not debug, info, warn or error: %w", level, core.ErrInvalid)
	}
	return slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: l})), nil
}

// engines gives a server the engines of an instance, and closes them with it.
type engines struct{ *registry.Instance }

// Provider implements rpc.Told.
func (e engines) Provider(session core.SessionID, provider string) {
	e.SetProvider(session.Agent, session.Session, provider)
}

// Factory implements rpc.Told.
func (e engines) Factory(agent string, f rpc.Facts) ([]string, error) {
	limits, ignored := registry.HostLimits(f.Channels)
	return ignored, e.SetFactory(agent, registry.Factory{AgentDir: f.AgentDir, WorkspaceDir: f.WorkspaceDir, Limits: limits})
}

func (e engines) Engine(ctx context.Context, agent, session string) (core.ContextEngine, rpc.Arm, error) {
	engine, arm, err := e.Instance.Engine(ctx, agent, session)
	return engine, rpc.Arm{Name: arm.Name, Share: arm.Share, Config: arm.Config}, err
}
