// Package report writes what an experiment found as one HTML file that a person opens from disk: charts, sortable tables, verdicts, the
// window of every model call, and the same turn under two arms side by side.
//
// The file needs nothing else. Charts are drawn as SVG when it is written, style and script are in it, and its content security policy
// forbids every request. It follows the reader's light or dark setting, fits a phone, can be used with the keyboard alone and prints.
//
// A report is a view model: it knows nothing of how figures were measured. Fill the sections and write:
//
//	r := report.Report{Title: "Two arms", Sections: []report.Section{
//		report.Verdicts{Title: "Result", Items: []report.Verdict{{Text: "B better by 3.1 points, 95 % 1.2 to 5.0", Tone: report.Better}}},
//	}}
//	_, err := r.WriteTo(file)
//
// [WindowFrom] and [CompareTurns] make the last two kinds of sections from what an engine answered.
//
// Every text is escaped. Excerpts of conversations are cut, control characters are made visible, and the report says what it left out.
package report
