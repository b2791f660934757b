package report_test

import (
	"fmt"
	"io"

	"github.com/contextengine/contextengine/experiment/report"
)

func Example() {
	r := report.Report{
		Title: "Two arms",
		Sections: []report.Section{
			report.Verdicts{Title: "Result", Items: []report.Verdict{{Text: "B better by 3.1 points, 95 % 1.2 to 5.0.", Tone: report.Better}}},
			report.Table{
				Title:   "Figures",
				Columns: []report.Column{{Name: "Arm"}, {Name: "Recall", Unit: "%"}},
				Rows: [][]report.Cell{
					{report.Text("A"), report.Estimate(report.Value{Value: 77.2, Low: 75.9, High: 78.4}, 1)},
					{report.Text("B"), report.Estimate(report.Value{Value: 80.3, Low: 79.1, High: 81.6}, 1)},
				},
			},
		},
	}
	n, err := r.WriteTo(io.Discard) // a file, opened in any browser
	fmt.Println(n > 0, err)
	// Output: true <nil>
}
