package verbs

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/openbrain"
	"github.com/contextengine/contextengine/internal/pathflag"
)

// serveFlags is what can be said on the command line of serve.
type serveFlags struct {
	cfg                 openbrain.Config
	store, path, listen string
	embed               embedFlags
	logFormat, logLevel string
}

func (p Parts) serveCmd() *cobra.Command {
	f := &serveFlags{cfg: openbrain.DefaultConfig()}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the OpenBrain interface from a store, until interrupted",
		Long: "serve answers the OpenBrain REST interface from a store. An interrupt or SIGTERM ends it: requests under way are\n" +
			"answered first. Keys and certificates are read again when their files change.\n\n" +
			"Each flag can be set by a variable: " + EnvPrefix + "LISTEN for --listen, and so on. " + EnvEmbedKey + "\n" +
			"is the embedder's key.",
		Example: "  contextengine openbrain key new --keys keys.json --name laptop --source 'openclaw:*'\n" +
			"  contextengine openbrain serve --store sqlite --path openbrain.db --keys keys.json",
		Args: cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			return fromEnv(cmd, p.Getenv, envFlags[:]...)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.Failed(p.serve(cmd, f))
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.store, "store", p.Store, "store to keep thoughts in: "+strings.Join(p.Stores, ", "))
	pathflag.Var(fs, &f.path, "path", "", "file of the store, where it has one (default: one of the server's own, beside that of the program)")
	fs.StringVar(&f.listen, "listen", "127.0.0.1:8787", "address to listen on")
	f.register(cmd)
	f.embed.register(cmd, &f.cfg)
	fs.StringVar(&f.logFormat, "log-format", "text", "text or json")
	fs.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	return cmd
}

// register adds the flags for the server's configuration.
func (f *serveFlags) register(cmd *cobra.Command) {
	c, fs := &f.cfg, cmd.Flags()
	pathflag.Var(fs, &c.KeysFile, "keys", "", "keys file, see key new; without one only this machine is answered")
	pathflag.Var(fs, &c.TLSCert, "tls-cert", "", "PEM file with the certificate chain")
	pathflag.Var(fs, &c.TLSKey, "tls-key", "", "PEM file with the certificate's key")
	fs.BoolVar(&c.AllowPlainHTTP, "allow-plain-http", false, "listen beyond this machine without TLS, behind something that does TLS")
	fs.StringVar(&c.DefaultSource, "default-source", c.DefaultSource, "source of thoughts that are sent without one")
	fs.Int64Var(&c.MaxBody, "max-body", c.MaxBody, "largest request body in bytes")
	fs.IntVar(&c.MaxLimit, "max-limit", c.MaxLimit, "largest limit of a list or search")
	fs.IntVar(&c.MaxConcurrent, "max-concurrent", c.MaxConcurrent, "requests worked on at the same time")
	fs.Float64Var(&c.RatePerSecond, "rate", c.RatePerSecond, "requests a second for each key; 0 is no limit")
	fs.IntVar(&c.RateBurst, "burst", c.RateBurst, "requests a key may make at once, with --rate")
	fs.DurationVar(&c.RequestTimeout, "request-timeout", c.RequestTimeout, "how long working on one request may take")
	fs.DurationVar(&c.ShutdownTimeout, "shutdown-timeout", c.ShutdownTimeout, "how long requests under way may take to end")
}

// envFlags are the flags that the environment can set: all of them.
var envFlags = [...]string{
	"store", "path", "listen", "keys", "tls-cert", "tls-key", "allow-plain-http", "default-source", "max-body", "max-limit",
	"max-concurrent", "rate", "burst", "request-timeout", "shutdown-timeout", "embed-model", "embed-api", "embed-url", "embed-dimensions",
	"embed-max-bytes", "embed-timeout", "log-format", "log-level",
}

// EnvName returns the variable that sets a flag of serve.
func EnvName(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnv sets some flags that were not given from the environment.
func fromEnv(cmd *cobra.Command, getenv func(string) string, flags ...string) error {
	var errs []error
	for _, flag := range flags {
		value := getenv(EnvName(flag))
		if cmd.Flags().Changed(flag) || value == "" {
			continue
		}
		switch err := cmd.Flags().Set(flag, value); {
		case errors.Is(err, core.ErrInvalid): // a path, in words of its own
			errs = append(errs, fmt.Errorf("%s: %w", EnvName(flag), errors.Unwrap(err)))
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: not usable for --%s: %w", EnvName(flag), flag, core.ErrInvalid))
		}
	}
	return errors.Join(errs...)
}

func (p Parts) serve(cmd *cobra.Command, f *serveFlags) (err error) {
	ctx := cmd.Context()
	log, err := f.logger(cmd)
	if err != nil {
		return err
	}
	// What is wrong with the command line should be said before a store is made.
	if err := f.cfg.Validate(); err != nil {
		return byFlag(err)
	}
	if err := f.cfg.CheckListen(f.listen); err != nil {
		return byFlag(err)
	}
	embedder, err := f.embed.open(p.Getenv, log)
	if err != nil {
		return err
	}
	store, err := p.open(ctx, f.store, f.path, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return openbrain.Run(ctx, openbrain.Setup{
		Config: f.cfg, Listen: f.listen, Store: store, Embedder: embedder, Logger: log,
		Listening: func(a net.Addr) {
			scheme := "http"
			if f.cfg.TLSCert != "" {
				scheme = "https"
			}
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "listening on %s://%s\n", scheme, a)
		},
	})
}

// flagOf names the flags that set fields of the server's configuration.
var flagOf = strings.NewReplacer(
	"openbrain: config: ", "", "listen address", "--listen", "defaultSource", "--default-source", "tlsCert", "--tls-cert", "tlsKey", "--tls-key", "keysFile", "--keys",
	"set keys or keysFile", "set --keys", "keys:", "--keys:", "allowPlainHTTP", "--allow-plain-http", "maxBody", "--max-body", "maxLimit", "--max-limit", "maxConcurrent", "--max-concurrent",
	"embedMaxBytes", "--embed-max-bytes", "ratePerSecond", "--rate", "rateBurst", "--burst", "requestTimeout", "--request-timeout", "shutdownTimeout", "--shutdown-timeout",
)

// flagError is an error of the configuration in the words of the command line.
type flagError struct{ error }

func byFlag(err error) error { return flagError{err} }

// Error implements error.
func (e flagError) Error() string { return flagOf.Replace(e.error.Error()) }

// Unwrap returns the error with its own words.
func (e flagError) Unwrap() error { return e.error }

// logger logs to standard error.
func (f *serveFlags) logger(cmd *cobra.Command) (*slog.Logger, error) {
	var opts slog.HandlerOptions
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level: must be debug, info, warn or error: %w", core.ErrInvalid)
	}
	opts.Level = level
	switch f.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), &opts)), nil
	}
	return nil, fmt.Errorf("--log-format: must be text or json: %w", core.ErrInvalid)
}
