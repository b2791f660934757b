package asking_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/asking"
)

// wednesday is a Wednesday in the afternoon.
var wednesday = time.Date(2026, time.May, 6, 15, 4, 0, 0, time.UTC)

func TestDates(t *testing.T) {
	t.Parallel()
	week := "2026-05-03 2026-05-02 2026-05-01 2026-04-30 2026-04-29 2026-04-28 2026-04-27"
	for text, want := range map[string]string{
		"what did we decide last Tuesday?":                 "2026-05-05",
		"what did we decide last Wednesday?":               "2026-04-29",
		"who called on Wednesday":                          "2026-05-06",
		"Who called on Thursday?":                          "2026-04-30",
		"this Tuesday's meeting":                           "2026-05-05",
		"this past Thursday":                               "2026-04-30",
		"what is planned this Friday":                      "",
		"Yesterday’s build, why did it fail":               "2026-05-05",
		"the day before yesterday":                         "2026-05-04",
		"what I said this morning":                         "2026-05-06",
		"what we ate last night":                           "2026-05-05",
		"(today)":                                          "2026-05-06",
		"3 days ago":                                       "2026-05-03",
		"a couple of days ago":                             "2026-05-05 2026-05-04 2026-05-03",
		"twenty hours and then 5 hours ago":                "2026-05-06",
		"sixteen or 16 hours ago":                          "2026-05-05",
		"what broke two weeks ago":                         "2026-04-25 2026-04-24 2026-04-23 2026-04-22 2026-04-21 2026-04-20 2026-04-19",
		"five months ago":                                  "2025-12",
		"a few weeks ago, a few years ago":                 "",
		"a year ago":                                       "2025",
		"the budget of last week":                          week,
		"on Tuesday last week":                             "2026-04-28",
		"last week on Sunday":                              "2026-05-03",
		"Monday of last week":                              "2026-04-27",
		"this week":                                        "2026-05-06 2026-05-05 2026-05-04",
		"over the past three days":                         "2026-05-06 2026-05-05 2026-05-04 2026-05-03",
		"the last 2 months":                                "2026-05 2026-04 2026-03",
		"last weekend":                                     "2026-05-03 2026-05-02",
		"this weekend":                                     "",
		"last month":                                       "2026-04",
		"what did we spend this month":                     "2026-05",
		"last year":                                        "2025",
		"where were we in May?":                            "2026-05",
		"where were we in late june?":                      "2025-06",
		"last May":                                         "2025-05",
		"in Sept. we moved":                                "2025-09",
		"on 3 May":                                         "2026-05-03",
		"the 7th of May":                                   "2025-05-07",
		"May 3rd":                                          "2026-05-03",
		"on may 3":                                         "2026-05-03",
		"on 29 February":                                   "",
		"yesterday, I mean yesterday":                      "2026-05-05",
		"2026-05-05, that is yesterday":                    "",
		"on 3 May 2026":                                    "",
		"May 3, 2026":                                      "",
		"in May 2023":                                      "",
		"in May of 2023":                                   "",
		"between August 11 and August 15 2023":             "",
		"2026-05-03":                                       "",
		"before last Tuesday":                              "",
		"the last week of May":                             "",
		"last weekend before April 10":                     "",
		"next week, next Tuesday, tomorrow":                "",
		"we may 3 times march 4 miles":                     "",
		"at last. Tuesday comes":                           "",
		"the last week_number of last_week":                "",
		"on Tuesdays, in minutes, last of all, past it":    "",
		"999999999999999999999 days ago, last 99999 weeks": "",
		"what is the capital of France?":                   "",
		"":                                                 "",
	} {
		if got := strings.Join(asking.Dates(text, wednesday), " "); got != want {
			t.Errorf("Dates(%q) = %q, want %q", text, got, want)
		}
	}
	if got := asking.Dates("yesterday", time.Time{}); got != nil {
		t.Errorf("without a moment: %q", got)
	}
	if got := asking.Dates("last month", time.Date(2026, time.March, 31, 12, 0, 0, 0, time.UTC)); !cmp.Equal(got, []string{"2026-02"}) {
		t.Errorf("last month on 31 March: %q", got)
	}
}

// TestDatesElsewhere: a day of the asker's zone covers one or two of the dates that entries carry.
func TestDatesElsewhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hours, at  int
		text, want string
	}{
		{-8, 18, "yesterday", "2026-05-04 2026-05-05"}, // the evening of the 4th there is the 5th in UTC
		{2, 9, "yesterday", "2026-05-04"},
		{8, 9, "yesterday", "2026-05-04"},
		{12, 1, "today", "2026-05-04"},
		{-8, 18, "this morning", "2026-05-05 2026-05-06"},
	} {
		now := time.Date(2026, time.May, 5, c.at, 0, 0, 0, time.FixedZone("there", c.hours*3600))
		if got := strings.Join(asking.Dates(c.text, now), " "); got != c.want {
			t.Errorf("%q at %v: %q, want %q", c.text, now, got, c.want)
		}
	}
}

// TestDatesAreFew: a pasted text full of dates does not drown what is asked.
func TestDatesAreFew(t *testing.T) {
	t.Parallel()
	got := asking.Dates(strings.Repeat("last week this month in June two weeks ago last year on 3 March 9 days ago ", 50), wednesday)
	seen := map[string]bool{}
	for _, d := range got {
		seen[d] = true
	}
	if len(got) != 16 || len(seen) != 16 {
		t.Errorf("%d dates, %d different: %q", len(got), len(seen), got)
	}
}

func TestTextWithDates(t *testing.T) {
	t.Parallel()
	limits := asking.Limits{PromptChars: 200, ShortPrompt: 24, ContextChars: 100}
	ask := func(prompt string) string {
		return asking.Text(core.Query{Prompt: prompt, Now: wednesday}, limits)
	}
	for prompt, want := range map[string]string{
		"what did we decide last Tuesday?":            "what did we decide last Tuesday?\n2026-05-05 2026-05",
		"did they fix it about 9 days ago?":           "did they fix it about 9 days ago?\n2026-04-27 2026-04",
		"what did we learn in April, and last month?": "what did we learn in April, and last month?\n2026-04",
		"all of the past 6 days, please":              "all of the past 6 days, please\n2026-05-06 2026-05-05 2026-05-04 2026-05-03 2026-05-02 2026-05-01 2026-04-30 2026-05 2026-04",
		"what did we decide about it all?":            "what did we decide about it all?",
		"":                                            "",
	} {
		if got := ask(prompt); got != want {
			t.Errorf("Text(%q) = %q, want %q", prompt, got, want)
		}
	}
}

func FuzzDates(f *testing.F) {
	f.Add("last Tuesday, in May. a couple of weeks ago; on the 3rd of March", int64(1_778_000_000))
	f.Add("’s \xff ( . on last past of 31 february", int64(-1))
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		now := time.Unix(seconds%(1<<36), 0).UTC()
		for i, d := range asking.Dates(text, now) {
			if i >= 16 || strings.ContainsAny(d, " \n") || strings.Contains(text, d) {
				t.Errorf("%q: date %d is %q", text, i, d)
			}
		}
	})
}
