package lexical

import (
	"context"
	"errors"
	"os"

	"github.com/contextengine/contextengine/core"
)

// Loaded returns how many agents are in memory.
func Loaded(x *Index) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.agents)
}

// Passages returns how many passages of an agent are indexed, and Bytes what the index takes in memory.
func Passages(x *Index, agent string) int { return x.known(agent).seg.live }
func Bytes(x *Index, agent string) int64  { return x.known(agent).seg.bytes() }

// Rank is a search without the fetching of entries.
func Rank(ctx context.Context, x *Index, agent, text string, limit int) error {
	_, err := x.rank(ctx, x.known(agent), core.SearchQuery{Scope: core.Scope{Agent: agent}, Text: text, Limit: limit})
	return err
}

// WriteImage writes an agent's index to a file; ReadImage reads it.
func WriteImage(x *Index, agent, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	h := header{agent: agent, mark: "m", config: configHash(&x.cfg)}
	return errors.Join(writeImage(f, h, x.known(agent).seg.snapshot().tidy()), f.Close())
}

func ReadImage(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, r, err := readHeader(b)
	if err != nil {
		return err
	}
	cfg := DefaultConfig()
	_, err = readSegment(r, &cfg)
	return err
}
