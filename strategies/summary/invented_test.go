package summary_test

import (
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/compacting/compactingtest"
)

// TestInventedFactsAreMarkedInAllLanguages: sums with and without a currency, houses, and dates whose month is a word, in the languages that lexical knows.
func TestInventedFactsAreMarkedInAllLanguages(t *testing.T) {
	t.Parallel()
	source := "The flour was 12,000 and the rent 1350 in all, the car 7 500 euros, the fair is on 3 May 2031, the next in March. I live at 12 Baker Street, Ann in Lindenstr. 5, Li in 中山路8号, Jean 5, rue de la Paix. " +
		"The trip was ٤٠٠ دينار. Version 1.234.567 has 100,200,300 and 17 files. The visa ends 07/2033. Le 9 juin 2032 il y avait 640 places."
	checkSummaries(t, source, map[string]string{
		// Sums.
		"paid 12,000 for it":               "paid 12,000 for it",
		"paid 12000 for it":                "paid 12000 for it",
		"paid 12.000, or 12 000, for it":   "paid 12.000, or 12 000, for it",
		"cost about 12k.":                  "cost about 12k.",
		"paid 13,000 for it":               "paid [unverified] for it",
		"paid 120 for it":                  "paid [unverified] for it",
		"they owe her 1350, not 1360.":     "they owe her 1350, not 1360.",
		"it cost 1360.":                    "it cost [unverified].",
		"a total of 13,500.":               "a total of [unverified].",
		"13,500 lines in 14.500 steps":     "13,500 lines in 14.500 steps",
		"costs 20 minutes, paid 3 visits":  "costs 20 minutes, paid 3 visits",
		"rows 100,200 and 1.234.567":       "rows 100,200 and 1.234.567",
		"a car for 7500 euros, 7 500 €":    "a car for 7500 euros, 7 500 €",
		"a car for 8 500 euros":            "a car for [unverified] euros",
		"客户支付了731元购买烤箱":                    "客户支付了[unverified]元购买烤箱",
		"客户支付了400元":                        "客户支付了400元",
		"5000円、3万日元、50000원을":               "[unverified]円、[unverified]日元、[unverified]원을",
		"300 рублей, 5 тыс. руб., 40 евро": "[unverified] рублей, [unverified] руб., [unverified] евро",
		"400 рублей":                       "400 рублей",
		"दाम ७३१ रुपये, ٤٠٠ دينار, ٧٣١ دينار":    "दाम [unverified] रुपये, ٤٠٠ دينار, [unverified] دينار",
		"400 dinars, $400, 900 złotych, 600 lei": "400 dinars, $400, [unverified] złotych, [unverified] lei",
		"цена 450, кот стоит 650.":               "цена [unverified], кот стоит [unverified].",
		"sie hat 3 Bücher und zahlt 250 im Jahr": "sie hat 3 Bücher und zahlt [unverified] im Jahr",
		// Houses.
		"at 77 Elm Street in Berlin":                "at [unverified] in Berlin",
		"at 12 Baker St. or Lindenstraße 5":         "at 12 Baker St. or Lindenstraße 5",
		"at 14 Baker Street":                        "at [unverified]",
		"an der Hauptstraße 12, Berliner Allee 9":   "an der [unverified], [unverified]",
		"3 Google Drive files, 2 Wall Street banks": "3 Google Drive files, 2 Wall Street banks",
		"5 rue de la Paix, 7, avenue Foch":          "5 rue de la Paix, [unverified]",
		"en Calle Mayor 14, in Via Roma 21":         "en [unverified], in [unverified]",
		"ул. Ленина, д. 15":                         "[unverified]",
		"住在中山路8号, 不在人民路9号":                          "住在中山路8号, 不在[unverified]",
		"Kossuth utca 19, Atatürk Caddesi No: 4":    "[unverified], [unverified]",
		// Dates.
		"in May 2031, le 3 mai 2031":                      "in May 2031, le 3 mai 2031",
		"in May 2032":                                     "in [unverified]",
		"in July 2031, June 2031":                         "in [unverified], [unverified]",
		"in May 2026, April 2026, March 2027":             "in May 2026, April 2026, March 2027",
		"in July 2033, im Juni 2032":                      "in July 2033, im Juni 2032",
		"3 мая 2031 года, в мае 2031":                     "3 мая 2031 года, в мае 2031",
		"4 мая 2031 года, в июне 2031":                    "[unverified] года, в [unverified]",
		"2031年5月3日, 2031年5月, 5月3日":                        "2031年5月3日, 2031年5月, 5月3日",
		"2031年5月4日, 2031年7月, 7月3日":                        "[unverified], [unverified], [unverified]",
		"2031년 5월 4일, 2031년 5월 3일":                        "[unverified], 2031년 5월 3일",
		"ngày 3 tháng 5 năm 2031, tháng 8 năm 2031":       "ngày 3 tháng 5 năm 2031, [unverified]",
		"2031. május 3., 2031. május 4., 2031 júliusában": "2031. május 3., [unverified]., [unverified]",
		"3. toukokuuta 2031, heinäkuussa 2031":            "3. toukokuuta 2031, [unverified]",
		"3 maja 2031, w lipcu 2031, 4 mai 2031":           "3 maja 2031, w [unverified], [unverified]",
		"3 Mayıs 2031, Temmuz 2031, 3 Temmuz":             "3 Mayıs 2031, [unverified], [unverified]",
		"3 مايو 2031, يوليو 2031, ٣ يوليو":                "3 مايو 2031, [unverified], [unverified]",
		"3 मई 2031, जुलाई 2031":                           "3 मई 2031, [unverified]",
		"den 3. maj 2031, i juli 2031":                    "den 3. maj 2031, i [unverified]",
		"mayo de 2031, julio de 2031":                     "mayo de 2031, [unverified]",
		// Words that begin like months are none, nor are small numbers claims.
		"Mark 5 tasks, Decision 4, Novel 2, Octopus 8": "Mark 5 tasks, Decision 4, Novel 2, Octopus 8",
		"you may 5 times march 7 miles":                "you may 5 times march 7 miles",
		"3 files, 24 tests, 1. first 2. second":        "3 files, 24 tests, 1. first 2. second",
	})
}

// checkSummaries lets a model say each of said of a source, which then must stand in the summary as want.
func checkSummaries(t *testing.T, source string, rows map[string]string) {
	t.Helper()
	for said, want := range rows {
		es := compactingtest.Conversation(12)
		es[0].Message = message.New(message.User, source)
		es[0].Time = time.Date(2026, 4, 20, 12, 0, 0, 0, time.UTC)
		s := compactingtest.New(es, 900, 5)
		cfg := config()
		cfg.ChunkTokens = 10000
		patch := mustCompact(t, newCompactor(t, cfg, says("It was said: "+said+" # Several requests failed because retryBudget was 0, and each of them was put right by raising it.")), s)
		if text := patch.Replace[0].Text; !strings.Contains(text, "It was said: "+want+" # Several") {
			t.Errorf("%q became\n%s\nwant %q", said, strings.SplitN(text, "# Several", 2)[0], want)
		}
	}
}

// TestSaidInAnotherFormIsNotInvented: what was said with its time of day, or with zeros behind it, is the same without.
func TestSaidInAnotherFormIsNotInvented(t *testing.T) {
	checkSummaries(t, "It failed at 2031-03-08T14:33:02Z, and the refund was $45.50.", map[string]string{
		"on 2031-03-08, $45.5 came back":     "on 2031-03-08, $45.5 came back",
		"on March 8, 2031, 45.50 dollars":    "on March 8, 2031, 45.50 dollars",
		"on 2031-03-09, $46.5 came back":     "on [unverified], $[unverified] came back",
		"on 8 March 2031, $45.05 or $450.50": "on 8 March 2031, $[unverified] or $[unverified]",
	})
}
