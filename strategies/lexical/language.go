package lexical

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// language is what a text is written in, as far as words of it are brought to one form.
type language uint8

const (
	// english is also what a text counts as that says nothing else: identifiers, numbers, output of programs.
	english language = iota
	// unsure is a short text of which nothing is known: its words are indexed as English ones and by their beginning.
	unsure
	// other is a language that is known not to be English: words as they are written, and by their beginning.
	other

	arabic
	danish
	dutch
	finnish
	french
	german
	hungarian
	indic // any language in a script of India
	italian
	norwegian
	polish
	portuguese
	romanian
	russian
	spanish
	swedish
	turkish
	vietnamese // every syllable is a word, and accents are half of it

	languages // how many there are
)

const (
	// maxScanned is how many words of a text say its language.
	maxScanned = 64
	// minHits is how many function words of a language make sure; next to a letter that English has not, one does.
	minHits = 2
)

// languageOf finds the language of a text by its script and its function words. Nothing but the text decides, so an entry is indexed alike whenever it is. A
// query says little: with asked set, one function word is enough.
func languageOf(text string, asked bool) language {
	var hits [languages]int
	var scripts scriptCount
	words, accents := 0, false
	var buf [maxTerm]byte
	word := buf[:0]
	for i := 0; i <= len(text) && words < maxScanned; {
		r, n := rune(' '), 1
		if i < len(text) {
			r, n = rune(text[i]), 1
			if r >= utf8.RuneSelf {
				r, n = utf8.DecodeRuneInString(text[i:])
			}
		}
		i += n
		switch {
		case 'a' <= r && r <= 'z':
			word = append(word, byte(r))
		case 'A' <= r && r <= 'Z':
			word = append(word, byte(r)+'a'-'A')
		case r >= utf8.RuneSelf && unicode.IsLetter(r):
			accents = accents || r < 0x250 || isVietnamese(r)
			if r = unicode.ToLower(r); r >= 0x250 && !isVietnamese(r) {
				scripts.add(r)
			} else if l := letterOf(r); l != english {
				hits[l]++
			}
			word = utf8.AppendRune(word, r)
		case r >= utf8.RuneSelf && isMark(r):
			scripts.add(r) // in India most vowels are marks
			word = utf8.AppendRune(word, r)
		case len(word) > 0:
			words++
			for mask := functionWords[string(word)]; mask != 0; mask &= mask - 1 {
				hits[lowest(mask)]++
			}
			word = word[:0]
		}
		if len(word) > maxTerm-utf8.UTFMax {
			word = word[:0] // no function word
		}
	}
	if l := scripts.language(words); l != english {
		return l
	}
	best := other
	for l := other + 1; l < languages; l++ {
		if hits[l] > hits[best] {
			best = l
		}
	}
	most := hits[best]
	switch {
	case most > hits[english] && (most >= minHits || accents || asked):
		return best
	case hits[english] > most || words == maxScanned || words == 0:
		return english
	case accents && hits[english] == 0:
		return other
	}
	return unsure
}

// letterOf returns the language that alone of those here writes a letter of the Latin script; english when there are several.
func letterOf(r rune) language {
	if isVietnamese(r) {
		return vietnamese
	}
	switch r {
	case 'ß':
		return german
	case 'ñ':
		return spanish
	case 'ã', 'õ':
		return portuguese
	case 'ő', 'ű':
		return hungarian
	case 'ą', 'ę', 'ł', 'ń', 'ś', 'ź', 'ż':
		return polish
	case 'ğ', 'ı', 'ş':
		return turkish
	case 'ș', 'ț', 'ă':
		return romanian
	}
	return english
}

func isVietnamese(r rune) bool { return 0x1EA0 <= r && r <= 0x1EF9 || r == 'ơ' || r == 'ư' }

// scriptCount counts letters of scripts that tell a language.
type scriptCount struct{ cyrillic, russian, arabic, indic, others int }

func (c *scriptCount) add(r rune) {
	switch {
	case r == 'і' || r == 'ї' || r == 'є' || r == 'ў' || r == 'ј' || r == 'ђ' || r == 'ћ': // not Russian
		c.cyrillic, c.russian = c.cyrillic+1, c.russian-1<<20
	case r < 0x370:
	case r < 0x400:
		c.others++
	case r < 0x530:
		c.cyrillic, c.russian = c.cyrillic+1, c.russian+1
	case r < 0x600:
		c.others++
	case r < 0x780:
		c.arabic++
	case 0x900 <= r && r < 0xE00:
		c.indic++
	case !isDense(r):
		c.others++
	}
}

// language returns what the script of so many words says; english when it is Latin, or one that has no words.
func (c *scriptCount) language(words int) language {
	// Two letters a word are a text in that script with names in Latin in it, and no Latin text with a word in another one.
	switch most := max(c.cyrillic, c.arabic, c.indic, c.others); {
	case most < 2*words || most == 0:
		return english
	case most == c.cyrillic && c.russian > 0:
		return russian
	case most == c.arabic:
		return arabic
	case most == c.indic:
		return indic
	}
	return other
}

func lowest(mask uint32) language {
	l := language(0)
	for mask&1 == 0 {
		mask >>= 1
		l++
	}
	return l
}

// functionWords says in which languages a word says nothing about a topic: one bit each. Their forms are few, so a dozen or two of each language tell it.
var functionWords = func() map[string]uint32 {
	m := make(map[string]uint32)
	add := func(l language, words string) {
		for w := range strings.FieldsSeq(words) {
			m[w] |= 1 << l
		}
	}
	for w := range stopwords {
		add(english, w)
	}
	add(danish, `og i jeg det at en den til er som på de med han af for ikke der var mig sig men et har om vi min havde ham hun nu over da fra du ud sin dem os op man hans hvor eller
		hvad skal selv her alle vil blev kunne ind når være dog noget ville jo deres efter ned skulle denne dette også under have anden hende alt hvem hvilken hvilke hvornår blive`)
	add(dutch, `de en van ik te dat die in een hij het niet zijn is was op aan met als voor had er maar om hem dan zou of wat mijn men dit zo door over ze zich bij ook tot je mij uit der daar
		haar naar heb hoe heeft hebben deze u want nog zal me zij nu geen omdat iets worden toch al waren veel meer doen toen moet ben zonder kan hun dus alles onder ja werd wie waar welke wordt wanneer`)
	add(finnish, `ja on ei se että hän oli olla ovat tämä mutta niin kuin kun myös joka mikä mitä missä mistä mihin kuka kenen milloin miksi jos vain nyt sitten minä sinä me te he minun sinun hänen
		ovatko oliko onko siellä tässä siinä eilen tänään huomenna aina taas vielä sen tämän jonka joita jossa mukaan kanssa ennen jälkeen eivät olivat ole ollut kuinka miten minkä kenelle`)
	add(french, `le la les un une des du de d l et est à au aux en dans que qui qu ce cette ces il elle ils elles je j tu nous vous on ne n pas plus par pour sur avec sans sous son sa ses leur leurs
		mon ma mes ton ta notre votre s se c y ou où mais donc car si comme quand quel quelle quels quelles quoi comment pourquoi a été était sont ont être avoir fait entre chez`)
	add(german, `der die das den dem des ein eine einen einem einer eines und ist sind war waren nicht mit auf für von zu zum zur im in an am aus bei nach über unter vor durch als auch es ich du er sie
		wir ihr mich dich sich uns mein dein sein seine seinen ihre ihren ihrem haben hat hatte wird wurde wurden werden kann konnte dass wenn wie was wer wen wem wo wann warum welche welcher
		welches welchen oder aber nur noch schon um bis man kein keine wir wessen womit woher wohin`)
	add(hungarian, `a az és hogy nem is egy ez ezt azt ki mi mit mikor hol hová honnan miért hogyan van volt vannak voltak lesz meg már csak még de ha vagy mint sem el fel le be kell én te ő mi ti ők
		melyik milyen mely akkor ahol aki ami akik amely után alatt előtt között által szerint nagyon minden ezek azok kinek kivel mivel kié tegnap holnap megint`)
	add(italian, `il lo la i gli le un uno una di del dello della dei degli delle da dal dalla dai in nel nello nella nei nelle a al allo alla ai alle su sul sulla con per tra fra e ed è che chi cui
		non si ci ne mi ti se ma o come dove quando quale quali perché cosa sono era erano ha hanno ho stato stata essere avere questo questa questi quello quella suo sua suoi sue mio mia loro più anche c l d`)
	add(norwegian, `og i jeg det at en et den til er som på de med han av ikke ikkje der så var meg seg men ett har om vi min mitt ha hadde hun nå over da ved fra du ut sin dem oss opp man kan hans hvor
		eller hva skal selv sjøl her alle vil bli ble blei blitt kunne inn når være kom noen noe ville dere deres kun etter ned skulle denne dette for under hvem hvilken hvilke`)
	add(polish, `i w we z ze na do nie że się jest to o jak ale po co tak za od jego jej ich był była było były być przez przy dla czy już tylko który która które którzy którego której kto kogo komu
		kiedy gdzie dlaczego jaki jaka jakie ten ta te tego tej tym są pod nad oraz lub a u mnie mi mój moja moje swój swoją ma mają bardzo może ktoś coś czym wczoraj jutro znowu`)
	add(portuguese, `o a os as um uma uns umas de do da dos das em no na nos nas ao à aos às por pelo pela pelos pelas para com sem sob sobre e é que quem qual quais não se mas ou como onde quando
		porquê quanto foi era eram ser são está estão tem têm ter havia seu sua seus suas meu minha nosso ele ela elas eu você isto isso este esta esse essa aquele muito mais também já`)
	add(romanian, `și în la de pe cu că care ce nu este sunt era erau a au al ai ale o un una unui unei din pentru prin sau dar dacă cum când unde cine cui cât ca mai se să îi își lui ei lor el ea eu tu noi
		voi acest această acești acea fost fi avea are am ai despre după între până fără foarte tot toate cel cea cei cele`)
	add(spanish, `el la los las lo un una unos unas de del a al en y e o u que quien quién quiénes cual cuál cuáles no se su sus con por para sin sobre entre como cómo cuando cuándo donde dónde qué es son
		era eran fue fueron ser está están estaba ha han había tiene tienen hay más muy pero si porque mi mis tu nuestro yo él ella ellos nos le les me te este esta estos esto ese esa aquel también ya desde hasta`)
	add(swedish, `och det att i en jag hon som han på den med var sig för så till är men ett om hade de av icke mig du henne då sin nu har inte hans honom skulle hennes där min man ej vid kunde något från ut
		när efter upp vi dem vara vad över än dig kan sina här ha mot alla under någon eller allt mycket sedan ju denna själv detta åt utan varit hur ingen mitt ni bli blev oss din dessa vem vilken vilka`)
	add(turkish, `ve bir bu da de için ile ne mi mı mu mü çok daha gibi ama o şu ki kim kimin kime nerede nereye nereden nasıl neden niçin hangi kadar en var yok ben sen biz siz onlar onun benim senin
		olan olarak oldu olduğu değil her sonra önce göre ise ya veya hem şey diye kaç midir mıdır idi dün bugün yarın yine hep`)
	return m
}()
