package tiktoken

// shortPiece is the length in bytes of the longest word that the quadratic merge takes.
const shortPiece = 64

// countShort counts the tokens of the word text[from:to] of 1 to shortPiece bytes.
func (v *vocabulary) countShort(text string, from, to int) int {
	if v.rank(text, from, to) != noRank {
		return 1
	}
	return v.mergeShort(text, from, to)
}

// mergeShort counts the tokens of the word text[from:to] of 1 to shortPiece bytes, which is no token itself, by byte pair
// merging: always the pair of the lowest rank, the leftmost of equals. It takes quadratic time, but its few numbers lie
// side by side: up to shortPiece that is about as fast as the n log n merge, for a usual word twice as fast, and it never
// allocates.
func (v *vocabulary) mergeShort(text string, from, to int) int {
	var start [shortPiece + 1]uint8 // where the parts start, counted from the first, and where the last ends
	var ranks [shortPiece]int32     // ranks[i]: rank of part i joined with the next
	parts := to - from
	for i := range parts {
		start[i+1] = uint8(i + 1)
		ranks[i] = noRank
		if i+1 < parts {
			ranks[i] = v.pairs[int(text[from+i])<<8|int(text[from+i+1])]
		}
	}
	for {
		lowest, at := int32(noRank), 0
		for i, rank := range ranks[:parts] {
			if rank < lowest {
				lowest, at = rank, i
			}
		}
		if lowest == noRank {
			return parts
		}
		if parts == 3 {
			// After this merge there are two parts, which joined would be the word.
			return 2
		}
		copy(start[at+1:parts], start[at+2:parts+1])
		copy(ranks[at:parts-1], ranks[at+1:parts])
		parts--
		if at+1 < parts {
			ranks[at] = v.rank(text, from+int(start[at]), from+int(start[at+2]))
		}
		if at > 0 {
			ranks[at-1] = v.rank(text, from+int(start[at-1]), from+int(start[at+1]))
		}
	}
}
