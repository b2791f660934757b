package compacting

import (
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/window"
)

// Tier is a compactor that behaves otherwise in a chain than alone: it has a last resort that the tiers behind it are better at.
type Tier interface {
	// AsTier returns the compactor without its last resort.
	AsTier() core.Compactor
}

// noteTokens is more than a note costs.
const noteTokens = 24

// Leave is the last resort of a compaction without a model: the oldest units leave behind a line that counts them, as many as the target
// asks for. It returns false when nothing would be won.
func Leave(c core.Compaction) (core.Replacement, bool) {
	enough := EnoughFor(c)
	var taken Unit
	for _, u := range Units(c) {
		if taken.To > 0 && enough.Met(taken.To, c.Tokens-taken.Cost+noteTokens) {
			break
		}
		taken.To, taken.Cost = u.To, taken.Cost+u.Cost
	}
	if taken.Cost <= noteTokens {
		return core.Replacement{}, false
	}
	return core.Replacement{
		Entries: IDs(c, taken), Kind: "note", Text: window.NotShown(taken.To),
	}, true
}
