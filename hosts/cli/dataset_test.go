package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/experiment/dataset/published"
	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/internal/datadir"
	"github.com/contextengine/contextengine/registry/builtin"
)

func TestDatasetCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	reg := builtin.New()
	run(t, reg, "", "dataset", "list", "--in", dir).want(t, cli.ExitOK, "locomo", "CC BY-NC 4.0 (not for commercial use)", "absent", dir)
	var list struct {
		Folder string
		Sets   []struct {
			published.Set
			State published.State
		}
	}
	got := run(t, reg, "", "dataset", "list", "--in", dir, "--json")
	sets, err := published.Sets()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got.out), &list); err != nil || list.Folder != dir || len(list.Sets) != len(sets) ||
		list.Sets[0].Files[0].SHA256 != sets[0].Files[0].SHA256 || list.Sets[0].State != published.Absent {
		t.Errorf("list --json: %v\n%s", err, got.out)
	}
	run(t, reg, "", "dataset", "verify", "--in", dir).want(t, cli.ExitOK, "locomo: absent")
	run(t, reg, "", "dataset", "verify", "--in", dir, "pi").want(t, cli.ExitFailure, "pi/large-session.jsonl: is absent", "dataset fetch pi")
	run(t, reg, "", "dataset", "fetch", "--to", dir).want(t, cli.ExitUsage, "name a set (locomo, beam", "--all")
	run(t, reg, "", "dataset", "fetch", "--to", dir, "--all", "pi").want(t, cli.ExitUsage, "--all: takes no names")
	run(t, reg, "", "dataset", "fetch", "--to", dir, "locom").want(t, cli.ExitUsage, `did you mean "locomo"?`)
	run(t, reg, "", "dataset", "fetch", "--to", dir, "--from", filepath.Join(dir, "none"), "pi").want(t, cli.ExitFailure, "none")
	run(t, reg, "", "dataset", "verify", "--in", filepath.Join(dir, "none")).want(t, cli.ExitUsage, "--in: there is no folder")
	run(t, reg, "", "dataset", "fetch", "--to", dir, "--from", "ftp://localhost/data", "pi").want(t, cli.ExitUsage, "http or https address")
	run(t, reg, "", "dataset", "fetch", "--to", dir, "--from", os.DevNull, "pi").want(t, cli.ExitUsage, "regular file")
	run(t, reg, "", "dataset", "verify", "--in", dir, "locom").want(t, cli.ExitUsage, `did you mean "locomo"?`)
}

// A mirror of something else is not taken, and the error says what was expected and what is there.
func TestDatasetFetchOfSomethingElse(t *testing.T) {
	t.Parallel()
	mirror, dir := t.TempDir(), t.TempDir()
	file := filepath.Join(mirror, "pi.jsonl")
	if err := os.WriteFile(file, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sets, err := published.Sets()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sets {
		if s.Name == "pi" {
			run(t, builtin.New(), "", "dataset", "fetch", "--to", dir, "--from", file, "pi").
				want(t, cli.ExitFailure, "licence: MIT", file, s.Files[0].SHA256, "3 bytes", "pi/large-session.jsonl")
		}
	}
	run(t, builtin.New(), "", "dataset", "list", "--in", dir).want(t, cli.ExitOK, "absent")
}

// The folder that tests read is a mirror: every set of it can be fetched, is right, and carries its licence.
func TestDatasetFetchFromTheDataFolder(t *testing.T) {
	t.Parallel()
	sets, err := published.Sets()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sets {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			for _, f := range s.Files {
				datadir.File(t, f.Path) // a fetch that was interrupted leaves a part
			}
			mirror, dir := datadir.Dir(os.Getenv), filepath.Join(t.TempDir(), "data")
			var out, errs bytes.Buffer
			streams := cli.IO{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: []string{datadir.Variable + "=" + dir}}
			if code := cli.Run(t.Context(), builtin.New(), []string{"dataset", "fetch", s.Name, "--from", mirror}, streams); code != cli.ExitOK {
				t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
			}
			if !strings.Contains(out.String(), s.Licence.String()) || !strings.Contains(out.String(), "written") {
				t.Errorf("fetch does not show the licence %q, or that it wrote:\n%s", s.Licence, out.String())
			}
			run(t, builtin.New(), "", "dataset", "verify", "--in", dir, s.Name).want(t, cli.ExitOK, s.Name+": present")
			if err := os.Remove(filepath.Join(dir, s.Name, "SOURCE.txt")); err != nil {
				t.Fatal(err)
			}
			run(t, builtin.New(), "", "dataset", "fetch", "--to", dir, "--from", mirror, s.Name).want(t, cli.ExitOK, "was there")
			note, err := os.ReadFile(filepath.Join(dir, s.Name, "SOURCE.txt"))
			if err != nil || !strings.Contains(string(note), s.Licence.String()) {
				t.Errorf("the note: %v\n%s", err, note)
			}
			if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(s.Files[0].Path)), []byte("changed"), 0o600); err != nil {
				t.Fatal(err)
			}
			run(t, builtin.New(), "", "dataset", "verify", "--in", dir).want(t, cli.ExitFailure, s.Files[0].Path, s.Files[0].SHA256, "7 bytes")
			run(t, builtin.New(), "", "dataset", "fetch", "--to", dir, "--from", mirror, s.Name).want(t, cli.ExitFailure, "--force")
			run(t, builtin.New(), "", "dataset", "fetch", "--to", dir, "--from", mirror, "--force", s.Name).want(t, cli.ExitOK, "written")
			run(t, builtin.New(), "", "dataset", "verify", "--in", dir, s.Name).want(t, cli.ExitOK, s.Name+": present")
		})
	}
}
