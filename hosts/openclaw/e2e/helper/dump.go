package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
)

// line is an entry as the judge reads it.
type line struct {
	ID      string `json:"id"`
	Agent   string `json:"agent"`
	Session string `json:"session"`
	Type    string `json:"type"`
	Role    string `json:"role"`
	Turn    string `json:"turn,omitempty"`
	Raw     []byte `json:"raw"`
	Text    string `json:"text"`
}

// dump prints the entries of the agents that the run uses.
func dump(ctx context.Context, file string, out io.Writer) error {
	cfg := sqlite.DefaultConfig()
	cfg.Path = file
	store, err := sqlite.Open(ctx, cfg)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	for _, agent := range []string{"main", "other"} {
		for entry, serr := range core.All(ctx, store, core.Scope{Agent: agent}, false) {
			if serr != nil {
				return errors.Join(serr, store.Close())
			}
			l := line{
				ID: entry.ID, Agent: entry.Agent, Session: entry.Session, Type: string(entry.Type), Role: string(entry.Role),
				Raw: entry.Message.Raw, Text: entry.Text(),
			}
			if err := enc.Encode(l); err != nil {
				return errors.Join(err, store.Close())
			}
		}
	}
	return errors.Join(w.Flush(), store.Close())
}
