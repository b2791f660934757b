package openbrain

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
)

const (
	// maxQuery bounds the text of a search, in bytes.
	maxQuery = 64 << 10
	// maxFiltered bounds how many hits are looked at to fill a search with a metadata filter.
	maxFiltered = 4096
	// fusion damps the weight of first places when rankings are joined (reciprocal rank fusion).
	fusion = 60
)

// HeaderSearch is the header of a search's answer that says how was searched; its values follow.
const HeaderSearch = "OpenBrain-Search"

const (
	// SearchedWords is by words; the server has no embedder.
	SearchedWords = "words"
	// SearchedDegraded is by words alone, because the embedder is down.
	SearchedDegraded = "words; degraded=embedder"
	// SearchedBoth is by words and by meaning. Thoughts that wait for the embedder are found by words, see the statistics.
	SearchedBoth = "words, vectors"
)

// find is a search.
type find struct {
	sources []*source
	text    string
	limit   int
	filter  map[string]json.RawMessage
}

// found is a thought with its score.
type found struct {
	thought
	score float64
}

func (s *Server) postSearch(w *recorder, r *http.Request, who *caller) error {
	b, err := readBody(r)
	if err != nil {
		return err
	}
	f, source, err := b.find(s.cfg.MaxLimit)
	if err != nil {
		return err
	}
	if f.sources, err = s.sources(r.Context(), who, source); err != nil {
		return err
	}
	hits, how, err := s.search(r.Context(), f)
	if err != nil {
		return err
	}
	w.Header().Set(HeaderSearch, how)
	held := 0
	for i, h := range hits {
		if held += h.size(); i > 0 && held > int(s.answers.bound)/2 {
			_, msg := outside(f.limit, 1, i)
			return unprocessable(bodyProblem("less_than_equal", "limit", msg+" here: what was found is large"))
		}
	}
	if !s.answers.grow(w.held, held, false) {
		return errFull
	}
	out := newPageWriter(w, math.MaxInt)
	for i := range hits {
		t := hits[i].wire()
		t.Similarity = &hits[i].score
		if _, err = out.add(t); err != nil {
			break
		}
	}
	return out.end("", err)
}

func (b body) find(maxLimit int) (f find, source string, err error) {
	if !b.has("query") {
		return f, "", unprocessable(bodyProblem("missing", "query", "Field required"))
	}
	if f.text, err = b.text("query"); err != nil {
		return f, "", err
	}
	if len(f.text) > maxQuery {
		return f, "", unprocessable(bodyProblem("string_too_long", "query", "String should have at most 65536 bytes"))
	}
	if f.limit, err = b.limit("limit", defaultSearch, maxLimit); err != nil {
		return f, "", err
	}
	if b.has("source") {
		if source, err = b.text("source"); err != nil {
			return f, "", err
		}
	}
	if b.has("metadata") {
		raw, err := b.object("metadata")
		if err != nil {
			return f, "", err
		}
		if json.Unmarshal(raw, &f.filter) != nil {
			return f, "", unprocessable(bodyProblem("dict_type", "metadata", "Input should be a valid dictionary"))
		}
	}
	return f, source, nil
}

// search returns what is found by words and, where there are vectors, by meaning, best first, and how was searched. Scores are between 0 and 1.
func (s *Server) search(ctx context.Context, f find) (hits []found, how string, err error) {
	how = SearchedWords
	if s.embedding != nil {
		how = SearchedBoth
		if !s.embedding.usable(s.now()) {
			how = SearchedDegraded
		}
	}
	if strings.TrimSpace(f.text) == "" || len(f.sources) == 0 {
		return nil, how, nil
	}
	err = each(ctx, len(f.sources), func(ctx context.Context, i int) error {
		return f.sources[i].sync(ctx, s.store, s.now(), func(fresh []core.Entry) { s.appended(ctx, fresh) })
	})
	if err != nil {
		return nil, "", err
	}
	words, err := rank(ctx, s.searcher, f)
	if err != nil {
		return nil, "", err
	}
	var meaning []found
	if how == SearchedBoth {
		if meaning, err = s.byMeaning(ctx, f); err != nil {
			return nil, "", err
		}
		if meaning == nil {
			how = SearchedDegraded
		}
	}
	if len(meaning) == 0 {
		for i := range words {
			words[i].score /= 1 + words[i].score // any scale; the order stays
		}
		return words, how, nil
	}
	return fuse(f.limit, words, meaning), how, nil
}

// byMeaning returns what vectors find, nil when the embedder does not answer in time. Then the next searches do not wait for it.
func (s *Server) byMeaning(ctx context.Context, f find) ([]found, error) {
	vctx, cancel := context.WithTimeout(ctx, s.cfg.SearchEmbedFor)
	defer cancel()
	meaning, err := rank(vctx, s.embedding.vectors, f)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		s.embedding.rest.Store(s.now().Add(searchRest).UnixNano())
		s.log.WarnContext(ctx, "openbrain: search goes without vectors", slog.Any("error", err))
		return nil, nil
	}
	if meaning == nil {
		meaning = []found{}
	}
	return meaning, nil
}

// rank asks a searcher in every source and joins the answers by score.
func rank(ctx context.Context, searcher core.Searcher, f find) ([]found, error) {
	perSource := make([][]found, len(f.sources))
	ask := func(limit int) func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			var err error
			perSource[i], err = f.in(ctx, searcher, f.sources[i], limit)
			return err
		}
	}
	// With many sources, few hits of each are looked at first; only where the last of them is among the best of all can there be more.
	few := min(f.limit, max(8, 4*f.limit/len(f.sources)))
	if err := each(ctx, len(f.sources), ask(few)); err != nil {
		return nil, err
	}
	best := top(f.limit, perSource)
	if few == f.limit {
		return best, nil
	}
	var deeper []int
	for i, hits := range perSource {
		if n := len(hits); n >= few && (len(best) < f.limit || hits[n-1].score >= best[len(best)-1].score) {
			deeper = append(deeper, i)
		}
	}
	again := ask(f.limit)
	err := each(ctx, len(deeper), func(ctx context.Context, i int) error { return again(ctx, deeper[i]) })
	if err != nil {
		return nil, err
	}
	return top(f.limit, perSource), nil
}

// in searches one source. With a filter, it looks at ever more hits until enough pass.
func (f find) in(ctx context.Context, searcher core.Searcher, src *source, limit int) ([]found, error) {
	for ask := limit; ; ask *= 4 {
		if len(f.filter) > 0 {
			ask = min(max(ask, 64), max(limit, maxFiltered))
		}
		hits, err := searcher.Search(ctx, core.SearchQuery{Scope: src.scope(), Text: f.text, Limit: ask})
		if err != nil && !errors.Is(err, core.ErrPartial) {
			return nil, hide(err, src.name)
		}
		out := make([]found, 0, min(len(hits), limit))
		for _, h := range hits {
			t, ok := thoughtOf(h.Entry)
			if !ok || t.Source != src.name || len(out) == limit || !contains(t.Metadata, f.filter) {
				continue
			}
			score := h.Score
			if math.IsNaN(score) || score < 0 {
				score = 0
			}
			out = append(out, found{t, min(score, math.MaxFloat32)})
		}
		if len(f.filter) == 0 || len(out) == limit || len(hits) < ask || ask >= maxFiltered {
			return out, nil
		}
	}
}

// top returns the best of several answers: ties go to the newer thought, then to the smaller id.
func top(limit int, answers [][]found) []found {
	all := slices.Concat(answers...)
	slices.SortFunc(all, compareFound)
	return slices.Clip(all[:min(limit, len(all))])
}

func compareFound(a, b found) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.Seq, a.Seq), cmp.Compare(a.ID, b.ID))
}

// fuse joins two rankings by places, since their scores cannot be compared.
func fuse(limit int, rankings ...[]found) []found {
	joined := map[string]found{}
	whole := float64(len(rankings)) / (fusion + 1)
	for _, ranking := range rankings {
		for i, h := range ranking {
			sum := joined[h.ID].score + 1/float64(fusion+1+i)/whole
			h.score = sum
			joined[h.ID] = h
		}
	}
	all := make([]found, 0, len(joined))
	for _, h := range joined {
		all = append(all, h)
	}
	return top(limit, [][]found{all})
}
