package openbrain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/contextengine/contextengine/core"
)

const (
	// surelyWhole is a page length that no server is assumed to cut at: a shorter page is all there is.
	surelyWhole = 10
	// maxLimit is the largest limit ever asked for.
	maxLimit = 1 << 20
	// maxRestarts is how often a listing begins anew because the thoughts shifted under it.
	maxRestarts = 3
	// overlapped is how many thoughts of the page before are asked for again: as many less one may be erased between two
	// pages.
	overlapped = 4
)

// partial says that a server showed only some of the thoughts; it wraps errors.ErrUnsupported.
type partial struct {
	path string
	seen int
}

func (p *partial) Error() string {
	return fmt.Sprintf("GET %s shows no more than %d thoughts; the server lacks GET %s?source=&limit=&offset= to see the rest: %v",
		p.path, p.seen, pathThoughts, errors.ErrUnsupported)
}

// Unwrap returns errors.ErrUnsupported.
func (p *partial) Unwrap() error { return errors.ErrUnsupported }

// lister reads all thoughts of one source. How a server pages is not documented: it is found out while reading.
type lister struct {
	*client
	op, path, source string
	// limit is the largest limit known to be accepted, or about to be tried.
	limit    int
	seen     map[string]bool
	thoughts []thought
	// cursor is where the page that is read now begins; "" for one that begins at an offset.
	cursor string
}

// list returns all thoughts of a source, each once, in no particular order; thoughts of others may be among them. When
// the error is *partial, the thoughts that could be seen come with it.
func (c *client) list(ctx context.Context, op, source string) ([]thought, error) {
	l := &lister{client: c, op: op, path: pathThoughts, source: source}
	var err error
	if !c.can.noList.Load() {
		if err = l.all(ctx); lacks(err) {
			c.can.noList.Store(true)
		}
	}
	if c.can.noList.Load() {
		l.path = pathRecent
		err = l.recent(ctx)
	}
	var p *partial
	if err != nil && !errors.As(err, &p) {
		return nil, err
	}
	return l.thoughts, err
}

// recent reads the newest thoughts: as many as the server gives, in one request once it is known how many that is.
func (l *lister) recent(ctx context.Context) error {
	known := l.lists.get(l.path)
	l.limit = max(l.cfg.PageSize, known.grown)
	if known.limit > 0 {
		l.limit = min(l.limit, known.limit)
	}
	for {
		l.seen, l.thoughts = map[string]bool{}, nil
		page, err := l.shrink(ctx, 0)
		if err != nil {
			return err
		}
		l.add(page.thoughts)
		n, bounded := len(page.thoughts), l.lists.get(l.path).limit > 0
		if n >= l.limit && !bounded && l.limit < maxLimit {
			l.limit = min(2*l.limit, maxLimit)
			continue
		}
		if !bounded {
			l.lists.learn(l.path, func(p *paged) { p.grown = l.limit })
		}
		return l.cut(ctx, page.total, n, bounded)
	}
}

// cut tells whether the newest thoughts are all there are. A server that refuses a larger limit gives what it is asked for; one that does not may
// still have a bound of its own, which is a round number.
func (l *lister) cut(ctx context.Context, total, n int, bounded bool) error {
	if total <= n {
		if n < surelyWhole {
			return nil
		}
		if count, ok := l.count(ctx); ok {
			if count <= n {
				return nil
			}
		} else if ctx.Err() != nil {
			return ctx.Err()
		} else if n < l.limit && (bounded || n%5 != 0) {
			return nil
		}
	}
	return &partial{path: l.path, seen: n}
}

// count asks for the statistics. ok is false where there are none.
func (l *lister) count(ctx context.Context) (n int, ok bool) {
	if l.can.noStats.Load() {
		return 0, false
	}
	body, err := l.once(ctx, call{method: http.MethodGet, path: pathStats, wantJSON: true})
	if lacks(err) {
		l.can.noStats.Store(true)
	}
	if err != nil {
		return 0, false
	}
	return countOf(body, l.source, maxNesting)
}

// all reads page after page by offset, and by growing limits where the server does not know offsets.
func (l *lister) all(ctx context.Context) error {
	known := l.lists.get(l.path)
	l.limit = l.cfg.PageSize
	if known.limit > 0 {
		l.limit = min(l.limit, known.limit)
	}
	grows := known.grown > 0 // offsets are ignored: all at once
	if grows {
		l.limit = max(l.limit, known.grown)
	}
	for restart := 0; ; restart++ {
		l.seen, l.thoughts = map[string]bool{}, nil
		first, err := l.shrink(ctx, 0)
		if err != nil {
			return err
		}
		l.add(first.thoughts)
		if first.next != "" && len(first.thoughts) > 0 {
			if all, err := l.byCursor(ctx, first.next); all || err != nil {
				return err
			}
		}
		if l.whole(first) {
			return nil
		}
		if grows {
			if len(first.thoughts) < l.limit {
				return l.verify(ctx, l.limit, first.total)
			}
			return l.byGrowth(ctx, false)
		}
		way, err := l.byOffset(ctx, first.thoughts)
		switch {
		case err != nil:
			return err
		case way == pagedAll:
			return nil
		case way == offsetIgnored || restart >= maxRestarts:
			return l.byGrowth(ctx, len(first.thoughts) < l.limit)
		}
	}
}

// shrink reads a page, and asks for smaller ones as long as they are too much for the server, or for us. A server that took the
// limit for the first page means something else when it refuses a later one.
func (l *lister) shrink(ctx context.Context, offset int) (listing, error) {
	page, err := l.page(ctx, l.limit, offset)
	for l.limit > 1 {
		f := asFailure(err)
		if f == nil || !f.limit || (offset > 0 || l.cursor != "") && f.status != 0 {
			break
		}
		l.limit = f.smaller(l.limit)
		if page, err = l.page(ctx, l.limit, offset); err == nil && f.status != 0 {
			l.lists.learn(l.path, func(p *paged) { p.limit, p.grown = l.limit, 0 })
		}
	}
	return page, err
}

// whole reports whether a first page is surely all there is. A total proves that there is more, but not that there
// is no more: some servers count the page.
func (l *lister) whole(page listing) bool {
	n := len(page.thoughts)
	return n == 0 || (page.total <= n && n < min(l.limit, surelyWhole))
}

// byCursor reads on behind the first page as the server says, and returns false where it does not mean what our own server means. A page may be shorter than
// was asked for without being the last: pages are bounded in bytes too.
func (l *lister) byCursor(ctx context.Context, next string) (bool, error) {
	for next != "" {
		l.cursor = next
		page, err := l.shrink(ctx, 0)
		l.cursor = ""
		if err != nil && asFailure(err) != nil && asFailure(err).limit {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if l.add(page.thoughts) == 0 && page.next != "" {
			return false, nil
		}
		next = page.next
	}
	return true, nil
}

// paging is how reading by offset ended.
type paging int

const (
	pagedAll paging = iota
	offsetIgnored
	// shifted means that thoughts came or went between two pages, so that some may have been missed.
	shifted
)

// byOffset reads on from the first page. Each page is asked to begin with the last thoughts of the one before: if the very last
// is among them still, nothing was missed.
func (l *lister) byOffset(ctx context.Context, first []thought) (paging, error) {
	page, pos, most, moved := first, len(first), len(first), false
	for {
		last := page[len(page)-1].ID
		// At least one thought of the next page must be new, or it would seem to be the end.
		overlap := min(overlapped, min(most, l.limit)-1, len(page), pos-1)
		next, err := l.shrink(ctx, pos-overlap)
		if isStatus(err, http.StatusUnprocessableEntity) || isStatus(err, http.StatusBadRequest) {
			return offsetIgnored, nil
		}
		if err != nil {
			return shifted, err
		}
		got := next.thoughts
		switch {
		case len(got) == 0 && overlap > 0:
			return shifted, nil
		case len(got) > 0 && got[0].ID == first[0].ID:
			return offsetIgnored, nil
		case overlap > 0 && !slices.ContainsFunc(got, func(t thought) bool { return t.ID == last }):
			return shifted, nil
		}
		moved = moved || (overlap > 0 && got[0].ID != page[len(page)-overlap].ID)
		if l.add(got) > 0 {
			page, pos = got, pos-overlap+len(got)
			continue
		}
		// Nothing new: the end, unless the page was too short to reach it.
		if n := len(got); n > 0 && (got[n-1].ID != last || n >= min(most, l.limit)) {
			return shifted, nil
		}
		if moved { // what came or moved to the front is on the first page now
			again, err := l.shrink(ctx, 0)
			if err != nil {
				return shifted, err
			}
			if l.add(again.thoughts) == len(again.thoughts) {
				return shifted, nil
			}
		}
		return pagedAll, nil
	}
}

// byGrowth asks for ever more until the server has no more to give, and then makes sure that it was not just cut. short says that the
// first page had room left.
func (l *lister) byGrowth(ctx context.Context, short bool) error {
	accepted, refused := l.limit, 0
	for {
		limit := 2 * accepted
		if refused > 0 {
			limit = (accepted + refused) / 2
		}
		if limit > maxLimit || limit <= accepted+accepted/64 {
			return &partial{path: l.path, seen: len(l.thoughts)}
		}
		page, err := l.page(ctx, limit, 0)
		switch {
		case err != nil && tooMuch(err) && short:
			return l.verify(ctx, accepted, -1)
		case err != nil && tooMuch(err):
			refused = limit
		case err != nil:
			return err
		default:
			l.add(page.thoughts)
			accepted = limit
			if short = len(page.thoughts) < limit; short {
				l.lists.learn(l.path, func(p *paged) { p.grown = limit })
				return l.verify(ctx, limit, page.total)
			}
		}
	}
}

// verify tells a listing that ended from one that the server cut: by the total the server gave, or by its statistics.
func (l *lister) verify(ctx context.Context, limit, total int) error {
	if total <= len(l.thoughts) {
		// Without statistics nothing says that it was cut.
		if n, ok := l.count(ctx); ok {
			total = n
		} else if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if total > len(l.thoughts) { // or something was stored meanwhile
		page, err := l.page(ctx, limit, 0)
		if err != nil {
			return err
		}
		l.add(page.thoughts)
	}
	if total > len(l.thoughts) {
		return &partial{path: l.path, seen: len(l.thoughts)}
	}
	return nil
}

// add keeps what is new on a page and returns how much that is.
func (l *lister) add(page []thought) int {
	n := len(l.thoughts)
	for _, t := range page {
		if !l.seen[t.ID] {
			l.seen[t.ID] = true
			l.thoughts = append(l.thoughts, t)
		}
	}
	return len(l.thoughts) - n
}

func (l *lister) page(ctx context.Context, limit, offset int) (listing, error) {
	return l.thoughtsAt(ctx, pageQuery{op: l.op, path: l.path, source: l.source, limit: limit, offset: offset, cursor: l.cursor, answered: l.can.heard})
}

// pageQuery asks for one page of a list of thoughts.
type pageQuery struct {
	op, path, source string
	limit, offset    int
	cursor           string
	// single means that there is no second try.
	single bool
	// answered, when not nil, is shown the header of the answer.
	answered func(http.Header)
}

// thoughtsAt reads one page of a list of thoughts. Each of them has an id.
func (c *client) thoughtsAt(ctx context.Context, p pageQuery) (listing, error) {
	q := url.Values{"source": {p.source}, "limit": {strconv.Itoa(p.limit)}}
	if p.offset > 0 {
		q.Set("offset", strconv.Itoa(p.offset))
	}
	if p.cursor != "" {
		q.Set("cursor", p.cursor)
	}
	body, err := c.do(ctx, p.op, call{method: http.MethodGet, path: p.path, query: q, wantJSON: true, single: p.single, page: p.limit > 1, answered: p.answered})
	if err != nil {
		return listing{}, err
	}
	page, err := decodeList(body)
	if err != nil {
		return listing{}, &failure{what: "answer to GET " + p.path + " is " + err.Error(), kind: core.ErrUnavailable}
	}
	if slices.ContainsFunc(page.thoughts, func(t thought) bool { return t.ID == "" }) {
		return listing{}, &failure{what: "answer to GET " + p.path + " has thoughts without an id", kind: errors.ErrUnsupported}
	}
	return page, nil
}
