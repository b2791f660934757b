package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
)

func (a *app) initCmd() *cobra.Command {
	var output string
	var force bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a configuration file with every key, its default and what it is for",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := a.reg.Template()
			if err != nil {
				return failed(err)
			}
			if output == "-" {
				_, err := a.Stdout.Write(text)
				return failed(err)
			}
			return failed(a.create(output, text, force))
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "contextengine.yaml", `file to write; "-" is standard output`)
	cmd.Flags().BoolVar(&force, "force", false, "overwrite the file if it exists")
	return cmd
}

func (a *app) create(name string, text []byte, force bool) error {
	mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(name, mode, 0o600) // it may come to hold a key
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: choose another --output, or overwrite it with --force", name)
	}
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "wrote %s; use it with --config, or name it in CONTEXTENGINE_CONFIG\n", name)
	return nil
}
