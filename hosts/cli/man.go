package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/contextengine/contextengine/core"
)

func (a *app) manCmd() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "man DIR",
		Short: "Write manual pages",
		Long: `man writes a manual page for every command into a folder, which is made if needed. They say what --help says.

` + exitHelp,
		Example: "  contextengine man ~/.local/share/man/man1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return failed(a.man(cmd.Root(), args[0], force))
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite pages that exist")
	return cmd
}

// man writes the pages of a command and of those below it.
func (a *app) man(root *cobra.Command, dir string, force bool) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is no folder: %w", dir, core.ErrInvalid)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	pages := shownCommands(root)
	file := func(cmd *cobra.Command) outFile {
		return outFile{flag: "DIR", name: filepath.Join(dir, pageName(cmd)+".1"), force: force}
	}
	for _, cmd := range pages { // all or none
		if err := file(cmd).check(); err != nil {
			return err
		}
	}
	for _, cmd := range pages {
		err := file(cmd).write(a.Stdout, func(w io.Writer) error {
			_, err := io.WriteString(w, manPage(cmd))
			return err
		})
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(a.Stdout, "wrote %s into %s; \"man %s\" shows the first\n", count(len(pages), "page"), dir, filepath.Join(dir, pageName(root)+".1"))
	return nil
}

// shownCommands are a command and those below it that help shows.
func shownCommands(cmd *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			out = append(out, shownCommands(c)...)
		}
	}
	return out
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is the page of a command in the language of man(7).
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	name := pageName(cmd)
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n", strings.ToUpper(name), "contextengine "+version(), roff(name), roff(cmd.Short), roff(cmd.UseLine()))
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	text, codes, _ := strings.Cut(text, "Exit codes:\n")
	b.WriteString(".SH DESCRIPTION\n")
	manText(&b, reflow(strings.TrimSpace(text), helpWidth-7)) // pages are indented by seven
	b.WriteString(".SH OPTIONS\n")
	for _, flags := range []*pflag.FlagSet{cmd.NonInheritedFlags(), cmd.InheritedFlags()} {
		flags.VisitAll(func(f *pflag.Flag) { manFlag(&b, f) })
	}
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n.nf\n" + roff(cmd.Example) + "\n.fi\n")
	}
	if codes != "" {
		b.WriteString(".SH EXIT STATUS\n.nf\n" + roff(strings.TrimRight(codes, "\n")) + "\n.fi\n")
	}
	var also []string
	if cmd.HasParent() {
		also = append(also, pageName(cmd.Parent()))
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			also = append(also, pageName(c))
		}
	}
	if len(also) > 0 {
		b.WriteString(".SH SEE ALSO\n" + roff(strings.Join(also, "(1), ")+"(1)") + "\n")
	}
	return b.String()
}

// manText writes paragraphs, which are filled, and lists, which stay as they are.
func manText(b *strings.Builder, text string) {
	list := false
	for line := range strings.SplitSeq(text, "\n") {
		if indented := strings.HasPrefix(line, " "); indented != list {
			list = indented
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[list])
		}
		if line == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(roff(line) + "\n")
	}
	if list {
		b.WriteString(".fi\n")
	}
}

func manFlag(b *strings.Builder, f *pflag.Flag) {
	if f.Hidden {
		return
	}
	value, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if value != "" {
		name += " " + value
	}
	if d := f.DefValue; d != "" && d != "false" && d != "0" && d != "[]" && d != "0s" && !strings.Contains(usage, "(default ") {
		usage += " (default " + d + ")"
	}
	fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(name), roff(usage))
}

// roff writes text that means nothing but itself.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
