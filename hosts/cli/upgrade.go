package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/pathflag"
	"github.com/contextengine/contextengine/registry"
)

func (a *app) upgradeCmd() *cobra.Command {
	var config, from string
	var check, asJSON bool
	cmd := &cobra.Command{
		Use:   "upgrade --check",
		Short: "Say what a configuration of an older version has to change",
		Long: "upgrade --check compares a configuration with what it meant in the version that it was written for: keys that are gone, which this version refuses, and defaults that are others where the file says nothing. " +
			"It changes nothing. What became possible is in the change log, and in \"contextengine list\".\n\n" +
			"The version is the one that \"init\" wrote into the file; --from names another. Without either it is the oldest one that is known.\n\n" + exitHelp,
		Example: "  contextengine upgrade --check --config contextengine.yaml --from 0.1.0",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if !check {
				return fmt.Errorf("upgrade changes nothing by itself: --check says what is to be done: %w", core.ErrInvalid)
			}
			return failed(a.upgrade(config, from, asJSON))
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "say what is to be done; required")
	pathflag.Var(cmd.Flags(), &config, "config", "", "configuration file (default: the file that CONTEXTENGINE_CONFIG names)")
	cmd.Flags().StringVar(&from, "from", "", "version that the file was written for, such as 0.1.0")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	a.wideFlag(cmd)
	return cmd
}

func (a *app) upgrade(config, from string, asJSON bool) error {
	versions := a.reg.Versions()
	if len(versions) == 0 {
		return fmt.Errorf("nothing is known of older versions: %w", errors.ErrUnsupported)
	}
	config, err := a.configFile(config)
	if err != nil {
		return err
	}
	source := registry.Values("no configuration", nil)
	if config != "" {
		source = registry.File(config)
	}
	written := writtenFor(config)
	switch {
	case from != "":
	case written == "":
		from = versions[0]
	case slices.Contains(versions, written):
		from = written
	case written == version():
		if _, err := a.reg.Load(source); err != nil { // nothing changed since, and it may be unusable all the same
			return err
		}
		return a.upgraded(config, written, nil, asJSON)
	default:
		return fmt.Errorf("%s was written for %s, of which nothing is known: name the nearest version with --from (known: %s): %w", config, written, strings.Join(versions, ", "), core.ErrInvalid)
	}
	changes, err := a.reg.Upgrade(source, from)
	if err != nil {
		return err
	}
	return a.upgraded(config, from, changes, asJSON)
}

// upgraded prints what changed. A key that is gone is an error: the file cannot be used as it is.
func (a *app) upgraded(config, from string, changes []registry.Change, asJSON bool) error {
	gone := 0
	findings := []finding{{Name: "version", Status: "ok", Text: fmt.Sprintf("%s, as written for %s; this is %s", cmp.Or(config, "the defaults"), from, version())}}
	for _, c := range changes {
		if c.Gone {
			gone++
			findings = append(findings, finding{Name: "gone", Status: "fail", Text: c.Path + " is there no longer", Do: "take it out of the file"})
			continue
		}
		findings = append(findings, finding{
			Name: "default", Status: "note", Text: fmt.Sprintf("%s is %s where nothing is said, and was %s", c.Path, inFile(c.Is), inFile(c.Was)), Do: fmt.Sprintf("nothing, or set it to %s to keep what was", inFile(c.Was)),
		})
	}
	if len(changes) == 0 {
		findings = append(findings, finding{Name: "configuration", Status: "ok", Text: "it means what it meant"})
	}
	if asJSON {
		if err := writeJSON(a.Stdout, map[string]any{"ok": gone == 0, "from": from, "changes": slices.Concat([]registry.Change{}, changes)}); err != nil {
			return err
		}
	} else {
		a.print(findings)
	}
	if gone > 0 {
		return &exitError{code: ExitUsage} // it was printed above
	}
	return nil
}

// inFile is a value as a file has it.
func inFile(v any) string {
	text, err := json.Marshal(v)
	if err != nil || v == nil {
		return "nothing"
	}
	return string(text)
}

// writtenLine is what init writes.
var writtenLine = regexp.MustCompile(`^(?:#|//) Written for contextengine (\d+\.\d+\.\d+\S*)$`)

// writtenFor is the version that init wrote into the head of a file; empty where it is not there.
func writtenFor(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return "" // whoever reads the file says so
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for n := 0; n < 5 && lines.Scan(); n++ {
		if m := writtenLine.FindStringSubmatch(lines.Text()); m != nil {
			return m[1]
		}
	}
	return ""
}
