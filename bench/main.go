// Command bench measures the framework beside other libraries and beside the least that the machine needs for the same work, in one run on one
// machine, and prints ratios. It is a module of its own, so that what it compares with never becomes a dependency of the framework.
//
//	go run .                     # sizes up to 100,000: some minutes
//	go run . -max 1000000        # a million, too: half an hour and 12 GiB
//	go run . -only vectors       # one part: tokens, lexical, vectors, ingest, assemble, cost
//
// Standard output first has lines that benchstat reads, one for each measurement, and then a table in Markdown. Times are processor time (user
// and system, garbage collection included), which a busy machine changes less than the clock's; "wall" is the clock's. Latencies of
// assemble are the clock's.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/internal/datadir"
)

// options are the flags.
type options struct {
	largest int
	vectors int
	only    string
	data    string
	dir     string
	profile string
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	var o options
	flag.IntVar(&o.largest, "max", 100_000, "largest number of entries: sizes are 1000, 10000 and so on up to it")
	flag.IntVar(&o.vectors, "vectors", 10_000, "largest number of vectors of 1024 dimensions, 10000 or 100000; the larger takes 1.5 GiB")
	flag.StringVar(&o.only, "only", "", "parts to run, with commas between them (default all): "+strings.Join(names(), ", "))
	flag.StringVar(&o.data, "data", datadir.Dir(os.Getenv), "folder of the conversations that recall is measured on; without it recall is left out")
	flag.StringVar(&o.profile, "cpuprofile", "", "file for a processor profile of the run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		log.Fatal(err)
	}
}

// part is one group of measurements.
type part struct {
	name string
	run  func(ctx context.Context, b *board, o options) error
}

func parts() []part {
	return []part{{"tokens", tokens}, {"lexical", lexicalPart}, {"vectors", vectorPart}, {"ingest", ingest}, {"assemble", assemble}, {"cost", cost}, {"startup", startup}}
}

func names() []string {
	var out []string
	for _, p := range parts() {
		out = append(out, p.name)
	}
	return out
}

func run(ctx context.Context, o options, out, progress io.Writer) error {
	dir, err := os.MkdirTemp("", "contextengine-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	o.dir = dir
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var wanted []string
	if o.only != "" {
		wanted = strings.Split(o.only, ",")
	}
	for _, w := range wanted {
		if !slices.Contains(names(), w) {
			return fmt.Errorf("-only: unknown part %q (known: %s)", w, strings.Join(names(), ", "))
		}
	}
	fmt.Fprintf(out, "goos: %s\ngoarch: %s\npkg: github.com/contextengine/contextengine/bench\n", runtime.GOOS, runtime.GOARCH)
	var table bytes.Buffer
	fmt.Fprintf(&table, "# Measurements\n\n%s %s/%s, %d processors, load %s when it began.\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), load())
	for _, p := range parts() {
		if len(wanted) > 0 && !slices.Contains(wanted, p.name) {
			continue
		}
		b := &board{out: out, progress: progress, load: load()}
		fmt.Fprintf(progress, "%s (load %s)\n", p.name, b.load)
		if err := p.run(ctx, b, o); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		b.markdown(&table, p.name)
		debug.FreeOSMemory()
	}
	_, err = fmt.Fprintf(out, "\n%s", table.String())
	return err
}

// load is the machine's load average, where the system tells.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
