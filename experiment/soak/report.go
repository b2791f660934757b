package soak

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Sample is the state of the process at one moment, and what happened since the sample before.
type Sample struct {
	// At is the time since the sessions had their past, in seconds.
	At float64 `json:"at"`
	// Heap is what is in use after a garbage collection, Resident what the process takes of the machine's memory, in bytes.
	// Resident and Handles are -1 where the system does not tell.
	Heap       int64 `json:"heap"`
	Resident   int64 `json:"resident"`
	Goroutines int   `json:"goroutines"`
	Handles    int   `json:"handles"`
	// Turns, Left (sessions that ended, and were replaced), Restarts, Compactions and Errors count since the sample before.
	Turns       int64 `json:"turns"`
	Left        int64 `json:"left"`
	Restarts    int64 `json:"restarts"`
	Compactions int64 `json:"compactions"`
	Errors      int64 `json:"errors"`
	// Latencies in milliseconds: of Assemble, of storing an answer, and of erasing a session.
	AssembleP50 float64 `json:"assembleP50"`
	AssembleP99 float64 `json:"assembleP99"`
	StoreP50    float64 `json:"storeP50"`
	StoreP99    float64 `json:"storeP99"`
	EraseP99    float64 `json:"eraseP99"`

	assemble, store *counts
}

// Report is what a soak measured.
type Report struct {
	Sessions int           `json:"sessions"`
	Agents   int           `json:"agents"`
	Time     time.Duration `json:"time"`
	// Past is how many messages the sessions had in the beginning, Filling how long storing them took, in seconds.
	Past    int64   `json:"past"`
	Filling float64 `json:"filling"`
	// Before is the process before the engine was opened, After the same when it was closed.
	Before  Sample   `json:"before"`
	After   Sample   `json:"after"`
	Samples []Sample `json:"samples"`
	// Errors are the first few errors of the engine.
	Errors []string `json:"errors,omitempty"`
	// Findings say what is wrong; none when all is well.
	Findings []Finding `json:"findings"`
}

// WriteTable prints the samples as a table and the findings below it.
func (r Report) WriteTable(w io.Writer) error {
	p := &printer{w: w}
	p.line("%d sessions of %d agents, %v; %d messages before the first turn, stored in %.1f s", r.Sessions, r.Agents, r.Time, r.Past, r.Filling)
	p.line("%8s %9s %9s %6s %6s %8s %6s %5s %5s %6s  %8s %8s  %8s %8s  %8s", "seconds", "heap MiB", "RSS MiB", "gorout", "files",
		"turns", "left", "rest", "comp", "errors", "asm p50", "asm p99", "sto p50", "sto p99", "era p99")
	row := func(label string, s Sample) {
		p.line("%8s %9.1f %9.1f %6d %6d %8d %6d %5d %5d %6d  %8.2f %8.2f  %8.2f %8.2f  %8.2f", label, mib(s.Heap), mib(s.Resident), s.Goroutines,
			s.Handles, s.Turns, s.Left, s.Restarts, s.Compactions, s.Errors, s.AssembleP50, s.AssembleP99, s.StoreP50, s.StoreP99, s.EraseP99)
	}
	row("before", r.Before)
	for _, s := range r.Samples {
		row(fmt.Sprintf("%.1f", s.At), s)
	}
	row("after", r.After)
	for _, e := range r.Errors {
		p.line("error: %s", e)
	}
	for _, f := range r.Findings {
		p.line("found: %s: %s", f.What, f.Text)
	}
	if len(r.Findings) == 0 {
		p.line("memory is flat, goroutines and files do not grow, latency is stable")
	}
	return p.err
}

// WriteJSON prints each sample as a line of JSON, and the rest of the report as the last line.
func (r Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	for _, s := range r.Samples {
		if err := e.Encode(s); err != nil {
			return fmt.Errorf("soak: report: %w", err)
		}
	}
	r.Samples = nil
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("soak: report: %w", err)
	}
	return nil
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func mib(n int64) float64 {
	if n < 0 {
		return -1
	}
	return float64(n) / (1 << 20)
}
