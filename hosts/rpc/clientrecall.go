package rpc

import (
	"context"

	"github.com/contextengine/contextengine/core/engine"
)

// Search looks for entries that a session may recall. It runs beside the session's other calls.
func (c *Client) Search(ctx context.Context, p SearchParams) (engine.SearchResult, error) {
	p.Deadline = until(ctx, p.Deadline)
	return do[engine.SearchResult](ctx, c, MethodSearch, p)
}

// Expand returns a page of an entry, of its neighbourhood, or of what a summary stands for. An id that the session does not reach is core.ErrNotFound.
func (c *Client) Expand(ctx context.Context, p ExpandParams) (engine.ExpandResult, error) {
	p.Deadline = until(ctx, p.Deadline)
	return do[engine.ExpandResult](ctx, c, MethodExpand, p)
}

// Describe says what there is of a session.
func (c *Client) Describe(ctx context.Context, p DescribeParams) (engine.DescribeResult, error) {
	p.Deadline = until(ctx, p.Deadline)
	return do[engine.DescribeResult](ctx, c, MethodDescribe, p)
}

// Score keeps an outcome of a session or a turn; a later one of the same name takes its place.
func (c *Client) Score(ctx context.Context, p ScoreParams) error {
	p.Deadline = until(ctx, p.Deadline)
	_, err := do[NoResult](ctx, c, MethodScore, p)
	return err
}
