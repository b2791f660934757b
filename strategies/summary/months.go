package summary

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// monthNames are those of a year, one year behind the other, with / between the forms of one, in the languages that lexical knows. A name that ends with - takes endings.
var monthNames = strings.Fields(`
	januar/jänner februar märz april mai juni juli august september oktober november dezember
	janvier février mars avril mai juin juillet août septembre octobre novembre décembre
	enero febrero marzo abril mayo junio julio agosto septiembre/setiembre octubre noviembre diciembre
	gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
	janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
	januari februari maart april mei juni juli augustus september oktober november december
	januari februari mars april maj juni juli augusti september oktober november december
	januar februar marts april maj juni juli august september oktober november december
	januar februar mars april mai juni juli august september oktober november desember
	ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie
	tammikuu- helmikuu- maaliskuu- huhtikuu- toukokuu- kesäkuu- heinäkuu- elokuu- syyskuu- lokakuu- marraskuu- joulukuu-
	január- február- március- április- május- június- július- augusztus- szeptember- október- november- december-
	styczeń/stycznia/styczniu luty/lutego/lutym marzec/marca/marcu kwiecień/kwietnia/kwietniu maj/maja/maju czerwiec/czerwca/czerwcu
		lipiec/lipca/lipcu sierpień/sierpnia/sierpniu wrzesień/września/wrześniu październik/października/październiku listopad/listopada/listopadzie grudzień/grudnia/grudniu
	январь/января/январе февраль/февраля/феврале март/марта/марте апрель/апреля/апреле май/мая/мае июнь/июня/июне
		июль/июля/июле август/августа/августе сентябрь/сентября/сентябре октябрь/октября/октябре ноябрь/ноября/ноябре декабрь/декабря/декабре
	ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık
	يناير فبراير مارس أبريل/ابريل/إبريل مايو يونيو/يونيه يوليو/يوليه أغسطس/اغسطس سبتمبر أكتوبر/اكتوبر نوفمبر ديسمبر
	जनवरी फरवरी/फ़रवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर/सितम्बर अक्टूबर/अक्तूबर नवंबर/नवम्बर दिसंबर/दिसम्बर`)

// English months stand in front of the day too, as Hungarian ones, and begin with a capital: "may" and "march" are words.
var englishMonths = strings.Fields("january february march april may june july august september october november december")

// hungarian is where the Hungarian months begin in monthNames.
const hungarian = 11 * 12

// month is what a word says about one. first says that it may stand in front of its day, named that the word needs a capital.
type month struct {
	n            int
	first, named bool
}

var monthWords, monthStems = func() (words, stems map[string]month) {
	words, stems = make(map[string]month), make(map[string]month)
	for i, forms := range monthNames {
		m := month{n: 1 + i%12, first: i >= hungarian && i < hungarian+12}
		for form := range strings.SplitSeq(forms, "/") {
			if stem, ok := strings.CutSuffix(form, "-"); ok {
				stems[stem] = m
				continue
			}
			words[form] = m
		}
	}
	words["mart"] = month{n: 3, named: true} // "a data mart"
	for i, name := range englishMonths {
		_, foreign := words[name]
		words[name[:3]] = month{n: 1 + i, first: true, named: true}
		words[name] = month{n: 1 + i, first: true, named: !foreign}
	}
	words["sept"] = words["sep"]
	return words, stems
}()

// mostEnding bounds the ending of a month's name, in letters.
const mostEnding = 4

// monthOf returns the month that a word names, a zero one where it is none.
func monthOf(word string) month {
	low := strings.ToLower(word)
	if m, ok := monthWords[low]; ok {
		if r, _ := utf8.DecodeRuneInString(word); m.named && !unicode.IsUpper(r) {
			return month{}
		}
		return m
	}
	for range mostEnding + 1 {
		if m, ok := monthStems[low]; ok {
			return m
		}
		_, size := utf8.DecodeLastRuneInString(low)
		low = low[:len(low)-size]
	}
	return month{}
}
