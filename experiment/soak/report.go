package soak

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/internal/columns"
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

// WriteTable prints the samples as a table and the findings below it. Without wide it keeps to 80 characters, and leaves out some of the columns.
func (r Report) WriteTable(w io.Writer, wide bool) error {
	out := bufio.NewWriter(w)
	line := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	line("%d sessions of %d agents, %v; %d messages before the first turn, stored in %.1f s", r.Sessions, r.Agents, r.Time, r.Past, r.Filling)
	table := columns.Table{}
	for i, name := range strings.Fields("seconds heap RSS routines files turns left rest comp errors asm/50 asm/99 sto/50 sto/99 era/99") {
		table.Columns = append(table.Columns, columns.Column{Name: name, Wide: slices.Contains([]int{6, 7, 10, 12, 14}, i)})
	}
	row := func(label string, s Sample) {
		table.Add(label, tenth(mib(s.Heap)), tenth(mib(s.Resident)), fmt.Sprint(s.Goroutines), fmt.Sprint(s.Handles), fmt.Sprint(s.Turns), fmt.Sprint(s.Left), fmt.Sprint(s.Restarts),
			fmt.Sprint(s.Compactions), fmt.Sprint(s.Errors), tenth(s.AssembleP50), tenth(s.AssembleP99), tenth(s.StoreP50), tenth(s.StoreP99), tenth(s.EraseP99))
	}
	row("before", r.Before)
	for _, s := range r.Samples {
		row(fmt.Sprintf("%.1f", s.At), s)
	}
	row("after", r.After)
	width := columns.Fit
	if wide {
		width = columns.All
	}
	table.Print(out, width)
	line("heap and RSS in MiB; asm, sto, era: ms to assemble, store, erase (percentiles)")
	for _, e := range r.Errors {
		line("error: %s", e)
	}
	for _, f := range r.Findings {
		line("found: %s: %s", f.What, f.Text)
	}
	if len(r.Findings) == 0 {
		line("memory is flat, goroutines and files do not grow, latency is stable")
	}
	return out.Flush()
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

func tenth(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

func mib(n int64) float64 {
	if n < 0 {
		return -1
	}
	return float64(n) / (1 << 20)
}
