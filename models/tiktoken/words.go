package tiktoken

// How the encodings divide text into words, as published with the vocabularies.
const (
	o200kWords = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	cl100kWords = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}` +
		`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// A rule returns where the word that starts at a position of text ends. The position is less than len(text), the word
// is never empty.
//
// The rules are the expressions above written out, with the outcome of backtracking worked out by hand: they take linear
// time and allocate nothing. The tests compare them with the expressions.
type rule func(t *classes, text string, at int) int

// o200kRule divides text as o200kWords does.
func o200kRule(t *classes, text string, at int) int {
	c, size := t.at(text, at)
	if c&letter != 0 {
		end, _ := t.casedWord(text, at)
		return contraction(text, end)
	}
	if c&number != 0 {
		return t.digits(text, at)
	}
	after := at + size
	if c&lead != 0 && after < len(text) {
		if d, _ := t.at(text, after); d&(upper|lower) != 0 {
			end, capitals := t.casedWord(text, after)
			if capitals && c&lower != 0 {
				// A mark before capitals alone: the first alternative fits the mark by itself, before the second is tried.
				return after
			}
			return contraction(text, end)
		}
	}
	if c&lower != 0 {
		return contraction(text, after) // a mark
	}
	if end := t.symbols(text, at); end > at {
		for end < len(text) && (text[end] == '\n' || text[end] == '\r' || text[end] == '/') {
			end++
		}
		return end
	}
	return t.blanks(text, at)
}

// cl100kRule divides text as cl100kWords does.
func cl100kRule(t *classes, text string, at int) int {
	if end := contraction(text, at); end > at {
		return end
	}
	c, size := t.at(text, at)
	if c&letter != 0 {
		return t.letters(text, at)
	}
	if c&number != 0 {
		return t.digits(text, at)
	}
	if c&lead != 0 {
		if end := t.letters(text, at+size); end > at+size {
			return end
		}
	}
	if end := t.symbols(text, at); end > at {
		for end < len(text) && (text[end] == '\n' || text[end] == '\r') {
			end++
		}
		return end
	}
	return t.blanks(text, at)
}

// casedWord returns the end of the letters and marks at a position of text that holds one, as o200k_base takes them:
// either upper ones, then at least one lower one, or else upper ones; capitals tells that it was the latter.
func (t *classes) casedWord(text string, at int) (end int, capitals bool) {
	either := 0 // where the last character ends that is upper as well as lower
	var c class
	var size int
	for end = at; end < len(text); end += size {
		if c, size = t.at(text, end); c&upper == 0 {
			break
		}
		if c&lower != 0 {
			either = end + size
		}
	}
	if end == len(text) || c&lower == 0 {
		// Nothing lower follows, so the last that can be either has to serve.
		if either > 0 {
			return either, false
		}
		return end, true
	}
	for end += size; end < len(text); end += size {
		if c, size = t.at(text, end); c&lower == 0 {
			break
		}
	}
	return end, false
}

// letters returns the end of the letters at a position of text, which may be its end.
func (t *classes) letters(text string, at int) int {
	for at < len(text) {
		c, size := t.at(text, at)
		if c&letter == 0 {
			break
		}
		at += size
	}
	return at
}

// digits returns the end of at most three numerals at a position of text that holds one.
func (t *classes) digits(text string, at int) int {
	for range 3 {
		if at == len(text) {
			break
		}
		c, size := t.at(text, at)
		if c&number == 0 {
			break
		}
		at += size
	}
	return at
}

// symbols returns the end of the visible characters at a position of text, with a space before them or not; the
// position itself if there are none.
func (t *classes) symbols(text string, at int) int {
	from := at
	if text[at] == ' ' {
		from++
	}
	end := from
	for end < len(text) {
		c, size := t.at(text, end)
		if c&visible == 0 {
			break
		}
		end += size
	}
	if end == from {
		return at
	}
	return end
}

// blanks returns the end of the word of blanks at a position of text that holds one: up to the last newline of the run;
// without any, up to the last blank, which is left to what follows, unless it is the only one or nothing follows.
func (t *classes) blanks(text string, at int) int {
	end, last, lines := at, at, 0
	for end < len(text) {
		c, size := t.at(text, end)
		if c&blank == 0 {
			break
		}
		last = end
		end += size
		if c&newline != 0 {
			lines = end
		}
	}
	switch {
	case lines > 0:
		return lines
	case end < len(text) && last > at:
		return last
	default:
		return end
	}
}

// contraction returns the end of (?i:'s|'t|'re|'ve|'m|'ll|'d) at a position of text, the position itself if there is none.
func contraction(text string, at int) int {
	if at+1 >= len(text) || text[at] != '\'' {
		return at
	}
	second := byte(0)
	switch text[at+1] | 0x20 { // lower case, of a letter
	case 's', 't', 'm', 'd':
		return at + 2
	case 'r', 'v':
		second = 'e'
	case 'l':
		second = 'l'
	}
	if second != 0 && at+2 < len(text) && text[at+2]|0x20 == second {
		return at + 3
	}
	return at
}
