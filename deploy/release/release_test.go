package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// prepared is a release whose program is a text, and everything else as small.
func prepared(t *testing.T) *release {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	r := &release{root: root, out: t.TempDir(), work: t.TempDir(), version: "1.2.3-rc1", commit: "abc", date: time.Unix(1_700_000_000, 0).UTC(), url: "https://example.com/r", targets: all}
	r.texts = texts{
		licence: []byte("licence"), readme: []byte("readme"), notices: []byte("notices"), pages: []file{{name: "contextengine.1", data: []byte("page")}},
		completions: map[string][]byte{"bash": []byte("b"), "zsh": []byte("z"), "fish": []byte("f"), "powershell": []byte("p")},
	}
	for _, to := range all {
		if err := os.MkdirAll(filepath.Dir(r.path(to)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(r.path(to), []byte("program of "+to.String()), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, e := range entries {
		if out[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// What is packed twice, in other folders, at other times and by a file system with other orders, is the same to the byte, and all that is promised is there.
func TestPackedTwiceAlike(t *testing.T) {
	var seen []map[string][]byte
	for range 2 {
		r := prepared(t)
		for _, step := range []func() error{
			func() error { return r.archives(t.Context()) }, func() error { return r.packages(t.Context()) }, func() error { return r.images(t.Context()) }, func() error { return r.npm(t.Context()) },
			func() error { return r.formula(t.Context()) }, func() error { return r.checksums(t.Context()) },
		} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		seen = append(seen, contents(t, r.out))
	}
	for name, data := range seen[0] {
		if !bytes.Equal(data, seen[1][name]) {
			t.Errorf("%s differs", name)
		}
		if name != sumsFile && !strings.Contains(string(seen[0][sumsFile]), "  "+name+"\n") {
			t.Errorf("%s has no checksum", name)
		}
	}
	for _, to := range all {
		suffix := map[bool]string{true: ".zip", false: ".tar.gz"}[to.os == "windows"]
		if want := "contextengine_1.2.3-rc1_" + to.os + "_" + to.arch + suffix; seen[0][want] == nil {
			t.Errorf("%s is missing", want)
		}
	}
	if got, want := len(seen[0]), 6+4+2+8+2; got != want { // archives, deb and rpm, images, npm packages, formula and checksums
		t.Errorf("%d files, want %d", got, want)
	}
}

// The image has a program, the authorities of certificates, and a folder for its user; its user is not root.
func TestImage(t *testing.T) {
	r := prepared(t)
	image, err := r.image(target{"linux", "arm64"})
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.Config.User != "65532:65532" || config.Config.Healthcheck == nil {
		t.Errorf("configuration: %+v", config)
	}
	data, err := r.layer([]byte("program"))
	if err != nil {
		t.Fatal(err)
	}
	owners, reader := map[string]int{}, tar.NewReader(bytes.NewReader(data))
	for h, err := reader.Next(); err == nil; h, err = reader.Next() {
		owners[h.Name] = h.Uid
	}
	if owner, ok := owners["data/"]; !ok || owner != user {
		t.Errorf("data belongs to %d (there: %v)", owner, ok)
	}
	if _, ok := owners["contextengine"]; !ok {
		t.Error("there is no program")
	}
	if n := bytes.Count(certificates(), []byte("BEGIN CERTIFICATE")); n < 50 {
		t.Errorf("%d authorities", n)
	}
}

// The packed plugin has one version everywhere, names the programs of all platforms in it, and runs no script; a platform's package fits that platform alone.
func TestNPM(t *testing.T) {
	r := prepared(t)
	if err := r.npm(t.Context()); err != nil {
		t.Fatal(err)
	}
	plugin := unpacked(t, filepath.Join(r.out, "openclaw-openbrain-context-1.2.3-rc1.tgz"))
	var m npmManifest
	if err := json.Unmarshal(plugin["package/package.json"], &m); err != nil {
		t.Fatal(err)
	}
	if m.Version != "1.2.3-rc1" || len(m.OptionalDependencies) != len(all) || m.OptionalDependencies["contextengine-win32-arm64"] != "1.2.3-rc1" {
		t.Errorf("the plugin's manifest: %+v", m)
	}
	for _, name := range []string{"package/openclaw.plugin.json", "package/dist/names.js"} {
		if !bytes.Contains(plugin[name], []byte(`"1.2.3-rc1"`)) {
			t.Errorf("%s has another version", name)
		}
	}
	var metadata struct {
		License    string
		Repository struct{ URL string }
		Homepage   string
		Bugs       struct{ URL string }
		OpenClaw   struct {
			Install struct {
				NpmSpec, DefaultChoice, MinHostVersion string
				RequiredPlatformPackages               []string
			}
		}
		Files []string
	}
	if err := json.Unmarshal(plugin["package/package.json"], &metadata); err != nil {
		t.Fatal(err)
	}
	install := metadata.OpenClaw.Install
	if metadata.License != "MIT" || metadata.Repository.URL == "" || metadata.Homepage == "" || metadata.Bugs.URL == "" || install.NpmSpec != "openclaw-openbrain-context" || install.DefaultChoice != "npm" || install.MinHostVersion == "" {
		t.Errorf("the plugin's metadata: %+v", metadata)
	}
	if want := slices.Sorted(maps.Keys(r.platforms())); !slices.Equal(install.RequiredPlatformPackages, want) {
		t.Errorf("the host is to look for %v, want %v", install.RequiredPlatformPackages, want)
	}
	licence, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(plugin["package/LICENSE"], licence) {
		t.Error("the plugin has another licence")
	}
	for _, name := range metadata.Files {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(plugin)), func(path string) bool {
			return path == "package/"+name || strings.HasPrefix(path, "package/"+name+"/")
		}) {
			t.Errorf("the plugin has no %s", name)
		}
	}
	one := unpacked(t, filepath.Join(r.out, "contextengine-darwin-x64-1.2.3-rc1.tgz"))
	var platform npmManifest
	if err := json.Unmarshal(one["package/package.json"], &platform); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(platform.OS, []string{"darwin"}) || !slices.Equal(platform.CPU, []string{"x64"}) || string(one["package/bin/contextengine"]) != "program of darwin/amd64" {
		t.Errorf("the package of a platform: %+v", platform)
	}
	for name, files := range map[string]map[string][]byte{"plugin": plugin, "platform": one} {
		if bytes.Contains(files["package/package.json"], []byte(`"scripts"`)) {
			t.Errorf("the %s has scripts", name)
		}
	}
}

func unpacked(t *testing.T, path string) map[string][]byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out, reader := map[string][]byte{}, tar.NewReader(z)
	for {
		h, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if out[h.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}

// A signature is made by the command that is given, over the checksums; without one that is said, and with one that fails the release fails.
func TestSignature(t *testing.T) {
	r := prepared(t)
	r.sign = "cp " + filepath.Join(r.root, "LICENSE") // cp LICENSE SHA256SUMS stands in for a signer that writes
	if err := r.checksums(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, r.out)[sumsFile]; !bytes.HasPrefix(got, []byte("MIT License")) {
		t.Error("the command was not run over the checksums")
	}
	r.sign = "false"
	if err := r.checksums(t.Context()); err == nil {
		t.Error("a signature that failed is no error")
	}
}

// A platform that is named twice is made once: a formula names every archive once.
func TestTargetsOf(t *testing.T) {
	got, err := targetsOf("linux/amd64, windows/arm64,linux/amd64")
	if want := []target{{"linux", "amd64"}, {"windows", "arm64"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{}, {"-version", "v1"}, {"-version", "1.0.0", "-only", "plan9/amd64"}, {"-version", "1.0.0", "-out", "."}} {
		if err := run(t.Context(), args); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

// TestVersionForms: what npm, Debian and Red Hat would read differently, or not at all, is refused before anything is built.
func TestVersionForms(t *testing.T) {
	for version, want := range map[string]bool{
		"0.1.0": true, "10.20.30": true, "1.2.3-rc.1": true, "1.2.3-0.a-b.10": true, "": false, "v0.1.0": false, "0.1": false, "01.2.3": false, "1.2.3-01": false,
		"1.2.3-": false, "1.2.3-a..b": false, "1.2.3+x": false, "1 2": false, "$(id)": false, "1.2.3\n": false,
	} {
		if got := semantic.MatchString(version); got != want {
			t.Errorf("%q: %t", version, got)
		}
	}
}

// What ends npm's launcher ends the program, too, whichever signal it is, and its end is the launcher's.
func TestLauncherSignals(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("not run: there is no node")
	}
	cpu := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if cpu == "" {
		cpu = runtime.GOARCH
	}
	modules := filepath.Join(t.TempDir(), "with blanks", "node_modules")
	put := func(path, text string) {
		t.Helper()
		path = filepath.Join(modules, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put("contextengine/contextengine.mjs", string(launcher))
	put("contextengine-"+runtime.GOOS+"-"+cpu+"/bin/contextengine", `#!/bin/sh
trap 'exit 40' INT; trap 'exit 41' TERM; trap 'exit 42' HUP; trap 'exit 43' QUIT
echo ready
i=0; while [ $i -lt 200 ]; do sleep 0.05; i=$((i+1)); done
`)
	for sent, want := range map[syscall.Signal]int{syscall.SIGINT: 40, syscall.SIGTERM: 41, syscall.SIGHUP: 42, syscall.SIGQUIT: 43} {
		cmd := exec.CommandContext(t.Context(), node, filepath.Join(modules, "contextengine", "contextengine.mjs"))
		cmd.WaitDelay = time.Second
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(sent); err != nil {
			t.Fatal(err)
		}
		var ended *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != want {
			t.Errorf("%v: %v, want exit code %d", sent, err, want)
		}
	}
}
