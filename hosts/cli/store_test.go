package cli_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/retain"
	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

// keeping is a configuration over a file of its own, with its path.
func keeping(t *testing.T) (config, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	return write(t, "c.yaml", "store: {type: sqlite, path: "+path+"}\n"), path
}

// chat is a file of n messages of a session, told apart by a name.
func chat(t *testing.T, name string, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"role":%q,"content":"message %d of %s","timestamp":%d}`+"\n", []string{"user", "assistant"}[i%2], i, name, 1_700_000_000_000+int64(i)*1000)
	}
	return write(t, name+".jsonl", b.String())
}

func TestImportAndExport(t *testing.T) {
	config, _ := keeping(t)
	run(t, builtin.New(), "", "import", "--config", config, "--agent", "ann", chat(t, "one", 40), chat(t, "two", 3)).
		want(t, cli.ExitOK, "one.jsonl (transcript): 1 session, 40 messages: imported 40, 0 known already", "imported 3", "from 2023-11-14 22:13:20Z to 2023-11-14 22:13:59Z")
	got := run(t, builtin.New(), short, "import", "--config", config, "--agent", "bob", "--json", "-")
	got.want(t, cli.ExitOK)
	var v struct {
		Reports []struct{ Imported, Untimed int }
	}
	if err := json.Unmarshal([]byte(got.out), &v); err != nil || len(v.Reports) != 1 || v.Reports[0].Imported != 4 || v.Reports[0].Untimed != 4 {
		t.Errorf("reports %+v, %v", v, err)
	}
	first := run(t, builtin.New(), "", "export", "--config", config)
	first.want(t, cli.ExitOK, "exported 47 entries and 3 views")
	// To a file, to another store, and out again.
	file := filepath.Join(t.TempDir(), "e.jsonl.gz")
	run(t, builtin.New(), "", "export", "--config", config, "-o", file).want(t, cli.ExitOK)
	run(t, builtin.New(), "", "export", "--config", config, "-o", file).want(t, cli.ExitFailure, "exists", "--force")
	run(t, builtin.New(), "", "export", "--config", config, "-o", file, "--force").want(t, cli.ExitOK)
	if left, err := filepath.Glob(file + ".*"); err != nil || len(left) > 0 {
		t.Errorf("%v are left beside the export, %v", left, err)
	}
	other, _ := keeping(t)
	run(t, builtin.New(), "", "import", "--config", other, "--dry-run", file).want(t, cli.ExitOK, "would import 47")
	run(t, builtin.New(), "", "import", "--config", other, file).want(t, cli.ExitOK, "3 sessions, 47 messages: imported 47, 0 known", "3 views, of which 0")
	run(t, builtin.New(), "", "import", "--config", other, file).want(t, cli.ExitOK, "imported 0, 47 known", "3 views, of which 3")
	second := run(t, builtin.New(), "", "export", "--config", other)
	if a, b := timeless(first.out), timeless(second.out); a != b {
		t.Errorf("exported, imported and exported again: %d and %d bytes that differ", len(a), len(b))
	}
	part := run(t, builtin.New(), "", "export", "--config", config, "--agent", "ann", "--session", "two")
	if n := strings.Count(part.out, `{"entry":`); n != 3 || strings.Contains(part.out, `"bob"`) { // with quotes: an id may hold these letters
		t.Errorf("%d entries of one session", n)
	}
	run(t, builtin.New(), "", "export", "--config", config, "--session", "two").want(t, cli.ExitUsage, "--agent")
	// Into a store that lasts as long as the process, and with what an engine then makes of it.
	run(t, builtin.New(), "", "import", "--store", "memory", file).want(t, cli.ExitOK, "imported 47")
	run(t, builtin.New(), "", "doctor", "--config", other).want(t, cli.ExitOK)
}

// timeless is an export without its time, and the versions of views.
func timeless(text string) string {
	text = regexp.MustCompile(`("version":1,"time":)"[^"]*"`).ReplaceAllString(text, `$1""`)
	return regexp.MustCompile(`(?m)^(\{"view":\{"session":\{[^}]*\},"version":)\d+`).ReplaceAllString(text, "${1}0")
}

func TestImportErrors(t *testing.T) {
	config, path := keeping(t)
	bad := write(t, "bad.jsonl", strings.Replace(short, `{"role":"assistant","content":"hi"}`, `{"role":"assistant","content"`, 1))
	run(t, builtin.New(), "", "import", "--config", config, bad).want(t, cli.ExitFailure, bad+":3: expected")
	run(t, builtin.New(), "", "import", "--config", config, "--keep-going", bad).want(t, cli.ExitOK, "imported 3", "warning: "+bad+":3: expected", "passed over 1 malformed place")
	lines := write(t, "e.jsonl", `{"header":{"format":"contextengine-export","version":1}}`+"\n"+`{"entry":{"id":1}}`+"\n")
	run(t, builtin.New(), "", "import", "--config", config, lines).want(t, cli.ExitFailure, lines, "line 2")
	run(t, builtin.New(), "", "import", "--config", config, "--from", "chatgtp", bad).want(t, cli.ExitUsage, `did you mean "chatgpt"?`)
	run(t, builtin.New(), "", "import", "--config", config, path).want(t, cli.ExitUsage, "store of this program")
	run(t, builtin.New(), "", "import", "--config", config, t.TempDir()).want(t, cli.ExitUsage, "is a folder")
	run(t, builtin.New(), "", "import", "--config", config).want(t, cli.ExitUsage, "import needs FILE")
	run(t, builtin.New(), "", "import", "--config", config, "absent", bad).want(t, cli.ExitFailure, "absent")
	none := write(t, "none.yaml", "engine: legacy\n")
	run(t, builtin.New(), "", "import", "--config", none, bad).want(t, cli.ExitUsage, `engine "legacy" stores nothing`)
	run(t, builtin.New(), "", "stats", "--config", write(t, "o.yaml", "engine: openbrain\n")).want(t, cli.ExitUsage, "baseUrl and apiKey are required")
}

func TestUpkeep(t *testing.T) {
	config, path := keeping(t)
	run(t, builtin.New(), "", "import", "--config", config, chat(t, "one", 60)).want(t, cli.ExitOK)
	run(t, builtin.New(), "", "stats", "--config", config).want(t, cli.ExitOK, "store     sqlite", "sessions  1", "entries   60", "oldest    2023-11-14 22:13:20Z", "index     ")
	got := run(t, builtin.New(), "", "stats", "--config", config, "--json")
	var v struct {
		Store   string
		Entries int
		Bytes   int64
	}
	if err := json.Unmarshal([]byte(got.out), &v); err != nil || v.Store != "sqlite" || v.Entries != 60 || v.Bytes == 0 {
		t.Errorf("stats --json: %+v, %v\n%s", v, err, got.out)
	}
	run(t, builtin.New(), "", "verify", "--config", config).want(t, cli.ExitOK, "ok: ")
	copied := filepath.Join(t.TempDir(), "copy.db")
	run(t, builtin.New(), "", "backup", "--config", config, copied).want(t, cli.ExitOK, "wrote "+copied)
	run(t, builtin.New(), "", "backup", "--config", config, copied).want(t, cli.ExitFailure, copied)
	run(t, builtin.New(), "", "stats", "--config", write(t, "copy.yaml", "store: {type: sqlite, path: "+copied+"}\n")).want(t, cli.ExitOK, "entries   60")
	run(t, builtin.New(), "", "vacuum", "--config", config).want(t, cli.ExitOK, ", before ")
	// Something in the file is not what was written.
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(data, []byte("usermessage")) // role and type of an entry
	if at < 0 {
		t.Fatal("no entry is in the file as it is")
	}
	data[at] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, builtin.New(), "", "verify", "--config", config).want(t, cli.ExitFailure, path, "damaged")
}

func TestWhatAStoreCannot(t *testing.T) {
	for _, args := range [][]string{{"vacuum"}, {"backup", "x"}, {"stats"}, {"retain", "--max-age", "1d"}, {"retain", "--max-age", "1d", "--dry-run"}} {
		run(t, builtin.New(), "", append(args, "--store", "memory")...).want(t, cli.ExitFailure, `store "memory" cannot`, `the store "sqlite" can`)
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("there is a backup")
	}
}

// TestVerifyViews: a view that names positions which hold nothing is found, by doctor too, and mended.
func TestVerifyViews(t *testing.T) {
	config, path := keeping(t)
	run(t, builtin.New(), "", "import", "--config", config, chat(t, "one", 20)).want(t, cli.ExitOK)
	brick(t, path)
	run(t, builtin.New(), "", "verify", "--config", config).want(t, cli.ExitFailure, "3 positions of the view hold no entry", "verify --fix")
	run(t, builtin.New(), "", "doctor", "--config", config).want(t, cli.ExitFailure, "3 positions of the view hold no entry", "doctor --fix")
	run(t, builtin.New(), "", "verify", "--fix", "--config", config).want(t, cli.ExitOK, "mended 3", "ok: ")
	run(t, builtin.New(), "", "verify", "--config", config).want(t, cli.ExitOK, "ok: ")
}

// brick makes a view name three positions that hold nothing.
func brick(t *testing.T, path string) {
	t.Helper()
	withView(t, path, func(s *sqlite.Store, v core.View) error {
		v.Version++
		v.Path[len(v.Path)-1].To += 3
		v.Next += 3
		return s.SwapView(t.Context(), v)
	})
}

// viewIn returns the first view of a store.
func viewIn(t *testing.T, path string) (out core.View) {
	t.Helper()
	withView(t, path, func(_ *sqlite.Store, v core.View) error { out = v; return nil })
	return out
}

// withView calls f with the first view of a store.
func withView(t *testing.T, path string, f func(*sqlite.Store, core.View) error) {
	t.Helper()
	cfg := sqlite.DefaultConfig()
	cfg.Path = path
	s, err := sqlite.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := s.ListViews(t.Context(), core.ViewQuery{Limit: 1})
	if err != nil || len(ids) != 1 {
		t.Fatalf("ListViews = %v, %v", ids, err)
	}
	v, err := s.LoadView(t.Context(), ids[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f(s, v), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// bounded is a store that keeps bounds, in the words of core.
type bounded struct {
	*sqlite.Store
	asked *[]retain.Policy
}

func (b bounded) Retain(ctx context.Context, p retain.Policy) (retain.Report, error) {
	*b.asked = append(*b.asked, p)
	return b.Store.Retain(ctx, p)
}

func (b bounded) WouldRetain(_ context.Context, p retain.Policy) (retain.Report, error) {
	*b.asked = append(*b.asked, p)
	return retain.Report{Deleted: 7, Emptied: 2, Bytes: 1500, Kept: 1}, nil
}

func TestRetain(t *testing.T) {
	reg := builtin.New()
	var asked []retain.Policy
	err := registry.AddStore(reg, "bounded", "keeps bounds", sqlite.DefaultConfig, func(ctx context.Context, cfg sqlite.Config, _ registry.Env) (core.Store, error) {
		s, err := sqlite.Open(ctx, cfg)
		return bounded{s, &asked}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "store.db")
	config := write(t, "c.yaml", "store: {type: bounded, path: "+path+"}\n")
	run(t, reg, "", "import", "--config", config, chat(t, "one", 30)).want(t, cli.ExitOK)
	run(t, reg, "", "retain", "--config", config, "--dry-run", "--max-bytes", "1.5kB", "--per-agent").want(t, cli.ExitOK, "would remove 9 messages, of 2 of them the place stays, 1.5 kB of content", "1 message kept beyond")
	archive := filepath.Join(t.TempDir(), "old.gz")
	// A window shows all of them, so all of them stay.
	run(t, reg, "", "retain", "--config", config, "--max-age", "2w", "--max-entries", "10", "--archive", archive).want(t, cli.ExitOK, "removed 0 messages", "30 messages kept")
	if len(asked) != 2 || asked[0].MaxBytes != 1500 || !asked[0].PerAgent || asked[1].MaxAge.Hours() != 14*24 || asked[1].MaxEntries != 10 || asked[1].Archive == nil {
		t.Errorf("asked for %+v", asked)
	}
	if _, err := os.Stat(archive); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing was removed, and there is an archive (%v)", err)
	}
	got := run(t, reg, "", "retain", "--config", config, "--max-entries", "10", "--json")
	var report retain.Report
	if err := json.Unmarshal([]byte(got.out), &report); err != nil || report.Kept != 20 {
		t.Errorf("retain --json: %+v, %v", report, err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "name a bound"},
		{[]string{"--max-age", "old"}, "--max-age"},
		{[]string{"--max-age", "-3d"}, "--max-age"},
		{[]string{"--max-bytes", "much"}, "--max-bytes"},
		{[]string{"--max-entries", "-1"}, "--max-entries"},
	} {
		run(t, reg, "", append([]string{"retain", "--config", config}, tt.args...)...).want(t, cli.ExitUsage, tt.want)
	}
}

func TestForget(t *testing.T) {
	config, path := keeping(t)
	run(t, builtin.New(), "", "import", "--config", config, "--agent", "ann", chat(t, "one", 20), chat(t, "two", 4)).want(t, cli.ExitOK)
	forget := func(stdin string, args ...string) outcome {
		t.Helper()
		return run(t, builtin.New(), stdin, append([]string{"forget", "--config", config}, args...)...)
	}
	forget("", "--yes").want(t, cli.ExitUsage, "--agent")
	forget("", "--agent", "ann", "--since", "yesterday").want(t, cli.ExitUsage, "--since")
	forget("", "--agent", "ann", "--since", "2026-02-01", "--before", "2026-01-01").want(t, cli.ExitUsage, "--before")
	forget("", "--agent", "ann", "--purge", "--entry", "x").want(t, cli.ExitUsage, "--purge")
	forget("", "--agent", "ann", "--entry", "nobody", "--yes").want(t, cli.ExitFailure, "not found")
	forget("", "--agent", "ann", "--session", "one").want(t, cli.ExitUsage, `20 messages in 1 session of agent "ann"`, "nobody answered")
	forget("no\n", "--agent", "ann", "--session", "one").want(t, cli.ExitFailure, "Type yes", "nothing was erased")
	forget("", "--agent", "ann", "--session", "three", "--yes").want(t, cli.ExitOK, "0 messages in 0 sessions")
	forget("", "--agent", "ann", "--receipts").want(t, cli.ExitOK, "nothing was erased")
	forget("yes\n", "--agent", "ann", "--session", "one", "--since", "2023-11-14T22:13:30Z", "--reason", "asked for").
		want(t, cli.ExitOK, `10 messages in 1 session`, "erased 10 messages in 1 session", "reason: asked for")
	got := forget("", "--agent", "ann", "--receipts", "--json")
	var v struct{ Receipts []engine.Receipt }
	if err := json.Unmarshal([]byte(got.out), &v); err != nil || len(v.Receipts) != 1 || v.Receipts[0].Entries != 10 || v.Receipts[0].Request.Reason != "asked for" {
		t.Errorf("receipts %+v, %v", v, err)
	}
	text := run(t, builtin.New(), "", "export", "--config", config)
	if strings.Contains(text.out, "message 15 of one") || !strings.Contains(text.out, "message 5 of one") {
		t.Error("the export holds what was erased, or lacks what was not")
	}
	// What was erased does not come back with the same file.
	run(t, builtin.New(), "", "import", "--config", config, "--agent", "ann", chat(t, "one", 20)).want(t, cli.ExitOK, "imported 0, 10 known already, 10 erased before and not brought back")
	forget("", "--agent", "ann", "--session", "one", "--purge", "--yes").want(t, cli.ExitOK, "10 messages in 1 session", "with 10 places of erased messages")
	forget("", "--agent", "ann", "--receipts").want(t, cli.ExitOK, "erased 10 messages in 1 session")
	run(t, builtin.New(), "", "import", "--config", config, "--agent", "ann", chat(t, "one", 20)).want(t, cli.ExitOK, "imported 20")
	forget("", "--agent", "ann", "--yes").want(t, cli.ExitOK, "24 messages in 2 sessions")
	data, err := os.ReadFile(path)
	if err != nil || bytes.Contains(data, []byte("message 3 of")) {
		t.Errorf("the file holds what was erased (%v)", err)
	}
	entry := regexp.MustCompile(`\{"entry":\{"id":"([^"]*)"`)
	run(t, builtin.New(), short, "import", "--config", config, "--agent", "bob", "-").want(t, cli.ExitOK)
	id := entry.FindStringSubmatch(run(t, builtin.New(), "", "export", "--config", config, "--agent", "bob").out)[1]
	forget("", "--agent", "bob", "--entry", "#"+id, "--yes").want(t, cli.ExitOK, "erased 1 message in 1 session")
}

// TestForgetTheEnginesOwn: what the engine keeps for itself is refused before anything is announced, by session or by entry, and an announcement does not count it.
func TestForgetTheEnginesOwn(t *testing.T) {
	config, _ := keeping(t)
	run(t, builtin.New(), "", "import", "--config", config, "--agent", "ann", chat(t, "one", 4)).want(t, cli.ExitOK)
	run(t, builtin.New(), "", "experiment", "score", "--config", config, "--agent", "ann", "--session", "one", "--metric", "solved", "1").want(t, cli.ExitOK)
	own := regexp.MustCompile(`\{"entry":\{"id":"([^"]*)","agent":"ann","session":"contextengine-outcomes"`)
	id := own.FindStringSubmatch(run(t, builtin.New(), "", "export", "--config", config, "--agent", "ann").out)[1]
	for _, args := range [][]string{{"--session", "contextengine-outcomes"}, {"--session", "contextengine-outcomes", "--purge"}, {"--session", "contextengine-receipts"}, {"--entry", id}} {
		got := run(t, builtin.New(), "", append([]string{"forget", "--config", config, "--agent", "ann", "--yes"}, args...)...)
		got.want(t, cli.ExitUsage, args[0], "the engine's own records")
		if strings.Contains(got.errors, "of agent") {
			t.Errorf("%q announces something: %s", args, got.errors)
		}
	}
	run(t, builtin.New(), "", "forget", "--config", config, "--agent", "ann", "--purge", "--yes").want(t, cli.ExitOK, "4 messages in 1 session", "with 0 places of erased messages")
}

// stopping is standard output that interrupts the command that writes to it.
type stopping struct {
	cancel context.CancelFunc
	io.Writer
}

func (s stopping) Write(p []byte) (int, error) {
	s.cancel()
	return s.Writer.Write(p)
}

func TestInterrupted(t *testing.T) {
	config, _ := keeping(t)
	file := chat(t, "one", 5000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{
		{"import", file}, {"export"}, {"stats"}, {"verify"}, {"vacuum"}, {"backup", filepath.Join(t.TempDir(), "b")}, {"forget", "--agent", "ann", "--yes"},
	} {
		var out, errs bytes.Buffer
		code := cli.Run(ctx, builtin.New(), append(args, "--config", config), cli.IO{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
		if code != cli.ExitCancelled {
			t.Errorf("%s: exit code %d, want %d\n%s", args[0], code, cli.ExitCancelled, errs.String())
		}
	}
	// In the middle of an export, what is on its way stops too.
	run(t, builtin.New(), "", "import", "--config", config, file).want(t, cli.ExitOK)
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	var errs bytes.Buffer
	code := cli.Run(ctx, builtin.New(), []string{"export", "--config", config}, cli.IO{Stdout: stopping{cancel, io.Discard}, Stderr: &errs})
	if code != cli.ExitCancelled {
		t.Errorf("exit code %d, want %d\n%s", code, cli.ExitCancelled, errs.String())
	}
}

// An archive of what was removed is an export like any other.
func TestImportOfAnArchive(t *testing.T) {
	config, _ := keeping(t)
	run(t, builtin.New(), "", "import", "--config", config, chat(t, "one", 10)).want(t, cli.ExitOK)
	text := run(t, builtin.New(), "", "export", "--config", config).out
	var z bytes.Buffer
	for range 2 {
		w := gzip.NewWriter(&z)
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	other, _ := keeping(t)
	run(t, builtin.New(), "", "import", "--config", other, write(t, "old.gz", z.String())).want(t, cli.ExitOK, "20 messages: imported 10, 10 known")
}

// counted is an embedder that makes one number of every text.
type counted struct{ model string }

func (c counted) Model() string { return c.model }
func (counted) Dimensions() int { return 2 }
func (counted) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = []float32{1, float32(len(text))}
	}
	return out, nil
}

func TestReembed(t *testing.T) {
	config, path := keeping(t)
	run(t, builtin.New(), "", "import", "--config", config, chat(t, "one", 30)).want(t, cli.ExitOK)
	run(t, builtin.New(), "", "reembed", "--config", config).want(t, cli.ExitFailure, "no searcher of agent", "searchers to vector, and embedder")
	reg := builtin.New()
	err := registry.AddModel(reg, "counted", "counts letters", func() struct{ Name string } { return struct{ Name string }{"m1"} },
		func(_ context.Context, c struct{ Name string }, _ registry.Env) (registry.Model, error) {
			return registry.Model{Embedder: counted{c.Name}}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	vectors := write(t, "v.yaml", "store: {type: sqlite, path: "+path+"}\nsearchers: [vector]\nembedder: counted\n")
	run(t, reg, "", "reembed", "--config", vectors).want(t, cli.ExitOK, `embedded 30 messages of agent "main"`)
	run(t, reg, "", "reembed", "--config", vectors).want(t, cli.ExitOK, "embedded 0 messages")
	run(t, reg, "", "stats", "--config", vectors).want(t, cli.ExitOK, "vectors   30")
	run(t, reg, "", "retain", "--config", vectors, "--max-entries", "10", "--dry-run").want(t, cli.ExitOK, "would remove 0 messages", "20 messages kept")
}
