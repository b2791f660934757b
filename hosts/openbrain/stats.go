package openbrain

import (
	"context"
	"net/http"
	"time"

	"github.com/contextengine/contextengine/core"
)

// numbers are the counts of thoughts.
type numbers struct {
	Total    int `json:"total"`
	Embedded int `json:"embedded"`
	// Pending is how many wait for the embedder; 0 when the server has none.
	Pending int `json:"pending"`
}

// stats covers what the caller may see.
type stats struct {
	numbers
	BySource map[string]int     `json:"by_source"`
	Sources  map[string]numbers `json:"sources"`
}

func (s *Server) getStats(w *recorder, r *http.Request, who *caller) error {
	sources, err := s.catalogue.all(r.Context(), who)
	if err != nil {
		return err
	}
	counts := make([]int, len(sources))
	err = each(r.Context(), len(sources), func(ctx context.Context, i int) error {
		var err error
		counts[i], err = sources[i].count(ctx, s.store, s.now, s.nextSeq)
		return err
	})
	if err != nil {
		return err
	}
	out := stats{BySource: map[string]int{}, Sources: map[string]numbers{}}
	for i, src := range sources {
		n := numbers{Total: counts[i]}
		if n.Total == 0 {
			continue
		}
		if s.embedding != nil {
			n.Pending = s.embedding.pending(src.name, n.Total)
			n.Embedded = n.Total - n.Pending
		}
		out.BySource[src.name], out.Sources[src.name] = n.Total, n
		out.Total, out.Embedded, out.Pending = out.Total+n.Total, out.Embedded+n.Embedded, out.Pending+n.Pending
	}
	return answer(w, http.StatusOK, out)
}

// readyTimeout bounds the look at the store.
const readyTimeout = 5 * time.Second

func (s *Server) getHealth(w *recorder, _ *http.Request, _ *caller) error {
	return answer(w, http.StatusOK, map[string]string{"status": "ok"})
}

func (s *Server) getReady(w *recorder, r *http.Request, _ *caller) error {
	if s.draining.Load() {
		return &refusal{status: http.StatusServiceUnavailable, detail: "Shutting down", retryAfter: 1}
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	var err error
	if p, ok := core.As[core.Pinger](s.store); ok {
		err = p.Ping(ctx)
	} else {
		_, err = s.store.Scan(ctx, core.ScanQuery{Scope: core.Scope{Agent: CatalogueAgent, Session: catalogueSession}, Limit: 1})
	}
	if err != nil && r.Context().Err() == nil {
		s.logFailure(r.Context(), "readyz", err)
		return &refusal{status: http.StatusServiceUnavailable, detail: "The store is not available", retryAfter: 1}
	}
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]string{"status": "ok"})
}
