package rpc

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// SearchParams look for entries; see core.SearchRequest.
type SearchParams struct {
	engine.SearchRequest
	Deadline
}

// ExpandParams ask for an entry in full, or for what a summary stands for; see core.ExpandRequest.
type ExpandParams struct {
	engine.ExpandRequest
	Deadline
}

// DescribeParams ask what there is of a session.
type DescribeParams struct {
	engine.DescribeRequest
	Deadline
}

// ScoreParams keep an outcome; see engine.Outcome. The arm is the session's own and cannot be given.
type ScoreParams struct {
	Session core.SessionID `json:"session"`
	// Turn counts the user turns of the session from 1; 0 is the session as a whole.
	Turn int64 `json:"turn,omitempty"`
	// Name is the metric: letters, digits, "-", "_" and ".", at most 64 bytes.
	Name string `json:"name"`
	// Value is required: a pointer tells 0 from nothing.
	Value *float64 `json:"value"`
	// Time is when it was given; the server's clock when zero.
	Time time.Time `json:"time,omitzero"`
	Deadline
}

// between refuses a number outside of bounds, with the name of its field.
func between(field string, n, least, most int) error {
	if n < least || n > most {
		return badField(field, fmt.Sprintf("must be %d to %d", least, most))
	}
	return nil
}

// recaller checks what all reads have in common and returns what answers them.
func (k *call) recaller(ctx context.Context, id core.SessionID, checks ...error) (engine.Recaller, error) {
	if err := checkSession("session", id); err != nil {
		return nil, err
	}
	k.session = id // for the access log: reads have no place in the session's order
	for _, err := range checks {
		if err != nil {
			return nil, err
		}
	}
	return member[engine.Recaller](ctx, k, id)
}

func search(ctx context.Context, k *call, p SearchParams) (any, error) {
	var asked error
	if strings.TrimSpace(p.Query) == "" {
		asked = badField("query", "say what to look for")
	}
	r, err := k.recaller(ctx, p.Session, asked, between("limit", p.Limit, 0, engine.MaxFound), between("offset", p.Offset, 0, maxHits),
		between("tokens", p.Tokens, 0, engine.MaxAnswer))
	if err != nil {
		return nil, err
	}
	res, err := r.Search(ctx, p.SearchRequest)
	if res.Found == nil {
		res.Found = []engine.Found{}
	}
	return res, err
}

const (
	// maxHits bounds where a page of a search may begin: all that comes before it is found and ranked first.
	maxHits = 10_000
	// maxOffset bounds where a page of an entry, or of entries, may begin.
	maxOffset = 1 << 30
)

func expand(ctx context.Context, k *call, p ExpandParams) (any, error) {
	var named error
	if strings.TrimPrefix(strings.TrimSpace(p.ID), "#") == "" {
		named = badField("id", "give the id of an entry or a summary, as citations name it")
	}
	r, err := k.recaller(ctx, p.Session, named, between("before", p.Before, 0, engine.MaxFound), between("after", p.After, 0, engine.MaxFound),
		between("offset", p.Offset, 0, maxOffset), between("tokens", p.Tokens, 0, engine.MaxAnswer))
	if err != nil {
		return nil, err
	}
	res, err := r.Expand(ctx, p.ExpandRequest)
	if res.Found == nil {
		res.Found = []engine.Found{}
	}
	return res, err
}

func describeSession(ctx context.Context, k *call, p DescribeParams) (any, error) {
	r, err := k.recaller(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	return result(r.Describe(ctx, p.DescribeRequest))
}

func score(ctx context.Context, k *call, p ScoreParams) (any, error) {
	if err := checkSession("session", p.Session); err != nil {
		return nil, err
	}
	if p.Value == nil {
		return nil, badField("value", "give a number")
	}
	s, err := member[engine.Scorer](ctx, k, p.Session)
	if err != nil {
		return nil, err
	}
	if err := s.Score(ctx, engine.Outcome{Session: p.Session, Turn: p.Turn, Name: p.Name, Value: *p.Value, Time: p.Time}); err != nil {
		return nil, err
	}
	return NoResult{}, nil
}
