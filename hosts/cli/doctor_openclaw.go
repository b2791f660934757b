package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/pathflag"
)

// The names that the plugin has in an OpenClaw host; hosts/openclaw/plugin/README.md says why they are these.
const (
	openClawPlugin  = "openbrain"
	openClawPackage = "openclaw-openbrain-context"
)

// usualPlace is the value of --openclaw without a file.
const usualPlace = "where the host looks"

// openClawFlags say what doctor looks at of an OpenClaw installation.
type openClawFlags struct {
	file, log string
	// wait is how long a sidecar or its program may take to answer.
	wait time.Duration
}

func (f *openClawFlags) add(cmd *cobra.Command) {
	pathflag.Var(cmd.Flags(), &f.file, "openclaw", "", "say why an OpenClaw host that has the plugin does not use it; `FILE` is its openclaw.json")
	cmd.Flags().Lookup("openclaw").NoOptDefVal = usualPlace
	pathflag.Var(cmd.Flags(), &f.log, "openclaw-log", "", "log of OpenClaw's gateway (default: the newest one where the host writes it)")
	cmd.MarkFlagsMutuallyExclusive("openclaw", "config")
	cmd.Flags().DurationVar(&f.wait, "openclaw-wait", 2*time.Second, "how long OpenClaw's sidecar, or its program, may take to answer")
}

// args takes one argument, the file, with --openclaw, and none without.
func (f *openClawFlags) args(cmd *cobra.Command, args []string) error {
	if f.file != usualPlace {
		if f.file == "" && f.log != "" {
			return fmt.Errorf("--openclaw-log: goes with --openclaw: %w", core.ErrInvalid)
		}
		return cobra.NoArgs(cmd, args)
	}
	if err := cobra.MaximumNArgs(1)(cmd, args); err != nil {
		return err
	}
	if len(args) == 1 {
		return cmd.Flags().Set("openclaw", args[0])
	}
	return nil
}

// inspection collects what is found out about an OpenClaw installation. No text in it repeats a value of the host's
// configuration or a line of its log, names and paths of this plugin apart.
type inspection struct {
	app   *app
	flags openClawFlags
	out   []finding
	fails int
	first error
}

func (o *inspection) ok(name, format string, args ...any) {
	o.out = append(o.out, finding{Name: name, Status: "ok", Text: fmt.Sprintf(format, args...)})
}

func (o *inspection) note(name, text, do string) {
	o.out = append(o.out, finding{Name: name, Status: "note", Text: text, Do: do})
}

// wrong adds a failure of the installation or its configuration.
func (o *inspection) wrong(name, text, do string) { o.fail(name, text, do, core.ErrInvalid) }

// broken adds a failure of something that runs.
func (o *inspection) broken(name, text, do string) { o.fail(name, text, do, core.ErrUnavailable) }

func (o *inspection) fail(name, text, do string, kind error) {
	o.out = append(o.out, finding{Name: name, Status: "fail", Text: text, Do: do})
	o.fails++
	if o.first == nil {
		o.first = fmt.Errorf("%s: %s: %w", name, text, kind)
	}
}

// examineOpenClaw looks for every known way in which the plugin can be installed in an OpenClaw host and not be used. It
// changes nothing. The error is the first failure: core.ErrInvalid for what is installed or configured wrongly,
// core.ErrUnavailable for what does not run.
func (a *app) examineOpenClaw(ctx context.Context, flags openClawFlags) ([]finding, error) {
	o := &inspection{app: a, flags: flags}
	c, ok := o.readHost()
	if !ok {
		if flags.log != "" { // one found otherwise may be another host's
			o.log(ctx, c)
		}
		return o.out, o.first
	}
	o.selection(c)
	p := o.pluginFolder(c)
	o.hostVersion(c)
	if p.folder != "" || c.pluginEntry() != nil {
		o.entry(ctx, c, p)
	}
	o.log(ctx, c)
	return o.out, o.first
}
