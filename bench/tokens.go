package main

import (
	"context"

	lib "github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/contextengine/contextengine/models/tiktoken"
)

// tokens compares our counter with the library its counts equal, entry by entry.
func tokens(ctx context.Context, b *board, _ options) error {
	ours, err := tiktoken.New(tiktoken.DefaultEncoding)
	if err != nil {
		return err
	}
	lib.SetBpeLoader(loader.NewOfflineLoader())
	bare, err := lib.GetEncoding(tiktoken.DefaultEncoding)
	if err != nil {
		return err
	}
	c := newCorpus(7)
	texts := make([]string, 500)
	for i := range texts {
		texts[i] = c.text(60)
	}
	for name, count := range map[string]func(string) int{
		"tiktoken-go": func(t string) int { return len(bare.EncodeOrdinary(t)) },
		"tiktoken":    ours.Count,
	} {
		ops, took, err := repeat(1<<20, func(i int) error {
			count(texts[i%len(texts)])
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		b.add(name, "tokens/words=60", ops, took.per(ops)...)
	}
	b.ratio("tokens/words=60", "ns/op", "tiktoken", "tiktoken-go", "")
	return nil
}
