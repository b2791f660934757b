// Package tiktoken counts tokens as OpenAI models do, from vocabularies embedded in the binary; it never touches the
// network.
//
//	counter, err := tiktoken.New(tiktoken.DefaultEncoding)
//	n := counter.Count("Hello, world")
//
// A *Counter's Count method fits core.TokenCounter. ForModel names the encoding of a model; AtLeast combines counters
// when a budget must hold for several encodings at once.
//
// Counts are those of the reference implementation, for any input. Texts with very long words or runs of blanks, on
// which the usual merge takes quadratic time, are counted by a merge that takes n log n; only a single word larger than
// a mebibyte is counted in parts, with a margin on top.
package tiktoken
