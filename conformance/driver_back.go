package conformance

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// backChecks hold engines to what the way back promises.
var backChecks = []Check{
	{ID: "back.found", Promise: 2, Suite: SuiteEngine, Needs: []Need{NeedRecaller}, final: backFound,
		Rule: "what is in force is found by searching for what it says, and expanded in full, whatever left the window"},
	{ID: "isolation.back", Promise: 8, Suite: SuiteEngine, Needs: []Need{NeedRecaller}, final: backIsolated,
		Rule: "searching and expanding show what the session may recall, and nothing that was erased"},
}

// lookedFor is how many messages of a session are looked for, spread over it.
const lookedFor = 4

// sought returns messages of a session that must be found.
func (d *driver) sought(t *track) []item {
	items := slices.DeleteFunc(t.inForce(d.env.Host.Now()), func(it item) bool { return !plain(it) || it.inherited })
	var out []item
	for i := range min(lookedFor, len(items)) {
		out = append(out, items[i*len(items)/min(lookedFor, len(items))])
	}
	return out
}

func backFound(d *driver) string {
	r, ok := d.engine.(engine.Recaller)
	if !ok {
		return ""
	}
	for _, t := range d.tracks {
		if t == nil {
			continue
		}
		for _, it := range d.sought(t) {
			if text := d.lookFor(r, t, it); text != "" {
				return text
			}
		}
	}
	return ""
}

// lookFor searches for a message by its mark and expands what it finds.
func (d *driver) lookFor(r engine.Recaller, t *track, it item) string {
	mark := it.marks[0]
	ctx := d.tb.Context()
	res, err := r.Search(ctx, engine.SearchRequest{Session: t.id, Query: mark, Limit: engine.MaxFound, Tokens: engine.MaxAnswer})
	if err != nil {
		return fmt.Sprintf("searching for %s in session %s: error %v", mark, t.id, err)
	}
	at := slices.IndexFunc(res.Found, func(f engine.Found) bool {
		return f.Type == core.TypeMessage && f.Session == t.id.Session && strings.Contains(f.Excerpt, mark)
	})
	if at < 0 {
		return fmt.Sprintf("searching for %s in session %s finds %d entries, and not the one that says it", mark, t.id, len(res.Found))
	}
	if n := d.tokens.count(res.Text); n > engine.MaxAnswer || n != res.Tokens {
		return fmt.Sprintf("a search answers with %d tokens, says %d, and was bounded to %d", n, res.Tokens, engine.MaxAnswer)
	}
	var whole strings.Builder
	req := engine.ExpandRequest{Session: t.id, ID: res.Found[at].ID, Tokens: engine.MaxAnswer}
	for range 1000 {
		page, err := r.Expand(ctx, req)
		if err != nil || len(page.Found) != 1 {
			return fmt.Sprintf("expanding %s in session %s shows %d entries, error %v", mark, t.id, len(page.Found), err)
		}
		if total := page.Total; total < len(it.msg.Text()) || total != len(it.msg.Text()) && len(it.msg.Parts) < 2 {
			return fmt.Sprintf("expanding %s in session %s says there are %d bytes in all, it says %d", mark, t.id, total, len(it.msg.Text()))
		}
		whole.WriteString(page.Found[0].Excerpt)
		if req.Offset = page.Next; req.Offset == 0 {
			break
		}
	}
	if want := it.msg.Text(); imageNote.ReplaceAllString(whole.String(), "") != want {
		return fmt.Sprintf("expanding %s in session %s shows %d bytes, it says %d", mark, t.id, whole.Len(), len(want))
	}
	return ""
}

// imageNote is how an expanded entry says what an image is.
var imageNote = regexp.MustCompile(`\n\(image: [^\n]*\)`)

// backIsolated searches from every session for what every other one said.
func backIsolated(d *driver) string {
	r, ok := d.engine.(engine.Recaller)
	if !ok {
		return ""
	}
	now := d.env.Host.Now()
	ids := map[*track]map[string]string{}
	for _, t := range d.tracks {
		if t != nil {
			ids[t] = d.idsByMark(t)
		}
	}
	for _, t := range d.tracks {
		if t == nil {
			continue
		}
		p := &prompt{d: d, t: t}
		for _, other := range d.tracks {
			if other == nil {
				continue
			}
			if text := d.expandsOnly(r, t, other, ids[other]); text != "" {
				return text
			}
			for _, it := range append(d.sought(other), d.forgotten(other)...) {
				res, err := r.Search(context.WithoutCancel(d.tb.Context()), engine.SearchRequest{Session: t.id, Query: it.marks[0], Limit: engine.MaxFound})
				if err != nil {
					return fmt.Sprintf("searching in session %s: error %v", t.id, err)
				}
				shown := marksIn(res.Text)
				for _, f := range res.Found {
					shown = append(shown, marksIn(f.Excerpt)...)
				}
				for _, m := range shown {
					owner := d.owner[m]
					if d.erased[m] {
						return fmt.Sprintf("a search in session %s shows %s, which was erased", t.id, m)
					}
					if owner != nil && !t.reach(m, owner, now, d.comb.AcrossSessions) && !t.searches(owner, now) && !p.takenOver(m) {
						return fmt.Sprintf("a search in session %s shows %s of session %s", t.id, m, owner.id)
					}
				}
			}
		}
	}
	return ""
}

// idsByMark returns the ids of the messages that a session holds, by their first marks.
func (d *driver) idsByMark(t *track) map[string]string {
	out := map[string]string{}
	for e, err := range core.All(context.WithoutCancel(d.tb.Context()), d.store, t.id.Scope(), false) {
		if err != nil {
			d.fail("lost.readback", "reading session %s: error %v", t.id, err)
			break
		}
		if marks := marksOf(&e); len(marks) > 0 && e.Type == core.TypeMessage {
			out[marks[0]] = e.ID
		}
	}
	return out
}

// expandsOnly asks from a session for what another one said, by its ids.
func (d *driver) expandsOnly(r engine.Recaller, t, other *track, ids map[string]string) string {
	now := d.env.Host.Now()
	for _, it := range d.sought(other) {
		mark := it.marks[0]
		if ids[mark] == "" || d.owner[mark] != other || t.reach(mark, other, now, d.comb.AcrossSessions) || t.searches(other, now) {
			continue
		}
		res, err := r.Expand(context.WithoutCancel(d.tb.Context()), engine.ExpandRequest{Session: t.id, ID: ids[mark]})
		if !errors.Is(err, core.ErrNotFound) || len(res.Found) > 0 || res.Text != "" {
			return fmt.Sprintf("expanding %q of session %s in session %s: %d entries, error %v, want ErrNotFound", ids[mark], other.id, t.id, len(res.Found), err)
		}
	}
	return ""
}

// forgotten returns what was erased of a session.
func (d *driver) forgotten(t *track) []item {
	out := slices.DeleteFunc(slices.Clone(t.log), func(it item) bool { return !it.erased || len(it.marks) == 0 })
	return out[:min(len(out), lookedFor)]
}
