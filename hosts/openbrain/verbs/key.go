package verbs

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/openbrain"
	"github.com/contextengine/contextengine/internal/columns"
	"github.com/contextengine/contextengine/internal/pathflag"
)

func (p Parts) keyCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make, list and revoke keys; a running server follows within a second",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var file string
	pathflag.Var(cmd.PersistentFlags(), &file, "keys", "", "keys file (default: what "+EnvPrefix+"KEYS names)")
	path := func(cmd *cobra.Command) (string, error) {
		if err := fromEnv(cmd, p.Getenv, "keys"); err != nil {
			return "", err
		}
		if file == "" {
			return "", fmt.Errorf("--keys is required: name the keys file: %w", core.ErrInvalid)
		}
		return file, nil
	}
	cmd.AddCommand(p.keyNewCmd(path), p.keyListCmd(path), p.keyRevokeCmd(path))
	return cmd
}

func (p Parts) keyNewCmd(path func(*cobra.Command) (string, error)) *cobra.Command {
	var name string
	var sources []string
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Make a key and print it, once; the file holds its hash only",
		Example: "  contextengine openbrain key new --keys keys.json --name laptop --source 'openclaw:*'\n" +
			"  contextengine openbrain key new --keys keys.json --name backup --source '*'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := path(cmd)
			if err != nil {
				return err
			}
			secret, err := openbrain.AddKey(file, name, sources)
			if err != nil {
				return p.Failed(err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), secret)
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "key %q may use %s. It is shown this once: %s holds only its hash.\n", name, strings.Join(sources, ", "), file)
			return p.Failed(err)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "whose key it is; it stands in the access log")
	cmd.Flags().StringArrayVar(&sources, "source", nil, `source the key may use, "*" for any text; may be repeated`)
	_ = cmd.MarkFlagRequired("name") // they exist
	_ = cmd.MarkFlagRequired("source")
	return cmd
}

func (p Parts) keyListCmd(path func(*cobra.Command) (string, error)) *cobra.Command {
	var asJSON, wide bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys by name, with what they may use",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := path(cmd)
			if err != nil {
				return err
			}
			keys, err := openbrain.ListKeys(file)
			if err != nil {
				return p.Failed(err)
			}
			if asJSON {
				type row struct {
					Name    string   `json:"name"`
					Sources []string `json:"sources"`
					Created string   `json:"created,omitempty"`
				}
				rows := make([]row, len(keys))
				for i, k := range keys {
					rows[i] = row{k.Name, k.Sources, k.Created}
				}
				return p.Failed(json.NewEncoder(cmd.OutOrStdout()).Encode(rows))
			}
			table := columns.Table{Columns: []columns.Column{{Name: "name", Left: true}, {Name: "created", Left: true}, {Name: "sources", Left: true}}}
			for _, k := range keys {
				table.Add(k.Name, k.Created, strings.Join(k.Sources, " "))
			}
			width := columns.Fit
			if wide {
				width = columns.All
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			table.Print(out, width)
			return p.Failed(out.Flush())
		},
	}
	cmd.Flags().BoolVar(&wide, "wide", false, "print lines as long as they are, instead of what fits 80 characters")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (p Parts) keyRevokeCmd(path func(*cobra.Command) (string, error)) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "revoke",
		Short: "Take a key away from its owner",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := path(cmd)
			if err != nil {
				return err
			}
			if err := openbrain.RemoveKey(file, name); err != nil {
				return p.Failed(err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "revoked %q\n", name)
			return p.Failed(err)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the key")
	_ = cmd.MarkFlagRequired("name") // it exists
	return cmd
}
