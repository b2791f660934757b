package soak

import (
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
)

// process is what the process takes. Resident and handles are -1 where the system does not tell.
type process struct {
	heap, resident      int64 // bytes
	goroutines, handles int
}

// measure collects garbage first, twice, so that what finalizers and pools held counts as gone. The heap is what the collection found alive: what was
// allocated since does not count, which on a busy machine is a lot.
func measure() process {
	runtime.GC()
	runtime.GC()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	p := process{resident: resident(), goroutines: runtime.NumGoroutine(), handles: handles()}
	if live[0].Value.Kind() == metrics.KindUint64 {
		p.heap = int64(live[0].Value.Uint64())
	}
	return p
}

// resident reads the resident set of the process, on Linux.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			if kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64); err == nil {
				return kib << 10
			}
		}
	}
	return -1
}

// handles counts open files and sockets, on systems with such a folder.
func handles() int {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if list, err := os.ReadDir(dir); err == nil {
			return len(list)
		}
	}
	return -1
}
