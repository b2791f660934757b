// Package vector is what a store offers that keeps embedding vectors, found through core.As like every companion of a store.
package vector

import (
	"context"

	"github.com/contextengine/contextengine/core"
)

// Store keeps embedding vectors of entries. They go with their entries: erasing an entry erases its vectors, whether it is deleted or an Update makes it core.TypeErased.
type Store interface {
	// PutVectors stores vectors in a space, replacing those with the same id and part. Ids that the store does not hold
	// are skipped and do not wait for their entry. Vectors of one space have the same length, whichever agent's they
	// are and as long as one is there, else it is ErrInvalid.
	PutVectors(ctx context.Context, space string, vectors []Vector) error
	// ScanVectors returns one page of an agent's vectors in a space, in an order that stays.
	ScanVectors(ctx context.Context, q Query) (Page, error)
	// VectorSpaces lists the spaces that hold vectors of an agent (of all agents when it is empty), by name.
	VectorSpaces(ctx context.Context, agent string) ([]Space, error)
	// DropVectors removes all vectors of a space, or only those of an agent.
	DropVectors(ctx context.Context, space, agent string) error
}

// Vector is the embedding of a part of an entry.
type Vector struct {
	ID string
	// Part counts the parts that an entry's text was cut into, from 0; Start and End delimit it in the text, in bytes.
	Part       int
	Start, End int
	// Hash identifies the text that was embedded.
	Hash uint64
	// Values come back to the last bit. Those that were given are not kept by the store nor changed.
	Values []float32
}

// Query asks for a page of vectors.
type Query struct {
	Space string
	// Agent is never empty.
	Agent  string
	Cursor core.Cursor
	// Limit is 1 to MaxPage.
	Limit int
}

// Page is a part of a scan of vectors.
type Page struct {
	Vectors []Vector
	// Next continues the scan, also where what the page ended with was erased since; empty at the end.
	Next core.Cursor
}

// Space is what one model with one number of dimensions makes; vectors of different spaces cannot be compared.
type Space struct {
	// Name identifies model and dimensions, such as "bge-m3/1024".
	Name       string
	Dimensions int
	// Entries is the number of entries that have vectors in it.
	Entries int
}

// Searcher finds entries by vector on the store's side. What core.Searcher says of hits holds here too.
type Searcher interface {
	// SearchVectors returns the entries nearest to a vector by cosine similarity, which is their score, best first. Text of the
	// query is not used. An entry is found once, by the nearest of its parts. A space that is not there has no hits; a vector of another length than the
	// space's is ErrInvalid. Where the root of the sum of a vector's squares is below 1e-6 or above 1e6 the score may be wrong.
	SearchVectors(ctx context.Context, space string, vector []float32, q core.SearchQuery) ([]core.Hit, error)
}
