package cli_test

import (
	"crypto/rand"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

// fullDisk is a configuration whose store is used by somebody, on a disk that has no room for what is in its log.
func fullDisk(t *testing.T) (config, path string) {
	t.Helper()
	dir := needs.Disk(t, "size=2m")
	path = filepath.Join(dir, "store.db")
	config = write(t, "c.yaml", "store: {type: sqlite, path: "+path+"}\narms: [{name: a}, {name: b}]\n")
	reg := builtin.New()
	cfg, err := reg.Load(registry.File(config))
	if err != nil {
		t.Fatal(err)
	}
	instance, err := reg.Build(t.Context(), cfg, registry.BuildOptions{Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = instance.Close(t.Context()) })
	id := core.SessionID{Agent: "ann", Session: "one"}
	e, _, err := instance.Engine(t.Context(), id.Agent, id.Session)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		// What says the same again and again is shortened, and the pages that are there would do.
		m := message.Message{Role: message.User, Parts: []message.Part{{Kind: message.Text, Text: "zebra " + noise(6000)}}}
		if _, err := e.Ingest(t.Context(), core.IngestRequest{Session: id, Message: m}); err != nil {
			t.Fatal(err)
		}
	}
	needs.FillDisk(t, dir)
	return config, path
}

// noise is text that nothing shortens.
func noise(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(rand.Text())
	}
	return b.String()
}

// TestReadingOnAFullDisk: who only reads has read everything, and needs no room; that the store could not tidy up is a warning. Who writes is told by the exit code.
func TestReadingOnAFullDisk(t *testing.T) {
	config, path := fullDisk(t)
	elsewhere := t.TempDir()
	for _, args := range []string{
		"stats", "agents", "sessions --agent ann", "inspect --agent ann", "inspect --agent ann --session one", "inspect --agent ann --session one --search zebra",
		"verify", "export", "export -o " + elsewhere + "/e.jsonl", "backup " + elsewhere + "/b.db", "forget --agent ann --receipts", "retain --max-age 10000d --dry-run",
		"import --dry-run " + chat(t, "two", 2), "experiment status",
	} {
		got := run(t, builtin.New(), "", append(strings.Fields(args), "--config", config)...)
		if got.code != cli.ExitOK || !strings.Contains(got.errors, "warning: ") || !strings.Contains(got.errors, "the disk is full") || strings.Contains(got.errors, "error:") {
			t.Errorf("%s: exit code %d, want 0 and a warning:\n%s", args, got.code, got.errors)
		}
	}
	run(t, builtin.New(), "", "doctor", "--config", config).want(t, cli.ExitOK, "note  closing ", "the disk is full")
	got := run(t, builtin.New(), "", "openbrain", "backup", "--path", path, "--to", elsewhere+"/c.db")
	got.want(t, cli.ExitOK, "wrote ", "warning: ", "the disk is full")
	run(t, builtin.New(), "", "import", "--config", config, chat(t, "two", 2)).want(t, cli.ExitFailure, "error: ")
}
