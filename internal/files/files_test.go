package files_test

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/internal/files"
)

// child holds what makes the test's program one that makes temporary files in a folder, and lives until somebody closes its input.
const child = "FILES_CHILD_FOLDER"

func TestMain(m *testing.M) {
	dir := os.Getenv(child)
	if dir == "" {
		os.Exit(m.Run())
	}
	_, err := files.Temp(dir, ".file")
	_, _, dirErr := files.TempDir(dir, ".folder")
	if errors.Join(err, dirErr) != nil {
		os.Exit(1)
	}
	os.Stdout.WriteString("ready\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// TestAbandoned: what a process that was killed left is found, and nothing of one that lives, however old it is.
func TestAbandoned(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), child+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the child said %q, %v", line, err)
	}
	for _, name := range []string{"notes.tmp", "download.part", "contextengine.tmp.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "notes.tmp"), filepath.Join(dir, "link"+files.TempSuffix)); err != nil {
		t.Logf("not tried: links: %v", err)
	}
	later := time.Now().Add(24 * time.Hour)
	if got, err := files.Abandoned(dir, later); err != nil || len(got) > 0 {
		t.Errorf("while the process lives: %q, %v", got, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got, err := files.Abandoned(dir, time.Now()); err != nil || len(got) > 0 {
		t.Errorf("files of this moment: %q, %v", got, err)
	}
	got, err := files.Abandoned(dir, later)
	if err != nil || len(got) != 2 {
		t.Fatalf("%q, %v, want the file and the folder", got, err)
	}
	for _, pattern := range []string{".file.*" + files.TempSuffix, ".folder.*" + files.TempSuffix} {
		if !slices.ContainsFunc(got, func(path string) bool { ok, _ := filepath.Match(pattern, filepath.Base(path)); return ok }) {
			t.Errorf("%q has no %s", got, pattern)
		}
	}
	if got, err := files.Abandoned(filepath.Join(dir, "not there"), later); err != nil || got != nil {
		t.Errorf("a folder that is not there: %q, %v", got, err)
	}
}

// TestTempDirIsRemoved: what was made in a temporary folder goes with it.
func TestTempDirIsRemoved(t *testing.T) {
	dir := t.TempDir()
	path, remove, err := files.TempDir(dir, ".x")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestTemporaryFilesAreMadeHere: a temporary file that is made elsewhere is not found when its process is killed.
func TestTemporaryFilesAreMadeHere(t *testing.T) {
	const root = "../.."
	seen := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "node_modules" || name == "examples" || name == "deploy" || name == "files" || name != ".." && strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if seen++; strings.Contains(string(text), "os.CreateTemp(") {
			t.Errorf("%s: use files.Temp", path)
		}
		return err
	})
	if err != nil || seen < 500 {
		t.Errorf("looked into %d files, %v", seen, err)
	}
}
