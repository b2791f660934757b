package openbrain

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/contextengine/contextengine/core"
)

const (
	// headerBatch is in what servers of this project answer to lists: how many bytes a request to pathBatch may have, which stores several thoughts, all or none.
	headerBatch = "OpenBrain-Batch"
	pathBatch   = "/v1/thoughts/batch"
)

// part is one thought of a request to pathBatch.
type part struct {
	Content  string         `json:"content"`
	Metadata map[string]any `json:"metadata"`
	Position string         `json:"position"`
}

// whole returns the body of the request that stores all records at once; nil where the server has no such call, or not for so much.
func (s *Store) whole(agent string, records []record) (json.RawMessage, error) {
	if !s.client.can.together(0) {
		return nil, nil
	}
	parts := make([]part, len(records))
	for i, r := range records {
		metadata, err := s.cfg.metadata(r, false)
		if err != nil {
			return nil, err
		}
		parts[i] = part{content(r.entry, s.cfg.MaxContent), metadata, placeKey(r.entry)}
	}
	body, err := json.Marshal(map[string]any{"source": s.cfg.source(agent), "thoughts": parts})
	if err != nil || !s.client.can.together(len(body)) {
		return nil, nil // entry by entry it is said what is wrong
	}
	return body, nil
}

// createAll stores records with the body that whole made of them. again says that nothing was stored because the call is not there or something on the way does not
// let so much through: they may be sent one by one.
func (s *Store) createAll(ctx context.Context, records []record, body json.RawMessage) (again bool, err error) {
	answer, err := s.client.do(ctx, "append", call{method: http.MethodPost, path: pathBatch, body: body, wantJSON: true})
	switch {
	case lacks(err):
		s.client.can.refused.Store(1)
		return true, err
	case isStatus(err, http.StatusRequestEntityTooLarge):
		s.client.can.refused.Store(int64(len(body)))
		return true, err
	case err != nil:
		return false, err
	}
	made, err := decodeList(answer)
	if err != nil || len(made.thoughts) != len(records) {
		return false, &failure{what: fmt.Sprintf("answer to POST %s does not name %d thoughts", pathBatch, len(records)), kind: core.ErrUnavailable}
	}
	for i, t := range made.thoughts {
		records[i].thought, records[i].created = t.ID, t.Created
	}
	s.client.places.Store(true)
	return false, nil
}
