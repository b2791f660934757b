package cli_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/internal/files"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/internal/openbraintest"
	"github.com/contextengine/contextengine/registry/builtin"
)

// TestDoctorFixIndex: the indexes of a damaged file are made anew when somebody says so, nothing is lost, and the file as it was is kept.
func TestDoctorFixIndex(t *testing.T) {
	config, path := keeping(t)
	run(t, builtin.New(), "", "import", "--config", config, chat(t, "one", 400)).want(t, cli.ExitOK)
	damage(t, path)
	damaged, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	run(t, builtin.New(), "", "doctor", "--config", config).want(t, cli.ExitFailure, "fail  parts", "doctor --fix")
	run(t, builtin.New(), "", "doctor", "--fix", "--config", config).want(t, cli.ExitUsage, "make the indexes of the store's file anew", "nothing was mended: nobody answered; --yes")
	run(t, builtin.New(), "no\n", "doctor", "--fix", "--config", config).want(t, cli.ExitFailure, "Mend this?", "nothing was mended")
	if left, _ := filepath.Glob(path + ".before-repair-*"); len(left) > 0 {
		t.Errorf("nobody said yes, and there is %s", left)
	}
	run(t, builtin.New(), "yes\n", "doctor", "--fix", "--config", config).want(t, cli.ExitOK, "mended  the indexes are made anew; the file as it was is "+path+".before-repair-", "ok    store")
	run(t, builtin.New(), "", "verify", "--config", config).want(t, cli.ExitOK, "ok: ")
	run(t, builtin.New(), "", "stats", "--config", config).want(t, cli.ExitOK, "400")
	run(t, builtin.New(), "", "doctor", "--fix", "--config", config).want(t, cli.ExitOK, "there is nothing that doctor could mend")

	// As docs/operations.md says: the copy in the place of the file.
	copies, err := filepath.Glob(path + ".before-repair-*[0-9]")
	if err != nil || len(copies) != 1 {
		t.Fatalf("copies: %q, %v", copies, err)
	}
	if err := errors.Join(os.Rename(copies[0], path), os.RemoveAll(path+".d")); err != nil {
		t.Fatal(err)
	}
	if back, err := os.ReadFile(path); err != nil || !bytes.Equal(back, damaged) {
		t.Errorf("the copy is not the file as it was: %v", err)
	}
	run(t, builtin.New(), "", "doctor", "--config", config).want(t, cli.ExitFailure, "fail  parts", "doctor --fix")
	run(t, builtin.New(), "", "doctor", "--fix", "--yes", "--config", config).want(t, cli.ExitOK, "mended  the indexes are made anew")
}

// damage flips a bit in a page of an index, such that the store is not opened any more.
func damage(t *testing.T, path string) {
	t.Helper()
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page, indexLeaf = 4096, 0x0a
	for at := page; at+page <= len(sound); at += page {
		if sound[at] != indexLeaf {
			continue
		}
		file := append([]byte(nil), sound...)
		file[at+4] ^= 1
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := sqlite.DefaultConfig()
		cfg.Path = path
		s, err := sqlite.Open(t.Context(), cfg)
		if err == nil {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		cfg.Check = sqlite.CheckNever
		if s, err = sqlite.Open(t.Context(), cfg); err != nil {
			continue
		}
		if err := s.Close(); err != nil && !errors.Is(err, sqlite.ErrDamaged) {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("no page could be damaged")
}

// TestDoctorFixView: a view that names what nobody stored is mended; as it was it is in a file.
func TestDoctorFixView(t *testing.T) {
	config, path := keeping(t)
	run(t, builtin.New(), "", "import", "--config", config, chat(t, "one", 20)).want(t, cli.ExitOK)
	brick(t, path)
	run(t, builtin.New(), "no\n", "doctor", "--fix", "--config", config).want(t, cli.ExitFailure, "the views as they are go to a file", "nothing was mended")
	if left, _ := filepath.Glob(path + ".views-*"); len(left) > 0 {
		t.Errorf("nobody said yes, and there is %s", left)
	}
	run(t, builtin.New(), "", "doctor", "--fix", "--yes", "--json", "--config", config).
		want(t, cli.ExitOK, `"done": "the views of 1 session agree with their entries again; as they were they are in `+path+".views-before-repair-", `"ok": true`)
	run(t, builtin.New(), "", "verify", "--config", config).want(t, cli.ExitOK, "ok: ")

	brick(t, path)
	run(t, builtin.New(), "", "verify", "--fix", "--config", config).want(t, cli.ExitOK, "mended 3", "the views as they were are in "+path+".views-before-repair-")
	kept, err := filepath.Glob(path + ".views-before-repair-*.jsonl")
	if err != nil || len(kept) != 2 {
		t.Fatalf("kept: %q, %v", kept, err)
	}
	// What is kept is an export: a store that has no view of the session takes the broken one.
	other, at := keeping(t)
	run(t, builtin.New(), "", "import", "--config", other, kept[0]).want(t, cli.ExitOK, "1 view")
	if v := viewIn(t, at); v.Next != 23 {
		t.Errorf("the view that was kept ends at %d, want 23: what was broken", v.Next)
	}
}

// TestDoctorFixLeftovers: temporary files of processes that were killed are removed when somebody says so, nothing that a process uses or may be about to use,
// and nothing of anybody else's.
func TestDoctorFixLeftovers(t *testing.T) {
	config, path := keeping(t)
	run(t, builtin.New(), "", "import", "--config", config, chat(t, "one", 20)).want(t, cli.ExitOK)
	dir, lexical := filepath.Dir(path), filepath.Join(path+".d", "lexical")
	if err := os.MkdirAll(lexical, 0o700); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	plant := func(name string) string {
		t.Helper()
		if err := errors.Join(os.WriteFile(name, []byte("x"), 0o600), os.Chtimes(name, long, long)); err != nil {
			t.Fatal(err)
		}
		return name
	}
	left := []string{
		plant(filepath.Join(dir, ".write.1"+files.TempSuffix)), plant(filepath.Join(dir, ".probe.2"+files.TempSuffix)), plant(filepath.Join(lexical, "a.3"+files.TempSuffix)),
	}
	folder, remove, err := files.TempDir(dir, ".backup")
	if err != nil {
		t.Fatal(err)
	}
	plant(filepath.Join(folder, "store.db"))
	used, err := files.Temp(dir, ".write")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	for _, name := range []string{folder, used.Name()} {
		if err := os.Chtimes(name, long, long); err != nil {
			t.Fatal(err)
		}
	}
	young := plant(filepath.Join(dir, ".write.4"+files.TempSuffix))
	if err := os.Chtimes(young, time.Time{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	keep := []string{folder, used.Name(), young, plant(filepath.Join(dir, "notes.tmp")), plant(filepath.Join(dir, "film.part")), path}
	there := func(all []string) (n int) {
		for _, name := range all {
			if _, err := os.Lstat(name); err == nil {
				n++
			}
		}
		return n
	}
	run(t, builtin.New(), "", "doctor", "--config", config).want(t, cli.ExitOK, "note  leftovers", "3 temporary files", "doctor --fix")
	run(t, builtin.New(), "no\n", "doctor", "--fix", "--config", config).want(t, cli.ExitFailure, append([]string{"remove 3 temporary files"}, left...)...)
	if there(left) != len(left) {
		t.Error("nobody said yes, and files are gone")
	}
	run(t, builtin.New(), "", "doctor", "--fix", "--yes", "--config", config).want(t, cli.ExitOK, "mended  3 temporary files removed")
	if there(left) != 0 || there(keep) != len(keep) {
		t.Errorf("%d of %d are left, %d of %d others", there(left), len(left), there(keep), len(keep))
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	run(t, builtin.New(), "", "doctor", "--fix", "--config", config).want(t, cli.ExitOK, "there is nothing that doctor could mend")
}

// TestDoctorFixOutbox: what an outbox holds is delivered, or it is said why not, and nothing is lost.
func TestDoctorFixOutbox(t *testing.T) {
	needs.NoRace(t)
	t.Parallel() // it waits for a server that is away
	srv := openbraintest.New(t, openbraintest.Strict(20, false))
	config := write(t, "c.yaml", strings.NewReplacer("URL", srv.URL(), "KEY", srv.Key(), "PATH", filepath.Join(t.TempDir(), "store.db")).
		Replace("engine: {type: openbrain, baseUrl: URL, apiKey: KEY}\nstore: {local: {path: PATH}}\n"))
	srv.Stop()
	run(t, builtin.New(), "", "import", "--config", config, chat(t, "one", 6))
	got := run(t, builtin.New(), "", "doctor", "--fix", "--yes", "--timeout", "2s", "--config", config)
	got.want(t, cli.ExitFailure, "6 changes wait", "not mended", "everything is kept in the local store")
	if strings.Contains(got.out+got.errors, srv.Key()) {
		t.Error("the key is shown")
	}
	srv.Start()
	run(t, builtin.New(), "", "doctor", "--fix", "--yes", "--config", config).want(t, cli.ExitOK, "ok    outbox")
	if n := len(srv.Thoughts()); n != 6 {
		t.Errorf("the server holds %d thoughts, want 6", n)
	}
}

func TestDoctorFixIsNotForHosts(t *testing.T) {
	run(t, builtin.New(), "", "doctor", "--fix", "--openclaw", "x.json").want(t, cli.ExitUsage, "give one of --fix and --openclaw")
	run(t, builtin.New(), "", "doctor", "--fix", "--config", write(t, "c.yaml", "engine: legacy\n")).want(t, cli.ExitOK, "nothing that doctor could mend")
	run(t, builtin.New(), "", "doctor", "--fix", "--json").want(t, cli.ExitUsage, "add --yes")
}
