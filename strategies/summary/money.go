package summary

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What stands beside a number that is a sum, and what a number may be times.
const (
	signs = `\p{Sc}|R\$|zł|Kč`
	// In lower case the others are words too.
	codes = `(?i:usd|eur|gbp|chf|jpy|cny|inr|cad|aud)|NZD|PLN|CZK|HUF|RON|SEK|NOK|DKK|BRL|MXN|RUB|TRY|ILS|KRW|SGD|HKD|THB|ZAR|UAH|AED|SAR|EGP|BDT|PKR|IDR|VND|kr|Ft|TL|lei`
	units = `(?i:dollars?|dollari[ae]?|dólar(?:es)?|d[oó]lar[oeó]\w*|euro[sa]?|pounds?|pfund|francs?|franken|yens?|yuan|rupees?|cents?|pence|pesos?|z[lł]ot(?:ys?|y|ych|e)|crowns?|kronor|kroner|kronen|` +
		`koruna?|kruunua|reais|lir[ae]|forint|roubles?|rubles?|rubel|рубл(?:ь|я|ей|и)|руб|доллар(?:а|ов|ы)?|евро|гривен|грн|دولار(?:ات|ا)?|يورو|ريال|درهم|دينار|جنيه|ليرة|` +
		`रुपये|रुपए|रुपया|रुपयों|डॉलर|यूरो|টাকা|ரூபாய்|đồng|đô la|vnđ)`
	// What is written without a blank behind it.
	signless = `[美欧日港台加澳]?[元圆圓]|円|块钱|塊錢|人民币|人民幣|원(?:을|이|은|의|에|으로|짜리|입니다|\b|[^\p{Hangul}\d]|$)|달러|유로|바트|บาท`
	digit    = `(\d{1,3}(?:[ \x{a0}\x{202f}]\d{3})+(?:[.,]\d+)?\b|\d(?:[\d.,']*\d)?)`
	times    = `([kKmM]\b|\s?(?:(?i:thousand|million(?:s|en)?|billion|mln|mio|mrd|tsd|tausend|milliards?|milliarden|lakh|crore)\b|bn\b|тыс\.?|млн|[万萬億亿만억]))?`
	ends     = `(?:[^\p{L}\p{M}\d_]|$)`
)

// money finds sums: a number beside a currency. The odd groups are the number, the even ones what it is times.
var money = regexp.MustCompile(`(?:` + signs + `|\b(?:` + codes + `))\s?` + digit + times +
	`|` + digit + times + `\s?(?:` + signs + `|(?:` + codes + `|` + units + `)` + ends + `)` +
	`|` + digit + times + `\s?(?:` + signless + `)`)

// paid finds numbers behind a word that makes them a sum, and those whose digits stand in groups; group 1 or 3 is the number, 2 what it is times.
var paid = regexp.MustCompile(`(?i:\b(?:paid|pays?|paying|costs?|costing|prices?|priced|owes?|owed|worth|charged|charges|salary|rent|fee|bezahlt|bezahlte|zahlt|zahlte|kostet|kostete|preis|paie|prix|cuesta|precio|` +
	`pagado|pagato|pagou|costa|prezzo|custa|betaald|kost|prijs|koster|kostar|betalte|betalade|maksoi|maksaa|kosztuje|fizetett)|payé|coûte|coûté|pagó|costó|preço|заплатил[аи]?|сто(?:ит|ил[аои]?)|цена|支付了?|付了|` +
	`价格为?是?|價格為?是?)(?:(?:,|:)? ?(?i:of|is|was|at|about|around|only|over|nearly|almost|von|nur|de|di|около)?){0,2}` + `[ :]?` + digit + times +
	`|(\d{1,3}(?:(?:[,'’\x{a0}\x{202f}]\d{2,3})*[,'’\x{a0}\x{202f}]\d{3}(?:\.\d+)?|(?:\.\d{3})+,\d\d|(?:\.\d{3}){2,}))`)

// noun finds what is counted, or measured, behind a number.
var noun = regexp.MustCompile(`^(?:[\w%°+*-]|\.\d|[ \x{a0}]?[\p{L}\p{M}%°])`)

// joins finds the words that may stand behind a sum and are nothing that it counts.
var joins = regexp.MustCompile(`^ (?i:for|to|per|each|on|in|and|but|or|by|from|with|as|at|a|an|für|pro|und|im|am|pour|par|et|por|para|y|e|al|per|voor|en|för|for|og|och|za|i|за|в|и|на)(?:[^\p{L}\p{M}\d_]|$)`)

// counted reports whether a number counts or measures what stands behind it.
func counted(behind string) bool { return noun.MatchString(behind) && !joins.MatchString(behind) }

// alone reports whether a number may begin behind a text.
func alone(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return !isLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_.,-/:#'’", r)
}

// sumsIn yields the numbers of sums with their place in a text, and what they are times. grouped says that nothing but the groups of its digits makes a number one.
func sumsIn(text string, yield func(from, to int, n, times string, grouped bool)) {
	group := func(m []int, n int) string {
		if m[2*n] < 0 {
			return ""
		}
		return text[m[2*n]:m[2*n+1]]
	}
	for _, m := range money.FindAllStringSubmatchIndex(text, -1) {
		at := 1
		for m[2*at] < 0 {
			at += 2
		}
		from, n, times := m[2*at], group(m, at), group(m, at+1)
		if i := blank.FindStringIndex(n); i != nil && !alone(text[:from]) { // "in 2031 500 euros"
			from, n = from+i[1], n[i[1]:]
		}
		yield(from, m[2*at+1]+len(times), n, times, false)
	}
	for _, m := range paid.FindAllStringSubmatchIndex(text, -1) {
		at, times, grouped := 1, group(m, 2), m[2] < 0
		if grouped {
			at = 3
		}
		from, to := m[2*at], m[2*at+1]+len(times)
		// "2" and "12,000 lines" are what somebody counted.
		if to-from > 1 && !counted(text[to:]) && (!grouped || alone(text[:from])) {
			yield(from, to, group(m, at), times, grouped)
		}
	}
}

// numbers finds numbers, and what they are times.
var numbers = regexp.MustCompile(digit + times)

// phone finds telephone numbers: those of all countries, and the form of North America.
var phone = regexp.MustCompile(`\+\d[\d ()/.-]{6,18}\d\b|\(\d{3}\) ?\d{3}[ -]\d{4}\b`)

// zeros says how many zeros a word puts behind a number, by how it begins.
var zeros = []struct {
	word string
	n    int
}{
	{"k", 3}, {"thousand", 3}, {"tsd", 3}, {"tausend", 3}, {"milliard", 9}, {"mrd", 9}, {"m", 6}, {"b", 9}, {"lakh", 5}, {"crore", 7},
	{"тыс", 3}, {"млн", 6},
	{"万", 4}, {"萬", 4}, {"億", 8}, {"亿", 8}, {"만", 4}, {"억", 8},
}

// amount is a number as bare has it, times what stands behind it.
func amount(n, times string) string {
	times = strings.ToLower(strings.TrimSpace(times))
	for _, z := range zeros {
		if times == "" || !strings.HasPrefix(times, z.word) {
			continue
		}
		whole, part := n, ""
		if i := strings.LastIndexAny(n, ".,'"); i > 0 && len(n)-i != 4 { // three digits are a group
			whole, part = n[:i], strings.TrimRight(n[i+1:], "0")
		}
		part += strings.Repeat("0", max(z.n-len(part), 0))
		return strings.TrimLeft(digitsOf(whole)+part, "0")
	}
	return bare(n)
}

// bare is a number without what separates its digits, so that 1,200.00 and 1200 are the same, and 45.50 and 45.5.
func bare(n string) string {
	if i := strings.LastIndexAny(n, ".,"); i > 0 && len(n)-i == 3 { // cents
		n = n[:i] + strings.TrimRight(n[i:], "0")
	}
	return digitsOf(n)
}

func digitsOf(text string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text)
}
