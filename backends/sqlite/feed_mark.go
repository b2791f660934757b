package sqlite

import (
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// place is what a mark of the feed says.
type place struct {
	// owner is that of the agent in the file that made the mark.
	owner int64
	// n is the number of what was told last, token that of the change; it is 0 for an append.
	n, token int64
	// since is the highest number when the feed was begun: changes up to it are not needed to follow.
	since int64
	// id is that of the entry that was told of last.
	id string
}

func (p place) mark() core.Mark {
	b := make([]byte, 0, 64)
	for _, n := range []int64{p.owner, p.n, p.token, p.since} {
		b = append(strconv.AppendInt(b, n, 36), '.')
	}
	return core.Mark(append(b, p.id...))
}

func parsePlace(m core.Mark) (place, bool) {
	parts := strings.SplitN(string(m), ".", 5)
	if len(parts) != 5 {
		return place{}, false
	}
	p := place{id: parts[4]}
	for i, to := range []*int64{&p.owner, &p.n, &p.token, &p.since} {
		v, err := strconv.ParseInt(parts[i], 36, 64)
		if err != nil {
			return place{}, false
		}
		*to = v
	}
	return p, true
}
