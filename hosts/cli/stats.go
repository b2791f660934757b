package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
)

// indexFolder is where word indexes are kept beside a store.
const indexFolder = "lexical"

// figures are what stats prints.
type figures struct {
	Store    string `json:"store"`
	Agents   int    `json:"agents"`
	Sessions int    `json:"sessions"`
	Entries  int    `json:"entries"`
	// Bytes is what the store takes on its medium, RawBytes the messages as the hosts gave them.
	Bytes    int64     `json:"bytes"`
	RawBytes int64     `json:"rawBytes"`
	Oldest   time.Time `json:"oldest,omitzero"`
	Newest   time.Time `json:"newest,omitzero"`
	// IndexBytes is what the word indexes beside the store take.
	IndexBytes int64           `json:"indexBytes"`
	Details    *upkeep.Details `json:"details,omitempty"`
}

func (a *app) statsCmd() *cobra.Command {
	var f storeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "stats",
		Short:   "Show how much the store holds, and how much of it is index",
		Long:    "stats shows the figures that the store knows of itself.\n\n" + exitHelp,
		Example: "  contextengine stats --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return failed(a.reading(cmd.Context(), f, func(k *keeper) error {
				var v figures
				err := a.saying("counting", func() (err error) {
					v, err = k.figures(cmd.Context())
					return err
				})
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(a.Stdout, v)
				}
				a.printFigures(v)
				return nil
			}))
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (k *keeper) figures(ctx context.Context) (figures, error) {
	v := figures{Store: k.kind}
	s, ok := core.As[upkeep.Statter](k.store)
	if !ok {
		return v, k.cannot("count what it holds")
	}
	st, err := s.Stats(ctx)
	if err != nil {
		return v, err
	}
	v.Agents, v.Sessions, v.Entries, v.Bytes, v.RawBytes, v.Oldest, v.Newest = st.Agents, st.Sessions, st.Entries, st.Bytes, st.RawBytes, st.Oldest, st.Newest
	if d, ok := core.As[detailer](k.store); ok {
		details, err := d.Details(ctx)
		if err != nil {
			return v, err
		}
		v.Details = &details
	}
	v.IndexBytes, err = k.indexBytes()
	return v, err
}

// indexBytes adds up the files of the word indexes.
func (k *keeper) indexBytes() (int64, error) {
	b, ok := core.As[core.Beside](k.store)
	if !ok {
		return 0, nil
	}
	dir, err := b.Beside(indexFolder)
	if errors.Is(err, errors.ErrUnsupported) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n := int64(0)
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
			return nil // indexes come and go
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
	return n, err
}

func (a *app) printFigures(v figures) {
	line := func(name, text string) { fmt.Fprintf(a.Stdout, "%-9s %s\n", name, text) }
	line("store", v.Store)
	if v.Details != nil {
		line("file", v.Details.Path)
	}
	line("agents", fmt.Sprint(v.Agents))
	line("sessions", fmt.Sprint(v.Sessions))
	line("entries", fmt.Sprint(v.Entries))
	line("oldest", moment(v.Oldest))
	line("newest", moment(v.Newest))
	line("size", size(v.Bytes))
	if v.RawBytes > 0 {
		line("raw", size(v.RawBytes)+", the messages as the hosts gave them")
	}
	share := ""
	if all := v.Bytes + v.IndexBytes; all > 0 {
		share = ", " + percent(float64(v.IndexBytes)/float64(all)) + " of both"
	}
	line("index", size(v.IndexBytes)+share)
	if d := v.Details; d != nil {
		line("free", size(d.Free)+", which vacuum gives back")
		line("erased", fmt.Sprint(d.Erased)+" places of erased entries")
		line("views", fmt.Sprint(d.Views))
		line("vectors", fmt.Sprint(d.Vectors))
	}
}
