package lexical

import "strings"

// isStopword reports English words that say nothing about a topic. "may" is not among them: it is a month.
func isStopword(word string) bool {
	_, ok := stopwords[word]
	return ok
}

var stopwords = func() map[string]struct{} {
	m := make(map[string]struct{})
	for w := range strings.FieldsSeq(`
		a an the this that these those here there
		i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself
		she her hers herself it its itself they them their theirs themselves one
		am is are was were be been being do does did doing done have has had having
		will would shall should can could might must ought
		and or but nor so yet if then else than because as while until although though since unless
		of at by for with about against between into through during before after above below to from up down
		in out on off over under again further once toward towards upon within without along across around
		who whom whose which what when where why how whether
		all any both each few more most other others some such no not only own same too very just also even
		still ever never now much many every another either neither
		don didn doesn isn aren wasn weren hasn haven hadn won wouldn shouldn couldn mustn cannot
		etc via per vs re ve ll im ive dont didnt thats whats
		get got let lets like really yes yeah ok okay oh hey hi well`) {
		m[w] = struct{}{}
	}
	return m
}()
