package cli_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/internal/openbraintest"
	"github.com/contextengine/contextengine/registry/builtin"
)

// TestDoctorFixIndex: the indexes of a damaged file are made anew when somebody says so, nothing is lost, and the file as it was is kept.
func TestDoctorFixIndex(t *testing.T) {
	config, path := keeping(t)
	run(t, builtin.New(), "", "import", "--config", config, chat(t, "one", 400)).want(t, cli.ExitOK)
	damage(t, path)
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

// TestDoctorFixView: a view that names what nobody stored is mended.
func TestDoctorFixView(t *testing.T) {
	config, path := keeping(t)
	run(t, builtin.New(), "", "import", "--config", config, chat(t, "one", 20)).want(t, cli.ExitOK)
	brick(t, path)
	run(t, builtin.New(), "", "doctor", "--fix", "--yes", "--json", "--config", config).want(t, cli.ExitOK, `"done": "the views of 1 session agree with their entries again"`, `"ok": true`)
	run(t, builtin.New(), "", "verify", "--config", config).want(t, cli.ExitOK, "ok: ")
}

// TestDoctorFixOutbox: what an outbox holds is delivered, or it is said why not, and nothing is lost.
func TestDoctorFixOutbox(t *testing.T) {
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
