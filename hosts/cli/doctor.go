package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/internal/columns"
	"github.com/contextengine/contextengine/internal/pathflag"
	"github.com/contextengine/contextengine/internal/waiting"
	"github.com/contextengine/contextengine/registry"
)

// finding is what doctor says about one thing.
type finding struct {
	Name string `json:"name"`
	// Status is "ok", "note" or "fail".
	Status string `json:"status"`
	Text   string `json:"text"`
	// Do says what to do about it.
	Do string `json:"do,omitempty"`
}

func (a *app) doctorCmd() *cobra.Command {
	var config, agent string
	var timeout time.Duration
	var asJSON, fix, yes bool
	var host openClawFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that what is configured can be used, and say what to do",
		Long: "doctor checks that what is configured can be used, for all agents and arms. It makes the store if there is none, and writes nothing into it.\n" +
			"An embedder is asked for the vectors of two texts; no other model is asked anything.\n\n" +
			"With --fix it mends what it can in the store of the agent: the indexes of a damaged file (a copy of the file is kept), views that do not agree with\n" +
			"their entries (as they were they go to a file), and what an outbox could not deliver; and it removes temporary files of processes that were killed.\n" +
			"It says what it is about to do, and asks. Locks need no mending: they end with their process.\n\n" +
			"With --openclaw [FILE] it looks at an OpenClaw host instead, and says why the plugin is installed there but not used. It changes nothing there.\n\n" + exitHelp,
		Args: host.args,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case fix && host.file != "":
				return failed(fmt.Errorf("--fix mends what a configuration of this program names, and changes nothing in a host: give one of --fix and --openclaw: %w", core.ErrInvalid))
			case fix && asJSON && !yes:
				return failed(fmt.Errorf("--fix asks, which goes with no --json: add --yes: %w", core.ErrInvalid))
			}
			var repairs []*repair
			if fix {
				if err := a.mending(cmd.Context(), config, agent, timeout, func(found []*repair) error {
					repairs = found
					return a.fix(cmd.Context(), found, yes, asJSON)
				}); err != nil && !asJSON {
					return failed(err)
				}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			examine := func() ([]finding, error) { return a.examine(ctx, config, agent) }
			if host.file != "" {
				examine = func() ([]finding, error) { return a.examineOpenClaw(ctx, host) }
			}
			done := waiting.Say(a.Stderr, "checking")
			findings, err := examine()
			done()
			if cmd.Context().Err() != nil {
				return cmd.Context().Err()
			}
			for i := range findings {
				findings[i].Text = plain(findings[i].Text)
			}
			if asJSON {
				out := map[string]any{"ok": err == nil, "findings": findings}
				if fix {
					out["repairs"] = repairs
				}
				if werr := writeJSON(a.Stdout, out); werr != nil {
					return failed(werr)
				}
			} else {
				a.print(findings)
			}
			if err != nil {
				return &exitError{code: codeOf(failed(err))} // it was printed above
			}
			return nil
		},
	}
	pathflag.Var(cmd.Flags(), &config, "config", "", "configuration file (default: the file that CONTEXTENGINE_CONFIG names, or the defaults)")
	cmd.Flags().StringVar(&agent, "agent", "main", "agent whose configuration is looked at closely")
	cmd.Flags().DurationVar(&timeout, "timeout", 15*time.Second, "how long all checks together may take, and how long --fix waits for an outbox")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&fix, "fix", false, "mend what can be mended first, and ask before")
	cmd.Flags().BoolVar(&yes, "yes", false, "with --fix: do not ask")
	a.wideFlag(cmd)
	host.add(cmd)
	return cmd
}

func (a *app) print(findings []finding) {
	for _, f := range findings {
		status := a.paint(a.Stdout, map[string]colour{"ok": green, "note": yellow, "fail": red}[f.Status], fmt.Sprintf("%-4s", f.Status))
		text := strings.TrimPrefix(a.column(f.Text), strings.Repeat(" ", findingColumn))
		fmt.Fprintf(a.Stdout, "%s  %-13s  %s\n", status, f.Name, text)
		if f.Do != "" {
			fmt.Fprintln(a.Stdout, a.column("-> "+f.Do))
		}
	}
}

// findingColumn is where the text of a finding begins.
const findingColumn = 21

// column writes a text in lines that begin where the texts of findings do.
func (a *app) column(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.Repeat(" ", findingColumn) + line
		hang := findingColumn
		if rest := strings.TrimLeft(line, " "); strings.HasPrefix(rest, "-> ") {
			hang += 3
		} else if len(line)-len(rest) > findingColumn {
			hang = len(line) - len(rest) + 2
		}
		lines = append(lines, columns.Hang(line, hang, a.fit()))
	}
	return strings.Join(lines, "\n")
}

// examine checks one thing after the other and stops where the next one needs the last. The error is the first failure.
func (a *app) examine(ctx context.Context, file, agent string) (out []finding, first error) {
	add := func(name, ok string, err error) bool {
		if err == nil {
			out = append(out, finding{Name: name, Status: "ok", Text: ok})
			return true
		}
		out = append(out, finding{Name: name, Status: "fail", Text: err.Error(), Do: advice(name, err)})
		if first == nil {
			first = err
		}
		return false
	}
	base, err := a.load(file, nil)
	var cfg registry.Config
	if err == nil {
		cfg, _, err = a.reg.Resolve(base, agent, "doctor")
	}
	if !add("configuration", configText(cfg), err) {
		return out, first
	}
	for _, f := range a.configFindings(file, base, agent) {
		if out = append(out, f); f.Status == "fail" {
			first = errors.Join(first, fmt.Errorf("%s: %w", f.Text, core.ErrInvalid))
		}
	}
	host := experiment.NewSimHost(8000, func(message.Message) int { return 0 })
	instance, err := a.reg.Build(ctx, base, registry.BuildOptions{Host: host, Getenv: a.getenv})
	if err != nil {
		add("parts", "", err)
		return out, first
	}
	defer func() {
		if err := instance.Close(context.WithoutCancel(ctx)); err != nil { // all was looked at
			out = append(out, finding{Name: "closing", Status: "note", Text: plain(err.Error())})
		}
	}()
	eng, _, err := instance.Lookup(ctx, agent, "")
	if !add("parts", "all of them can be made", err) {
		return out, first
	}
	if text, err := others(ctx, instance); text != "" || err != nil {
		add("agents, arms", text, err)
	}
	add("tokenizer", cfg.Tokenizer, nil)
	err = instance.Ping(ctx)
	if b, ok := eng.(core.Bootstrapper); ok && err == nil {
		_, err = b.Bootstrap(ctx, core.BootstrapRequest{Session: core.SessionID{Agent: agent, Session: "doctor"}})
	}
	add("store", storeText(cfg), err)
	if e, ok := eng.(*engine.Engine); ok {
		if err == nil {
			f := viewsFinding(ctx, e.Store())
			if out = append(out, f); f.Status == "fail" {
				first = errors.Join(first, errors.New(f.Text))
			}
		}
		if f, ok := leftFinding(e.Store()); ok {
			out = append(out, f)
		}
		if b, ok := core.As[upkeep.Backlogger](e.Store()); ok {
			out = append(out, backlogFinding(ctx, b))
			add("remote store", "can be reached", b.CheckRemote(ctx))
		}
	}
	if caveat := caveatOf(eng); caveat != "" {
		text, do, _ := strings.Cut(caveat, ": ")
		out = append(out, finding{Name: "retriever", Status: "note", Text: text, Do: do})
	}
	embedders, err := a.embedders(ctx, base, agent)
	out, first = append(out, embedders...), errors.Join(first, err)
	out = append(out, modelFinding(cfg))
	return out, first
}

// viewsTime bounds how long doctor compares views with entries; "verify" does all of it.
const viewsTime = 5 * time.Second

// viewsFinding says whether views and entries agree.
func viewsFinding(ctx context.Context, s core.Store) finding {
	f := finding{Name: "views", Status: "ok", Text: "they agree with the entries"}
	ctx, cancel := context.WithTimeout(ctx, viewsTime)
	defer cancel()
	for flaw, err := range engine.Flaws(ctx, s) {
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			f.Text, f.Do = "they agree with the entries as far as was looked; there are many", `nothing, or let "contextengine verify" compare all of them`
		case err != nil:
			f.Status, f.Text = "fail", err.Error()
		default:
			f.Status, f.Text, f.Do = "fail", flaw.String(), `run "contextengine doctor --fix"`
		}
		break
	}
	return f
}

// backlogFinding says what an outbox still has to deliver.
func backlogFinding(ctx context.Context, b upkeep.Backlogger) finding {
	f := finding{Name: "outbox", Status: "ok", Text: "everything is delivered"}
	log, err := b.Backlog(ctx)
	switch {
	case err != nil:
		f.Status, f.Text = "fail", err.Error()
	case log.SetAside > 0:
		f.Status, f.Text = "note", fmt.Sprintf("%d changes were refused by the remote store and set aside; the last error: %s", log.SetAside, log.LastError)
		f.Do = "mend what the remote store refused, then try them again; everything is kept in the local store"
	case log.Full != "":
		f.Status, f.Text, f.Do = "note", "it is full: "+log.Full, "bring the remote store back, or raise the bounds"
	case log.Waiting > 0:
		f.Status, f.Text = "note", fmt.Sprintf("%d changes (%d bytes) wait since %s", log.Waiting, log.Bytes, log.Oldest.Format(time.DateTime))
		if log.LastError != "" {
			f.Text += "; the last error: " + log.LastError
		}
		f.Do = "nothing, if the remote store comes back: they are delivered then"
	}
	if log.Bare > 0 {
		if f.Status == "ok" {
			f.Status = "note"
		}
		f.Text += fmt.Sprintf("; %d messages were restored from the remote store with their text alone: their tool calls, images and the host's own bytes were not there", log.Bare)
	}
	return f
}

func configText(cfg registry.Config) string {
	return fmt.Sprintf("engine %s, store %s, retriever %s, compactor %s", cfg.Engine.Type,
		orNone(cfg.Store.Type), orNone(cfg.Retriever.Type), orNone(cfg.Compactor.Type))
}

func storeText(cfg registry.Config) string {
	if cfg.Store.Type == "" {
		return "none is configured, and none is needed"
	}
	return cfg.Store.Type + " can be used"
}

func orNone(name string) string {
	if name == "" {
		return "none"
	}
	return name
}

// modelFinding says whether there is a model for what needs one.
func modelFinding(cfg registry.Config) finding {
	switch {
	case cfg.Model.Type != "":
		return finding{Name: "model", Status: "ok", Text: cfg.Model.Type + " is configured; doctor asks it nothing, because answers cost"}
	case cfg.Compactor.Type == "summary":
		return finding{
			Name: "model", Status: "note", Text: "none is configured: summaries are written by the host's model, or without one where the host has none",
			Do: `set "model", for instance to openai with a baseUrl`,
		}
	}
	return finding{Name: "model", Status: "ok", Text: "none is configured, and none is needed"}
}

// advice says what most likely helps.
func advice(name string, err error) string {
	switch {
	case strings.HasSuffix(err.Error(), ": damaged"):
		return "run \"contextengine doctor --fix\", with --agent where an agent has a store of its own, or put a copy back that \"contextengine backup\" made"
	case errors.Is(err, core.ErrAuth):
		return "check the API key: the server refused it"
	case errors.Is(err, core.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return "check that the server runs and that its address is right; it may also be overloaded"
	case errors.Is(err, capability.ErrRequirement):
		return "choose parts that do without what the runtime lacks, such as the compactor archive"
	case name == "configuration" && errors.Is(err, core.ErrInvalid):
		return "correct the file or the environment; \"contextengine list\" shows all keys, \"contextengine init\" writes a file with them"
	case strings.Contains(err.Error(), "required"), errors.Is(err, core.ErrInvalid) && strings.Contains(err.Error(), "set "):
		return "set what is missing, in the configuration or the environment"
	case errors.Is(err, core.ErrInvalid):
		return "correct the configuration; \"contextengine list\" shows what its parts take"
	}
	return "see the text of the error"
}
