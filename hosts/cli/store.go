package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/retain"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/hosts/imports"
	"github.com/contextengine/contextengine/internal/pathflag"
	"github.com/contextengine/contextengine/registry"
)

// What only some stores can do. They are found with core.As, so that a decorator passes them on; those that write entries only on the
// configured store itself.
type (
	vacuumer interface {
		Vacuum(ctx context.Context) error
	}
	verifier interface {
		Verify(ctx context.Context) error
	}
	backuper interface {
		Backup(ctx context.Context, path string) error
	}
	retainer interface {
		Retain(ctx context.Context, p retain.Policy) (retain.Report, error)
	}
	// foreteller says what Retain would do, and does nothing.
	foreteller interface {
		WouldRetain(ctx context.Context, p retain.Policy) (retain.Report, error)
	}
	detailer interface {
		Details(ctx context.Context) (upkeep.Details, error)
	}
)

// fileStore is the built-in store that can do all of it.
const fileStore = "sqlite"

// storeFlags say which store a verb works on.
type storeFlags struct {
	config, store string
	// agent is whose configuration names the store.
	agent string
}

func (f *storeFlags) register(cmd *cobra.Command) {
	pathflag.Var(cmd.Flags(), &f.config, "config", "", "configuration file (default: the file that CONTEXTENGINE_CONFIG names, or the defaults)")
	cmd.Flags().StringVar(&f.store, "store", "", "store instead of the configured one")
}

// keeper is a store in use, and the engines over it.
type keeper struct {
	instance *registry.Instance
	store    core.Store
	// kind is the store's name in the configuration.
	kind string
	a    *app
	// reads says that nothing is to be written.
	reads bool
}

// keeping opens the configured store, runs do and closes it.
func (a *app) keeping(ctx context.Context, f storeFlags, do func(k *keeper) error) error {
	return a.using(ctx, f, false, do)
}

// reading is keeping for what changes nothing: it is done when everything was read. That a store could not tidy up behind it, on a full disk say, is a warning.
func (a *app) reading(ctx context.Context, f storeFlags, do func(k *keeper) error) error {
	return a.using(ctx, f, true, do)
}

func (a *app) using(ctx context.Context, f storeFlags, reads bool, do func(k *keeper) error) error {
	over := make(map[string]any)
	if f.store != "" {
		over["store"] = f.store
	}
	base, err := a.load(f.config, over)
	if err != nil {
		return err
	}
	agent := cmp.Or(f.agent, "main")
	cfg, _, err := a.reg.Resolve(base, agent, storeSession)
	if err != nil {
		return err
	}
	instance, err := a.reg.Build(ctx, base, registry.BuildOptions{Getenv: a.getenv, Version: version()})
	if err != nil {
		return err
	}
	k := &keeper{instance: instance, kind: orNone(cfg.Store.Type), a: a, reads: reads}
	err = a.saying("opening the store", func() error {
		k.store, err = k.storeOf(ctx, agent, storeSession)
		return err
	})
	if err == nil {
		err = do(k)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	untidy := a.saying("closing the store", func() error { return instance.Close(end) })
	if reads && untidy != nil {
		fmt.Fprintln(a.Stderr, "warning: "+plain(untidy.Error()))
		untidy = nil
	}
	return errors.Join(err, untidy)
}

// storeSession stands for any session where a configuration has arms: one that can never begin.
const storeSession = ""

var errNoStore = fmt.Errorf("choose another with the key engine: %w", core.ErrInvalid)

// storeOf returns where the engine of a session keeps its entries.
func (k *keeper) storeOf(ctx context.Context, agent, session string) (core.Store, error) {
	e, _, err := k.instance.Lookup(ctx, agent, session)
	if err != nil {
		return nil, err
	}
	s, ok := e.(interface{ Store() core.Store })
	if !ok {
		// What an engine lacks before it can be used, it says at bootstrap.
		if b, can := e.(core.Bootstrapper); can {
			if _, err := b.Bootstrap(ctx, core.BootstrapRequest{Session: core.SessionID{Agent: agent, Session: cmp.Or(session, "store")}}); err != nil {
				return nil, err
			}
		}
		return nil, fmt.Errorf("engine %q stores nothing: %w", e.Info().ID, errNoStore)
	}
	return s.Store(), nil
}

// Target implements imports.Sink: the engine that a session's configuration names.
func (k *keeper) Target(ctx context.Context, id core.SessionID) (imports.Target, error) {
	engineOf := k.instance.Engine
	if k.reads {
		engineOf = k.instance.Lookup // it does not write down which arm a session has
	}
	e, _, err := engineOf(ctx, id.Agent, id.Session)
	if err != nil {
		return imports.Target{}, err
	}
	store, err := k.storeOf(ctx, id.Agent, id.Session)
	if err != nil {
		return imports.Target{}, err
	}
	in, ok := e.(core.BatchIngester)
	if !ok {
		return imports.Target{}, fmt.Errorf("engine %q takes no batches of messages: choose another with the key engine: %w", e.Info().ID, core.ErrInvalid)
	}
	return imports.Target{Ingester: in, Store: store}, nil
}

// cannot is the error of a verb that the store has no means for.
func (k *keeper) cannot(what string) error {
	remedy := "choose one that can"
	if k.kind != fileStore && slices.Contains(k.a.reg.Names(registry.KindStore), fileStore) {
		remedy = fmt.Sprintf("the store %q can", fileStore)
	}
	return fmt.Errorf("store %q cannot %s: %s: %w", k.kind, what, remedy, errors.ErrUnsupported)
}

func (a *app) vacuumCmd() *cobra.Command {
	var f storeFlags
	cmd := &cobra.Command{
		Use:     "vacuum",
		Short:   "Give back the space of what was deleted",
		Long:    "vacuum rewrites the store's file without its free space. It needs twice as much room on the disk as the file has.\n\n" + exitHelp,
		Example: "  contextengine vacuum --config contextengine.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return failed(a.keeping(ctx, f, func(k *keeper) error {
				v, ok := core.As[vacuumer](k.store)
				if !ok {
					return k.cannot("vacuum")
				}
				before, known := k.bytes(ctx)
				if err := a.saying("vacuuming", func() error { return v.Vacuum(ctx) }); err != nil {
					return err
				}
				after, _ := k.bytes(ctx)
				if !known {
					fmt.Fprintln(a.Stdout, "done")
					return nil
				}
				fmt.Fprintf(a.Stdout, "%s, before %s\n", size(after), size(before))
				return nil
			}))
		},
	}
	f.register(cmd)
	return cmd
}

// bytes returns what the store takes on its medium, if it knows.
func (k *keeper) bytes(ctx context.Context) (int64, bool) {
	s, ok := core.As[upkeep.Statter](k.store)
	if !ok {
		return 0, false
	}
	st, err := s.Stats(ctx)
	return st.Bytes, err == nil
}

func (a *app) verifyCmd() *cobra.Command {
	var f storeFlags
	var fix bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that the store holds what was written",
		Long: `verify fails, and names the file and the first thing in it, when something is not what was written. Then it compares the views of all
sessions with the entries, and names every session where they do not agree: two processes that used one session with an older version
left such ones. --fix gives entries that share a position one each, and takes positions that hold nothing out of the views. Nothing that is stored is lost.

` + exitHelp,
		Example: "  contextengine verify\n  contextengine verify --fix",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			using := a.reading
			if fix {
				using = a.keeping
			}
			return failed(using(ctx, f, func(k *keeper) error {
				v, ok := core.As[verifier](k.store)
				if _, views := core.As[core.ViewStore](k.store); !ok && !views {
					return k.cannot("verify what it holds")
				}
				if ok {
					if err := a.saying("verifying what is stored", func() error { return v.Verify(ctx) }); err != nil {
						return err
					}
				}
				if err := k.verifyViews(ctx, fix); err != nil {
					return err
				}
				fmt.Fprintln(a.Stdout, "ok: everything in the store is what was written")
				return nil
			}))
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&fix, "fix", false, "mend views that do not agree with the entries")
	return cmd
}

func (a *app) backupCmd() *cobra.Command {
	var f storeFlags
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the store to a file while it is in use",
		Long: `backup writes a copy of the store, as of one moment. It is complete, and on the disk, when the command ends well, and not there
when it fails. A file that exists is not overwritten. The copy is a store like any other: name it in the configuration to use it.

` + exitHelp,
		Example: "  contextengine backup /var/backups/context-$(date +%F).db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if args[0] == "" {
				return fmt.Errorf("FILE: is empty: name the file to write: %w", core.ErrInvalid)
			}
			if err := (outFile{flag: "FILE", name: args[0]}).folder(); err != nil {
				return failed(err)
			}
			return failed(a.reading(ctx, f, func(k *keeper) error {
				b, ok := core.As[backuper](k.store)
				if !ok {
					return fmt.Errorf("%w; \"export\" writes every store as lines", k.cannot("copy itself to a file"))
				}
				if err := a.saying("copying the store", func() error { return b.Backup(ctx, args[0]) }); err != nil {
					return err
				}
				info, err := os.Stat(args[0])
				if err != nil {
					return err
				}
				fmt.Fprintf(a.Stdout, "wrote %s, %s\n", args[0], size(info.Size()))
				return nil
			}))
		},
	}
	f.register(cmd)
	return cmd
}
