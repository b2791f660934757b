package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/nearest"
	"github.com/contextengine/contextengine/internal/homepath"
)

// speaking makes a command and those below it say in words what is wrong with a command line, and read its paths as people mean them.
func speaking(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(flagError)
	check := cmd.Args
	if check == nil {
		check = cobra.ArbitraryArgs
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := expandPaths(cmd, args); err != nil {
			return err
		}
		err := check(cmd, args)
		if err == nil || errors.Is(err, core.ErrInvalid) {
			return err // it has words of its own
		}
		return argumentError(cmd, args)
	}
	for _, c := range cmd.Commands() {
		speaking(c)
	}
}

// notPaths are the names of arguments that are no paths.
var notPaths = []string{"NAME", "VALUE"}

// expandPaths reads the arguments of a command that are paths, in their place: no shell may have looked at them.
func expandPaths(cmd *cobra.Command, args []string) error {
	operands := operandsOf(cmd)
	if len(operands) == 0 {
		return nil
	}
	for i, arg := range args {
		name := operands[min(i, len(operands)-1)] // the last may be given several times
		if slices.Contains(notPaths, name) {
			continue
		}
		path, err := homepath.Expand(arg)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		args[i] = path
	}
	return nil
}

// argumentError says which arguments a command takes.
func argumentError(cmd *cobra.Command, args []string) error {
	name, operands := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" "), operandsOf(cmd)
	if cmd.HasAvailableSubCommands() {
		return unknownCommand(cmd, args[0])
	}
	switch {
	case len(operands) == 0:
		return fmt.Errorf("%s takes flags only, and there is %q: \"%s --help\" shows them: %w", name, args[0], cmd.CommandPath(), core.ErrInvalid)
	case len(args) < len(operands):
		return fmt.Errorf("%s needs %s: \"%s --help\" shows examples: %w", name, strings.Join(operands[len(args):], " and "), cmd.CommandPath(), core.ErrInvalid)
	}
	return fmt.Errorf("%s takes %s, and there is %q, too: %w", name, strings.Join(operands, " and "), args[len(operands)], core.ErrInvalid)
}

// unknownCommand is the error for a name that is not one of a command's own.
func unknownCommand(cmd *cobra.Command, name string) error {
	what := "command"
	if cmd.HasParent() {
		what += " of " + strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	}
	return unknownName(what, name, commandsOf(cmd))
}

// commandsOf are the names of the commands below one.
func commandsOf(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	slices.Sort(names)
	return names
}

// asked makes the two commands that come with the library say what is wrong, as all others do: they print help instead, and succeed.
func asked(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Run, c.RunE = nil, help
		case "completion":
			c.Args = cobra.NoArgs
			c.RunE = func(cmd *cobra.Command, _ []string) error {
				return fmt.Errorf("%s needs SHELL: one of %s: %w", cmd.Name(), strings.Join(commandsOf(cmd), ", "), core.ErrInvalid)
			}
		}
	}
}

// help prints the help of the command that is named.
func help(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	switch {
	case len(rest) > 0 && found.HasAvailableSubCommands():
		return unknownCommand(found, rest[0])
	case len(rest) > 0:
		return fmt.Errorf("%s has no commands, and there is %q: %w", strings.TrimPrefix(found.CommandPath(), cmd.Root().Name()+" "), rest[0], core.ErrInvalid)
	case err != nil:
		return err
	}
	found.InitDefaultHelpFlag()
	found.InitDefaultVersionFlag()
	return found.Help()
}

// oneOf says that of some flags only one counts.
func oneOf(cmd *cobra.Command, flags ...string) error {
	flags = slices.DeleteFunc(flags, func(name string) bool { return !cmd.Flags().Changed(name) })
	if len(flags) < 2 {
		return nil
	}
	return fmt.Errorf("--%s: each prints something else: give one of them: %w", strings.Join(flags, " and --"), core.ErrInvalid)
}

// operandsOf are the arguments in a command's usage: its words in capitals that follow no flag.
func operandsOf(cmd *cobra.Command) []string {
	var out []string
	words := strings.Fields(cmd.Use)[1:]
	for i, word := range words {
		word = strings.Trim(word, "[].")
		if word != "" && word == strings.ToUpper(word) && !strings.HasPrefix(word, "-") && (i == 0 || !strings.HasPrefix(strings.Trim(words[i-1], "["), "--")) {
			out = append(out, word)
		}
	}
	return out
}

// flagError says what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
		text := "unknown flag: --" + e.GetSpecifiedName()
		if e.GetSpecifiedShortnames() != "" {
			text = "unknown flag: -" + e.GetSpecifiedName()
		}
		if best, ok := nearest.Of("--"+e.GetSpecifiedName(), known); ok {
			text += ", did you mean " + best + "?"
		}
		return fmt.Errorf("%s (\"%s --help\" lists them): %w", text, cmd.CommandPath(), core.ErrInvalid)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if want := valuesOf[e.GetFlag().Value.Type()]; want != "" {
			return fmt.Errorf("--%s: %q is not %s: %w", e.GetFlag().Name, e.GetValue(), want, core.ErrInvalid)
		}
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("--%s needs a value: %s: %w", e.GetFlag().Name, e.GetFlag().Usage, core.ErrInvalid)
	}
	if e, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return fmt.Errorf("%q is no flag: write --name, or --name=value: %w", e.GetSpecifiedFlag(), core.ErrInvalid)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok && errors.Is(err, core.ErrInvalid) {
		return fmt.Errorf("--%s: %w", e.GetFlag().Name, errors.Unwrap(e)) // a path, in words of its own
	}
	return err
}

// valuesOf says in words what flags of a type take.
var valuesOf = map[string]string{
	"bool": "true or false", "duration": "a length of time, such as 30s, 5m or 1h", "float64": "a number", "float64Slice": "a list of numbers, such as 0.4,0.15",
	"int": "a whole number", "int64": "a whole number", "intSlice": "a list of whole numbers, such as 5,10", "uint64": "a whole number that is not negative",
}

// checkFlags says which flag is missing, and which was given without anything in it: an empty value that is passed over does something else than it was typed for.
func checkFlags(cmd *cobra.Command) error {
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if required := f.Annotations[cobra.BashCompOneRequiredFlag]; err == nil && !f.Changed && len(required) > 0 && required[0] == "true" {
			err = fmt.Errorf("--%s is required: %s: %w", f.Name, f.Usage, core.ErrInvalid)
		}
	})
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if err == nil && (len(values) == 0 || slices.ContainsFunc(values, func(s string) bool { return strings.TrimSpace(s) == "" })) {
			err = fmt.Errorf("--%s: is empty: give it a value, or leave it out: %w", f.Name, core.ErrInvalid)
		}
	})
	return err
}
