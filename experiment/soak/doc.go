// Package soak lives many sessions at once over an engine, for a set time, and says whether anything grows that should not.
//
//	report, err := soak.Run(ctx, soak.Options{Open: open, Sessions: 10_000, Time: 10 * time.Minute})
//	...
//	for _, f := range report.Findings { ... } // none: memory is flat, nothing leaks, latency is stable
//
// Every session has a goroutine that thinks, says something, has the prompt assembled, answers, now and then calls a tool, and compacts when
// that is due. Sessions live for a bounded number of turns; then they are left and erased, and new ones take their places. Some are bootstrapped
// anew on the way, as after a restart of their host. At the start each session is given a past of random length, so that the number of
// messages stored stays about the same from the first turn on, and whatever grows is a leak.
//
// What is measured is the whole process. A program that does other things at the same time measures those, too.
package soak
