package openbraintest

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// Behavior is everything that differs between servers. The zero value is not useful; see DefaultBehavior.
type Behavior struct {
	// List is the key under which lists are answered: "thoughts", "results", "items", "matches" or "data"; "" answers a
	// bare array, "data.thoughts" an object in an object.
	List string
	// Create is the key under which a created thought is answered; "" answers the thought itself, "id", "thought_id" and "data.id" only
	// its id, "none" an empty body.
	Create string
	// Nested puts each found thought under "thought", next to its score.
	Nested bool
	// IDField, TimeField and ScoreField name those fields. "distance" is one minus the score; "" leaves the field out.
	IDField, TimeField, ScoreField string
	// NumericIDs makes ids rising numbers.
	NumericIDs bool
	// NaiveTimes leaves the zone out of times.
	NaiveTimes bool
	// MetadataText answers metadata as a JSON text in a string, NoMetadata not at all.
	MetadataText, NoMetadata bool
	// Total adds the number of all matching thoughts to lists.
	Total bool

	// NoList, NoGet, NoRecent, NoStats and NoOffset take those features away.
	NoList, NoGet, NoRecent, NoStats, NoOffset bool
	// RecentIgnoresSource makes "recent" show the thoughts of all sources.
	RecentIgnoresSource bool
	// MaxLimit is the largest limit, 0 means none; larger ones are cut to it, or refused with 422 when RefuseLimit is set.
	MaxLimit    int
	RefuseLimit bool
	// MergePatch makes PATCH keep metadata keys that it is not sent.
	MergePatch bool
	// Merge is what a create does that resembles an older thought of any source.
	Merge Merge
	// SearchSource is what is done with the source of a search.
	SearchSource SearchSource
	// OddIDs makes ids of characters that have a meaning in URLs and JSON.
	OddIDs bool
	// SearchNoID leaves the ids out of what a search finds.
	SearchNoID bool
	// SearchAll makes a search find every thought, however unlike the query.
	SearchAll bool
	// Strict takes away all that the product document does not have: other paths and methods are 404, and a field or parameter too many,
	// or one that is missing, is 422. See Strict.
	Strict bool
	// NoContentDelete makes deletes and patches answer 204 without a body.
	NoContentDelete bool
}

// Merge is how a server removes duplicates.
type Merge int

// The ways to remove duplicates.
const (
	// MergeNone keeps all thoughts.
	MergeNone Merge = iota
	// MergeSame answers with the older thought of the same content.
	MergeSame
	// MergeAlike does so for all contents whose words are much the same.
	MergeAlike
	// MergeOver writes the new metadata over those of the older thought of much the same words.
	MergeOver
)

// same reports whether a server takes two contents for duplicates.
func (m Merge) same(a, b string) bool {
	switch m {
	case MergeSame:
		return a == b
	case MergeAlike, MergeOver:
		return overlap(words(a), words(b)) > 0.7
	}
	return false
}

// SearchSource is what a server does with the source of a search.
type SearchSource int

// What servers do with the source of a search.
const (
	// SourceIgnored searches all sources.
	SourceIgnored SearchSource = iota
	// SourceHonoured finds thoughts of the source only.
	SourceHonoured
	// SourceForbidden answers 422 that names the field, SourceRefused 400 that names nothing.
	SourceForbidden
	SourceRefused
)

// DefaultBehavior is what the documented server most likely does.
func DefaultBehavior() Behavior {
	return Behavior{List: "thoughts", IDField: "id", TimeField: "created_at", ScoreField: "similarity"}
}

// Strict is the server of the product document alone: its six calls, and nothing beside them. Recent gives at most max thoughts, a search
// is global and finds by words. A larger limit is refused with 422, or cut to max where clamp is set.
func Strict(max int, clamp bool) func(*Behavior) {
	return func(b *Behavior) {
		b.Strict, b.NoList, b.NoGet, b.NoStats, b.NoOffset = true, true, true, true, true
		b.MaxLimit, b.RefuseLimit = max, !clamp
	}
}

// one returns a thought as b writes it.
func (b Behavior) one(t *Thought) map[string]any {
	m := map[string]any{"content": t.Content, "source": t.Source}
	if b.IDField != "" {
		m[b.IDField] = b.id(t)
	}
	if b.TimeField != "" {
		layout := "2006-01-02T15:04:05.000000Z07:00"
		if b.NaiveTimes {
			layout = "2006-01-02T15:04:05.000000"
		}
		m[b.TimeField] = t.Created.Format(layout)
	}
	if b.NoMetadata {
		return m
	}
	m["metadata"] = t.Metadata
	if b.MetadataText && t.Metadata != nil {
		text, _ := json.Marshal(t.Metadata) // came from JSON
		m["metadata"] = string(text)
	}
	return m
}

func (b Behavior) id(t *Thought) any {
	if b.NumericIDs {
		n, _ := strconv.Atoi(t.ID)
		return n
	}
	return t.ID
}

// element returns a thought as it stands in a list. score is NaN where there is none.
func (b Behavior) element(t *Thought, score float64) map[string]any {
	m := b.one(t)
	if b.Nested {
		m = map[string]any{"thought": m}
	}
	switch {
	case math.IsNaN(score) || b.ScoreField == "":
	case b.ScoreField == "distance":
		m["distance"] = 1 - score
	default:
		m[b.ScoreField] = score
	}
	return m
}

// list wraps the elements of a list.
func (b Behavior) list(elements []map[string]any, total int) any {
	if elements == nil {
		elements = []map[string]any{}
	}
	if b.List == "" {
		return elements
	}
	m := map[string]any{}
	if b.List == "data.thoughts" {
		inner := map[string]any{"thoughts": elements}
		if b.Total {
			inner["pagination"] = map[string]any{"total": total}
		}
		return map[string]any{"data": inner}
	}
	m[b.List], m["count"] = elements, len(elements)
	if b.Total {
		m["total"] = total
	}
	return m
}

// created wraps the answer to a create; nil means no body.
func (b Behavior) created(t *Thought) any {
	switch b.Create {
	case "":
		return b.one(t)
	case "id":
		return map[string]any{"id": b.id(t)}
	case "thought_id":
		return map[string]any{"thought_id": b.id(t), "action": "created", "message": "captured"}
	case "data.id":
		return map[string]any{"data": map[string]any{"id": b.id(t)}}
	case "none":
		return nil
	}
	return map[string]any{"status": "created", b.Create: b.one(t), "time": time.Time{}}
}
