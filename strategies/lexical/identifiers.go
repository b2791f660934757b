package lexical

// ascii takes apart a chunk of ASCII text without blanks.
func (a *analyzer) ascii(s string) {
	for i := 0; i < len(s); {
		if !isAlnum(s[i]) {
			i++
			continue
		}
		start, end, joined := i, i+1, false
		for j := i + 1; j < len(s); j++ {
			c := s[j]
			if isAlnum(c) {
				joined = joined || end != j
				end = j + 1
				continue
			}
			if !isJoiner(c) && (c != ',' || !isDigit(s[j-1]) || j+1 >= len(s) || !isDigit(s[j+1])) {
				break
			}
		}
		if joined {
			a.compound(s[start:end])
		} else {
			a.simple(s[start:end])
		}
		i = end
	}
}

// compound emits the pieces of an identifier, the identifier as a whole, and the dotted or dashed parts of a path.
func (a *analyzer) compound(s string) {
	if a.contraction(s) {
		return
	}
	start, part, inner, parts := 0, 0, 0, 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && isAlnum(s[i]) {
			continue
		}
		if i > start {
			a.simple(s[start:i])
			inner++
		}
		start = i + 1
		if i == len(s) || isSeparator(s[i]) {
			if inner > 1 && (i < len(s) || parts > 0) && i-part <= maxWhole {
				a.put(s[part:i], whole)
			}
			part, inner, parts = i+1, 0, parts+1
		}
	}
	if len(s) <= maxWhole {
		a.put(s, whole)
		if s[0]|0x20 == 'v' && isDigit(s[1]) { // a version
			a.put(s[1:], whole)
		}
	}
}

// contraction deals with the apostrophes of English: "Ann's" is "ann", "don't" is nothing worth looking for.
func (a *analyzer) contraction(s string) bool {
	for i := 1; i+1 < len(s); i++ {
		if s[i] != '\'' {
			if !isLetter(s[i]) {
				return false
			}
			continue
		}
		switch s[i+1:] {
		case "s", "S", "d", "m", "ll", "re", "ve":
			a.simple(s[:i])
			return true
		case "t", "T":
			return true
		}
		return false
	}
	return false
}

// simple emits a run of ASCII letters and digits: a word, or a name made of words or of letters and a number.
func (a *analyzer) simple(s string) {
	digits, humps := 0, 0
	for i := range len(s) {
		switch {
		case isDigit(s[i]):
			digits++
		case i > 0 && startsHump(s, i):
			humps++
		}
	}
	switch {
	case digits > 0:
		a.put(s, literal)
		a.numbered(s, digits)
	case humps == 0 || len(s) > maxWhole:
		a.put(s, plain)
	default:
		start := 0
		for i := 1; i <= len(s); i++ {
			if i == len(s) || startsHump(s, i) {
				a.put(s[start:i], plain)
				start = i
			}
		}
		a.put(s, whole)
	}
}

// numbered emits the two parts of letters followed by a number, such as E1042 or HTTP404, unless they are too short to be looked for.
func (a *analyzer) numbered(s string, digits int) {
	letters := len(s) - digits
	for i := range digits {
		if !isDigit(s[letters+i]) {
			return
		}
	}
	if digits >= 3 && letters > 0 {
		a.put(s[letters:], whole)
		if letters >= 3 {
			a.put(s[:letters], whole)
		}
	}
}

// startsHump reports whether a word of a camelCase name starts at s[i]: "getUser", "HTTPServer".
func startsHump(s string, i int) bool {
	if !isUpper(s[i]) {
		return false
	}
	return !isUpper(s[i-1]) || i+1 < len(s) && !isUpper(s[i+1]) && i > 1
}
