package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/internal/words"
	"github.com/contextengine/contextengine/core/message"
)

// Recaller is the way back: it answers what an agent, or a person, asks about history that the window does not show. Everything that is stored can be
// reached, byte for byte, whatever was compacted.
//
// A session reaches what recall reaches: itself, the agent's other sessions where recall goes across sessions, and what a grant opens. What was reset or
// forked away is not found, unless the engine is configured to recall it, erased and hidden entries neither. Results are bounded in tokens and paged; texts for a
// model are quoted like recalled ones, with "#" and the id of the entry, or its position in the session, as the citation.
type Recaller interface {
	Search(ctx context.Context, req SearchRequest) (SearchResult, error)
	// Expand shows an entry, or what a summary stands for. An id that the session does not reach is core.ErrNotFound.
	Expand(ctx context.Context, req ExpandRequest) (ExpandResult, error)
	Describe(ctx context.Context, req DescribeRequest) (DescribeResult, error)
}

// The limits of a Recaller's answers.
const (
	DefaultFound  = 8
	MaxFound      = 50
	DefaultAnswer = 2000 // tokens
	MaxAnswer     = 16000
)

// SearchRequest looks for entries.
type SearchRequest struct {
	Session core.SessionID `json:"session"`
	// Query is natural language, or an exact string: an identifier, a path, an error code. Entries that hold all of it as it stands, byte for byte, come first, then
	// those that hold it in another case. Where it is several words, what the window does not show comes before what it shows.
	Query string `json:"query"`
	// Limit is the number of entries of a page, 1 to MaxFound; DefaultFound when 0.
	Limit int `json:"limit,omitempty"`
	// Offset is Next of the page before.
	Offset int `json:"offset,omitempty"`
	// Tokens bounds Text, up to MaxAnswer; DefaultAnswer when 0.
	Tokens int `json:"tokens,omitempty"`
	// From and To bound the entries' time, half open; zero means unbounded.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
}

// SearchResult is a page of what was found, best first.
type SearchResult struct {
	Found []Found `json:"found"`
	// Next is the Offset of the next page, whether Limit or Tokens ended this one; 0 when there is none.
	Next int `json:"next,omitempty"`
	// Text is the page for a model, Tokens what it costs.
	Text   string `json:"text"`
	Tokens int    `json:"tokens"`
}

// Found is an entry that was found, or that an answer shows.
type Found struct {
	ID      string         `json:"id"`
	Session string         `json:"session"`
	Turn    int64          `json:"turn"`
	Seq     int64          `json:"seq"`
	Role    message.Role   `json:"role"`
	Type    core.EntryType `json:"type"`
	Time    time.Time      `json:"time"`
	// Tokens is what all of the entry costs.
	Tokens int `json:"tokens"`
	// Excerpt is what is shown of it; Whole says that this is all. Expand shows the rest.
	Excerpt string  `json:"excerpt"`
	Whole   bool    `json:"whole,omitempty"`
	Score   float64 `json:"score,omitempty"`
}

// ExpandRequest asks for an entry in full, its calls with their arguments and its results, or for what a summary stands for.
type ExpandRequest struct {
	Session core.SessionID `json:"session"`
	// ID is an entry's, or a summary's, as citations and markers name it: its id, or its position in the session; a "#" in front is allowed.
	ID string `json:"id"`
	// Before and After add neighbours of the entry in the conversation, up to MaxFound each. A summary is none, nor is what was reset or forked away.
	Before int `json:"before,omitempty"`
	After  int `json:"after,omitempty"`
	// Offset is Next of the page before: bytes of the entry's text, or entries of a summary or of a neighbourhood.
	Offset int `json:"offset,omitempty"`
	// Tokens bounds Text, up to MaxAnswer; DefaultAnswer when 0.
	Tokens int `json:"tokens,omitempty"`
}

// ExpandResult is a page of an entry or of entries, oldest first.
type ExpandResult struct {
	Found []Found `json:"found"`
	// Next is the Offset of the next page; 0 when this was the last.
	Next int `json:"next,omitempty"`
	// Total is the length of all: bytes of an entry's text, or a number of entries.
	Total  int    `json:"total"`
	Text   string `json:"text"`
	Tokens int    `json:"tokens"`
}

// DescribeRequest asks what there is of a session.
type DescribeRequest struct {
	Session core.SessionID `json:"session"`
}

// DescribeResult says what a session's window is made of and what lies behind it.
type DescribeResult struct {
	Session core.SessionID `json:"session"`
	// Entries is the number of entries in force, Turns that of the user turns.
	Entries int   `json:"entries"`
	Turns   int64 `json:"turns"`
	// First and Last are the times of the oldest and the newest entry.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Shown is the number of entries in the window, with those that are erased or that the provider's rules leave out, Left of those that neither it nor a summary shows.
	Shown int `json:"shown"`
	Left  int `json:"left"`
	// Shortened is the number of shown entries whose content is clipped or masked.
	Shortened int `json:"shortened"`
	// Summaries stand for older entries, oldest first.
	Summaries []SummaryInfo `json:"summaries,omitempty"`
	Epoch     uint64        `json:"epoch"`
	Budget    int           `json:"budget,omitempty"`
	Arm       string        `json:"arm,omitempty"`
	// Text says the same for a model, Tokens what it costs.
	Text   string `json:"text"`
	Tokens int    `json:"tokens"`
}

// SummaryInfo describes a summary.
type SummaryInfo struct {
	ID     string      `json:"id"`
	Kind   string      `json:"kind"`
	Covers int         `json:"covers"`
	Tokens int         `json:"tokens"`
	Time   time.Time   `json:"time"`
	Of     []core.Span `json:"of,omitempty"`
	// Head is the beginning of its text.
	Head string `json:"head"`
}

// reach is what a session may look into.
type reach struct {
	e       *Engine
	view    core.View
	scopes  []core.Scope
	reset   bool
	session core.SessionID
}

func (e *Engine) reachOf(ctx context.Context, op string, id core.SessionID) (reach, error) {
	r := reach{e: e, reset: e.cfg.Recall.ResetHistory, session: id}
	err := e.retry(ctx, id, func(s *session) error {
		if err := s.expire(ctx); err != nil {
			return err
		}
		r.view = s.view.Clone()
		return nil
	})
	if err != nil {
		return reach{}, e.failed(ctx, "store", op, err)
	}
	scope := id.Scope()
	if e.cfg.Recall.AcrossSessions {
		scope.Session = ""
	}
	r.scopes = append([]core.Scope{scope}, granted(&r.view, e.now(), true)...)
	return r, nil
}

// holds reports whether an entry may be shown to the session.
func (r *reach) holds(entry *core.Entry) bool {
	if entry.Type.Hidden() || core.Reserved(entry.Session) {
		return false
	}
	id := entry.SessionID()
	if entry.Type == core.TypeSummary {
		// A fork's summary may speak of what its parent said. A summary can be seen as long as all of what it stands for can.
		spans := spansOf(*entry)
		if len(spans) == 0 && id == r.session && !r.reset {
			return slices.ContainsFunc(r.view.Summaries, func(s core.Summary) bool { return s.ID == entry.ID })
		}
		return r.opens(id) && !slices.ContainsFunc(spans, func(sp core.Span) bool { return sp.Session == nil || !r.opens(*sp.Session) || !r.inForce(sp) })
	}
	if onPath(&r.view, id, entry.Seq) {
		return true
	}
	if id == r.session && !r.reset {
		return false // reset or forked away
	}
	return r.opens(id) && (r.reset || r.scopes[0].Contains(id) || !r.closed(id, entry.Seq))
}

// inForce reports whether nothing of a span was reset or forked away, as far as the session may know.
func (r *reach) inForce(sp core.Span) bool {
	if r.reset || wholeOnPath(&r.view, sp) {
		return true
	}
	if *sp.Session == r.session {
		return false
	}
	return r.scopes[0].Contains(*sp.Session) || !slices.ContainsFunc(r.view.Grants, func(g core.Grant) bool {
		return g.Scope.Contains(*sp.Session) && slices.ContainsFunc(g.Closed, func(c core.Span) bool { return c.From < sp.To && sp.From < c.To })
	})
}

// wholeOnPath reports whether all of a span, which names its session, is on a path.
func wholeOnPath(v *core.View, sp core.Span) bool {
	n := 0
	for _, on := range v.Path {
		if on = on.Owned(v.Session); *on.Session == *sp.Session {
			n += int(max(min(on.To, sp.To)-max(on.From, sp.From), 0))
		}
	}
	return n >= sp.Len()
}

// shows reports whether the window shows all of an entry, in its place or quoted.
func (r *reach) shows(entry *core.Entry) bool {
	v := &r.view
	if pos := v.Position(entry.SessionID(), entry.Seq); pos >= v.Start || pos >= 0 && pos < v.Lead {
		_, short := v.Stubs[entry.ID]
		return !short
	}
	inFront := func(s core.Summary) bool { return s.ID == entry.ID }
	quoted := func(it core.RecallItem) bool { return it.ID == entry.ID && !it.Part }
	return slices.ContainsFunc(v.Front().Summaries, inFront) ||
		slices.ContainsFunc(recallsOf(v), func(b *core.Recall) bool { return slices.ContainsFunc(b.Items, quoted) })
}

// closed reports whether a position of another session was out of force when the session was granted.
func (r *reach) closed(id core.SessionID, seq int64) bool {
	return slices.ContainsFunc(r.view.Grants, func(g core.Grant) bool { return g.Scope.Contains(id) && closes(&g, seq) })
}

func (r *reach) opens(id core.SessionID) bool {
	return slices.ContainsFunc(r.scopes, func(s core.Scope) bool { return s.Contains(id) })
}

// Search implements Recaller. Where the engine has no searcher it reads the newest maxScanned entries that it may look into.
func (e *Engine) Search(ctx context.Context, req SearchRequest) (_ SearchResult, err error) {
	ctx, end := e.begin(ctx, "Search", req.Session)
	defer func() { end(err) }()
	query := strings.TrimSpace(req.Query)
	switch {
	case query == "":
		return SearchResult{}, invalid("search", "query", "say what to look for")
	case len(query) > maxQuery:
		return SearchResult{}, invalid("search", "query", fmt.Sprintf("must be at most %d bytes: look for a part of it", maxQuery))
	case req.Limit < 0 || req.Limit > MaxFound:
		return SearchResult{}, invalid("search", "limit", fmt.Sprintf("must be 1 to %d", MaxFound))
	case req.Offset < 0:
		return SearchResult{}, invalid("search", "offset", "must be the next of the page before")
	}
	tokens, err := answerTokens("search", req.Tokens)
	if err != nil {
		return SearchResult{}, err
	}
	limit := cmp.Or(req.Limit, DefaultFound)
	r, err := e.reachOf(ctx, "search", req.Session)
	if err != nil {
		return SearchResult{}, err
	}
	want := req.Offset + limit + 1
	hits, err := r.searched(ctx, req, query, want)
	if err != nil {
		return SearchResult{}, e.failed(ctx, "searcher", "search", fmt.Errorf("core: search in %q: %w", req.Session, err))
	}
	var res SearchResult
	if req.Offset >= len(hits) {
		return res, nil
	}
	page := hits[req.Offset:min(req.Offset+limit, len(hits))]
	res.Next = req.Offset + len(page)
	w := answerWriter{e: e, to: req.Session, room: tokens}
	// Every entry gets its share of what is left, so that the first one does not take it all.
	for i, h := range page {
		share := min(w.room/(len(page)-i), max(tokens/2, 64))
		text := plainText(&h.Entry)
		excerpt := words.Excerpt(text, query, bytesFor(&h.Entry, text, share))
		if !w.add(&h.Entry, excerpt, len(excerpt) == len(text), h.Score) {
			res.Next = req.Offset + i
			break
		}
	}
	if len(w.found) == 0 {
		return res, invalid("search", "tokens", "not even one entry fits: ask for more")
	}
	if res.Next >= len(hits) {
		res.Next = 0
	}
	res.Found, res.Text = w.found, w.b.String()
	res.Tokens = e.gauge.count(res.Text)
	return res, nil
}

func answerTokens(op string, asked int) (int, error) {
	if asked < 0 || asked > MaxAnswer {
		return 0, invalid(op, "tokens", fmt.Sprintf("must be 1 to %d", MaxAnswer))
	}
	return cmp.Or(asked, DefaultAnswer), nil
}

// maxQuery bounds what is looked for, in bytes.
const maxQuery = 16 << 10

// maxScanned bounds the entries that a search without a searcher reads.
const maxScanned = 200_000

// moreSearches bounds how often a searcher is asked again because the window shows what it found.
const moreSearches = 3

// searched returns the best hits in everything that the session reaches: those that the window does not show in front, because whoever asks sees the others.
// Only an identifier comes first wherever it stands.
func (r *reach) searched(ctx context.Context, req SearchRequest, query string, want int) ([]core.Hit, error) {
	var hits []core.Hit
	seen := make(map[string]bool)
	for _, scope := range r.scopes {
		q := core.SearchQuery{Scope: scope, Text: query, Limit: want, From: req.From, To: req.To, Exclude: func(id string) bool { return seen[id] }}
		unseen := 0
		for range moreSearches {
			found, err := r.searchScope(ctx, q, want)
			if err != nil {
				return nil, err
			}
			shown := 0
			for _, h := range found {
				if seen[h.Entry.ID] || h.Entry.LookedUp() || !r.holds(&h.Entry) {
					continue
				}
				seen[h.Entry.ID] = true
				hits = append(hits, h)
				if r.shows(&h.Entry) {
					shown++
				} else {
					unseen++
				}
			}
			if shown == 0 || unseen >= want {
				break
			}
		}
	}
	// Who asks for an identifier wants the entries that hold it as it stands, and a search by meaning may not know it, one by words not its capitals.
	lower := strings.ToLower(query)
	identifier := !strings.ContainsFunc(query, unicode.IsSpace)
	enough := inAnyCase
	if query != lower {
		enough = asItStands
	}
	if r.e.searcher != nil && identifier && !slices.ContainsFunc(hits, func(h core.Hit) bool { return holdsExact(&h.Entry, query, lower) >= enough }) {
		found, err := r.scanFor(ctx, core.SearchQuery{Scope: r.session.Scope(), Text: query, Limit: want, From: req.From, To: req.To, Exclude: func(id string) bool { return seen[id] }})
		if err != nil {
			return nil, err
		}
		hits = append(found, hits...)
	}
	slices.SortStableFunc(hits, func(a, b core.Hit) int {
		exactly := cmp.Compare(holdsExact(&b.Entry, query, lower), holdsExact(&a.Entry, query, lower))
		if identifier && exactly != 0 {
			return exactly
		}
		switch shownA, shownB := r.shows(&a.Entry), r.shows(&b.Entry); {
		case shownA == shownB:
			return exactly
		case shownB:
			return -1
		}
		return 1
	})
	if hits = hits[:min(len(hits), want)]; r.e.searcher == nil || core.ReadsStore(r.e.searcher) {
		return hits, nil
	}
	return r.stored(ctx, hits)
}

// stored returns the hits as the store holds them: a searcher may go on finding what was erased, or say other than what is stored.
func (r *reach) stored(ctx context.Context, hits []core.Hit) ([]core.Hit, error) {
	held, untold, err := r.e.reader.held(ctx, len(hits), func(i int) *core.Entry { return &hits[i].Entry })
	if err != nil {
		return nil, err
	}
	out := hits[:0]
	for _, h := range hits {
		if untold[h.Entry.ID] {
			out = append(out, h)
		} else if is, ok := held[h.Entry.ID]; ok && !is.LookedUp() && r.holds(&is) {
			out = append(out, core.Hit{Entry: is, Score: h.Score})
		}
	}
	return out, nil
}

// searchScope asks the searcher, and reads the entries where there is none, or where it had to go without some of those it asks.
func (r *reach) searchScope(ctx context.Context, q core.SearchQuery, want int) ([]core.Hit, error) {
	if r.e.searcher != nil {
		// What was reset away takes places of what is in force, so more is asked for than is shown.
		more := q
		more.Limit = want*2 + 16
		found, err := r.e.searcher.Search(ctx, more)
		switch {
		case errors.Is(err, core.ErrPartial):
			read, err := r.scanFor(ctx, q)
			return byTurns(found, read), err
		case !errors.Is(err, errors.ErrUnsupported):
			return found, err
		}
	}
	return r.scanFor(ctx, q)
}

// byTurns unites two lists whose scores cannot be compared.
func byTurns(a, b []core.Hit) []core.Hit {
	out := make([]core.Hit, 0, len(a)+len(b))
	for i := range max(len(a), len(b)) {
		for _, list := range [][]core.Hit{a, b} {
			if i < len(list) {
				out = append(out, list[i])
			}
		}
	}
	return out
}

// How an entry may hold a query.
const (
	inAnyCase = iota + 1
	asItStands
)

// holdsExact says how an entry holds all of a query; 0 when it does not. lower is the query in lower case.
func holdsExact(entry *core.Entry, query, lower string) int {
	switch text := plainText(entry); {
	case strings.Contains(text, query):
		return asItStands
	case strings.Contains(strings.ToLower(text), lower):
		return inAnyCase
	}
	return 0
}

// scanFor searches without an index: the share of the query's words that an entry holds, the newest first among equals. Those that hold all of it as it stands
// come before all others, however many those are.
func (r *reach) scanFor(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	asked := words.Of(q.Text)
	var exact, hits []core.Hit
	n := 0
	for entry, err := range core.All(ctx, r.e.store, q.Scope, true) {
		if err != nil {
			return nil, err
		}
		if n++; n > maxScanned {
			break
		}
		if entry.LookedUp() || entry.Said() == "" && entry.Message.Text() != "" || !r.holds(&entry) || q.Exclude(entry.ID) || !q.From.IsZero() && entry.Time.Before(q.From) || !q.To.IsZero() && !entry.Time.Before(q.To) {
			continue
		}
		text := plainText(&entry)
		exactly := strings.Contains(text, q.Text)
		text = strings.ToLower(text)
		score := 0.0
		for _, w := range asked {
			if strings.Contains(text, w) {
				score += 1 / float64(len(asked))
			}
		}
		switch {
		case score == 0:
		case exactly && len(exact) < q.Limit:
			exact = append(exact, core.Hit{Entry: entry, Score: score})
		default:
			hits = append(hits, core.Hit{Entry: entry, Score: score})
		}
		if len(hits) > 8*q.Limit+256 {
			hits = bestHits(hits, q.Limit)
		}
	}
	return append(exact, bestHits(hits, q.Limit-len(exact))...), nil
}

func bestHits(hits []core.Hit, n int) []core.Hit {
	slices.SortStableFunc(hits, func(a, b core.Hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits[:min(n, len(hits))]
}
