package survival

import (
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/chain"
	"github.com/contextengine/contextengine/strategies/index"
	"github.com/contextengine/contextengine/strategies/mask"
)

// Arms returns the ways to compact without a model, from keeping the newest messages alone (archive) to masking, index and archive in a
// chain; "mask+archive" is that chain without the index.
func Arms() []Arm {
	return []Arm{
		{Name: "archive", Open: func() (core.Compactor, error) { return archive.New(archive.DefaultConfig()) }},
		{Name: "index", Open: func() (core.Compactor, error) { return index.New(index.DefaultConfig()) }},
		{Name: "mask+archive", Open: func() (core.Compactor, error) { return tiers(false) }},
		{Name: "mask+index+archive", Open: func() (core.Compactor, error) { return tiers(true) }},
	}
}

func tiers(indexed bool) (core.Compactor, error) {
	masking, err := mask.New(mask.DefaultConfig())
	if err != nil {
		return nil, err
	}
	archiving, err := archive.New(archive.DefaultConfig())
	if err != nil {
		return nil, err
	}
	if !indexed {
		return chain.New(masking, archiving)
	}
	indexing, err := index.New(index.DefaultConfig())
	if err != nil {
		return nil, err
	}
	return chain.New(masking, indexing, archiving)
}
