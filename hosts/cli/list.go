package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/internal/columns"
	"github.com/contextengine/contextengine/registry"
)

func (a *app) listCmd() *cobra.Command {
	var asJSON, prompts, schema bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the parts there are, and their configuration keys",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf(cmd, "json", "schema", "prompts"); err != nil {
				return err
			}
			parts, keys := a.reg.Describe(), a.reg.Keys()
			if asJSON {
				return failed(writeJSON(a.Stdout, map[string]any{"parts": parts, "keys": keys}))
			}
			if schema {
				text, err := a.reg.JSONSchema()
				if err == nil {
					_, err = fmt.Fprintln(a.Stdout, string(text))
				}
				return failed(err)
			}
			out := bufio.NewWriter(a.Stdout)
			if prompts {
				writePrompts(out, parts)
				return failed(out.Flush())
			}
			last := registry.Kind("")
			for _, p := range parts {
				if p.Kind != last {
					fmt.Fprintf(out, "%ss\n", p.Kind)
					last = p.Kind
				}
				fmt.Fprintln(out, columns.Hang(fmt.Sprintf("  %-12s %s", p.Name, p.Doc), 15, a.fit()))
				writeKeys(out, a.fit(), "      ", p.Keys)
				for _, text := range p.Prompts {
					fmt.Fprintf(out, "      asks models with %s (--prompts shows it)\n", text.Version)
				}
			}
			fmt.Fprintln(out, "\nkeys of a configuration file")
			writeKeys(out, a.fit(), "  ", keys)
			return failed(out.Flush())
		},
	}
	a.wideFlag(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&schema, "schema", false, `print a JSON Schema of configuration files; name its file in the key "$schema" of yours, and editors complete and check it`)
	cmd.Flags().BoolVar(&prompts, "prompts", false, "print the built-in prompts in full; the parts' keys say how to replace them")
	return cmd
}

func writePrompts(w io.Writer, parts []registry.Part) {
	for _, p := range parts {
		for _, text := range p.Prompts {
			fmt.Fprintf(w, "%s %s: %s\n\n%s\n\n", p.Kind, p.Name, text.Version, text.Text)
		}
	}
}

// widestKey is how far to the right what is said of a key begins at most, where lines have to fit.
const widestKey = 24

func writeKeys(w io.Writer, width int, indent string, keys []registry.Key) {
	wide := 0
	for _, k := range keys {
		wide = max(wide, len(k.Path))
	}
	for _, k := range keys {
		line := fmt.Sprintf("%s%-*s  %s", indent, wide, k.Path, k.Type)
		if k.Default != nil {
			if text, err := json.Marshal(k.Default); err == nil && string(text) != `""` && string(text) != "{}" {
				line += ", default " + string(text)
			}
		}
		if k.Doc != "" {
			line += ": " + k.Doc
		}
		fmt.Fprintln(w, columns.Hang(line, len(indent)+min(wide, widestKey)+2, width))
	}
}
