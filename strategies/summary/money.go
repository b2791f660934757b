package summary

import (
	"regexp"
	"strings"
)

// What stands beside a number that is a sum, and what a number may be times.
const (
	signs = `R\$|[$€£¥₹₩₽₺₪₫₱₴₦฿]|zł|Kč`
	// In lower case the others are words too.
	codes = `(?i:usd|eur|gbp|chf|jpy|cny|inr|cad|aud)|NZD|PLN|CZK|HUF|RON|SEK|NOK|DKK|BRL|MXN|RUB|TRY|ILS|KRW|SGD|HKD|THB|ZAR|kr`
	units = `(?i:dollars?|euros?|pounds?|francs?|yen|yuan|rupees?|cents?|pence|pesos?|zlotys?|crowns?|kronor|kroner|roubles?|rubles?)`
	digit = `(\d(?:[\d.,']*\d)?)`
	times = `([kKmM]\b|\s?(?:(?i:thousand|million(?:s|en)?|billion|mln|mio|mrd|tsd|tausend|milliards?|milliarden|lakh|crore)\b|bn\b|[万萬億亿]))?`
)

// money finds sums: a number beside a currency. Groups 1 and 3 are the number, 2 and 4 what it is times.
var money = regexp.MustCompile(`(?:` + signs + `|\b(?:` + codes + `))\s?` + digit + times + `|` + digit + times + `\s?(?:` + signs + `|(?:` + codes + `|` + units + `)\b)`)

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
	{"万", 4}, {"萬", 4}, {"億", 8}, {"亿", 8},
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

// bare is a number without what separates its digits, so that 1,200.00 and 1200 are the same.
func bare(n string) string {
	if i := strings.LastIndexAny(n, ".,"); i > 0 && len(n)-i == 3 { // cents
		if n[i+1:] == "00" {
			n = n[:i]
		}
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
