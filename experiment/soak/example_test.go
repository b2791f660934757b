package soak_test

import (
	"os"
	"time"

	"github.com/contextengine/contextengine/experiment/soak"
)

// A report is a table for people, and lines of JSON for programs. Run makes one.
func ExampleReport_WriteTable() {
	report := soak.Report{
		Sessions: 1000, Agents: 50, Time: time.Minute, Past: 9000, Filling: 2.5,
		Before:  soak.Sample{Heap: 8 << 20, Resident: 30 << 20, Goroutines: 9, Handles: 12},
		Samples: []soak.Sample{{At: 60, Heap: 41 << 20, Resident: 90 << 20, Goroutines: 1009, Handles: 14, Turns: 8012, AssembleP50: 0.4, AssembleP99: 2.1}},
		After:   soak.Sample{Heap: 8 << 20, Resident: 80 << 20, Goroutines: 9, Handles: 12},
	}
	if err := report.WriteTable(os.Stdout, false); err != nil {
		panic(err)
	}
	// Output:
	// 1000 sessions of 50 agents, 1m0s; 9000 messages before the first turn, stored in 2.5 s
	// seconds  heap   RSS  routines  files  turns  comp  errors  asm/99  sto/99
	//  before   8.0  30.0         9     12      0     0       0     0.0     0.0
	//    60.0  41.0  90.0      1009     14   8012     0       0     2.1     0.0
	//   after   8.0  80.0         9     12      0     0       0     0.0     0.0
	// heap and RSS in MiB; asm, sto, era: ms to assemble, store, erase (percentiles)
	// memory is flat, goroutines and files do not grow, latency is stable
}
