package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/registry"
)

func (a *app) listCmd() *cobra.Command {
	var asJSON, prompts, schema bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the parts there are, and their configuration keys",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
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
			if prompts {
				writePrompts(a.Stdout, parts)
				return nil
			}
			last := registry.Kind("")
			for _, p := range parts {
				if p.Kind != last {
					fmt.Fprintf(a.Stdout, "%ss\n", p.Kind)
					last = p.Kind
				}
				fmt.Fprintf(a.Stdout, "  %-12s %s\n", p.Name, p.Doc)
				writeKeys(a.Stdout, "      ", p.Keys)
				for _, text := range p.Prompts {
					fmt.Fprintf(a.Stdout, "      asks models with %s (--prompts shows it)\n", text.Version)
				}
			}
			fmt.Fprintln(a.Stdout, "\nkeys of a configuration file")
			writeKeys(a.Stdout, "  ", keys)
			return nil
		},
	}
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

func writeKeys(w io.Writer, indent string, keys []registry.Key) {
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
		fmt.Fprintln(w, line)
	}
}
