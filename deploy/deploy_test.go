// Package deploy_test keeps the files of this folder honest: what they name exists, and they parse.
package deploy_test

import (
	"encoding/xml"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/contextengine/contextengine/hosts/openbrain/verbs"
	"github.com/contextengine/contextengine/internal/needs"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// variables returns the names of all variables that serve reads.
func variables(t *testing.T) []string {
	t.Helper()
	cmd, _, err := verbs.New(verbs.Parts{}).Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{verbs.EnvEmbedKey}
	for _, m := range regexp.MustCompile(`(?m)^ +--([a-z-]+)`).FindAllStringSubmatch(cmd.LocalFlags().FlagUsages(), -1) {
		names = append(names, verbs.EnvName(m[1]))
	}
	return names
}

// No file here, nor the document about them, names a variable that nobody reads.
func TestVariablesExist(t *testing.T) {
	known := variables(t)
	for _, name := range []string{"release/image.go", "compose.yaml", "openbrain.env.example", "contextengine-openbrain.service", "../docs/selfhosting.md"} {
		for _, v := range regexp.MustCompile(verbs.EnvPrefix+`[A-Z_]+`).FindAllString(read(t, name), -1) {
			if !slices.Contains(known, v) {
				t.Errorf("%s names %s, which is not read", name, v)
			}
		}
	}
}

// What a version is, the shell is not asked: make hands it on as it stands.
func TestVersionIsNoCommand(t *testing.T) {
	gnuMake := needs.Program(t, "make")
	for _, variable := range []string{"VERSION", "ONLY", "SIGN"} {
		word := "1.0.0\";touch touched;\""
		cmd := exec.CommandContext(t.Context(), gnuMake, "-n", "-C", "..", "release", variable+"="+word)
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "touched") || !strings.Contains(string(out), `"$`+variable+`"`) {
			t.Errorf("%s stands in the command: %v\n%s", variable, err, out)
		}
	}
}

// What cannot be compared is refused before anything is: a commit or a word that is no version, and a version that is lower.
func TestVersionsOfChanges(t *testing.T) {
	bash := needs.Program(t, "bash")
	for _, c := range []struct{ tag, version, want string }{
		{"HEAD", "0.2.1", "HEAD is no version"}, {"v0.2.0", "x", "x is no version"}, {"v0.2.0", "", " is no version"}, {"v0.2.0", "0.3", "0.3 is no version"},
		{"v0.2.0", "0.1.0", "0.1.0 is lower than v0.2.0"}, {"v0.10.0", "v0.9.0", "v0.9.0 is lower than v0.10.0"}, {"v77.2.0", "77.10.0-rc.1", "git knows no v77.2.0"},
	} {
		out, err := exec.CommandContext(t.Context(), bash, "api-changes", c.tag, c.version).CombinedOutput()
		var ended *exec.ExitError
		if !errors.As(err, &ended) || ended.ExitCode() != 2 || string(out) != "api-changes: "+c.want+"\n" {
			t.Errorf("%s %s: %v, %s, want %s", c.tag, c.version, err, out, c.want)
		}
	}
}

type service struct {
	Image       string
	Profiles    []string
	Environment map[string]string
	Ports       []string
	Volumes     []string
	User        string
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	Healthcheck struct{ Test []string }
	DependsOn   map[string]struct {
		Condition string
		Required  *bool
	} `yaml:"depends_on"`
}

func TestCompose(t *testing.T) {
	var file struct {
		Services map[string]service
		Volumes  map[string]any
	}
	if err := yaml.Unmarshal([]byte(read(t, "compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	s := file.Services["openbrain"]
	if !strings.HasPrefix(s.Image, "contextengine:") {
		t.Errorf("the image is %q, a release makes contextengine:VERSION", s.Image)
	}
	if !s.ReadOnly || s.User == "" || strings.HasPrefix(s.User, "0") || !slices.Contains(s.CapDrop, "ALL") || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
		t.Errorf("the server's container is not confined: %+v", s)
	}
	if s.Environment["OPENBRAIN_SERVE_KEYS"] == "" || len(s.Profiles) != 0 {
		t.Error("the server has no keys, or a profile")
	}
	if want := []string{"CMD", "/contextengine", "openbrain", "health"}; !slices.Equal(s.Healthcheck.Test, want) {
		t.Errorf("health check %q, want %q", s.Healthcheck.Test, want)
	}
	for name, s := range file.Services {
		if name != "openbrain" && !slices.Contains(s.Profiles, name) {
			t.Errorf("%s is not optional", name)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s is published beyond this machine: %s", name, p)
			}
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			if _, ok := file.Volumes[volume]; !ok {
				t.Errorf("%s uses the volume %s, which is not declared", name, volume)
			}
		}
		for on, d := range s.DependsOn {
			if other, ok := file.Services[on]; !ok || len(other.Profiles) > 0 && (d.Required == nil || *d.Required) {
				t.Errorf("%s needs %s, which may not be there", name, on)
			}
		}
	}
}

// The units parse; systemd, where it is there, has nothing to complain about.
func TestUnits(t *testing.T) {
	const program = "/usr/local/bin/contextengine"
	for _, u := range []struct {
		name, manager string
		want          []string
	}{
		{"contextengine-openbrain.service", "--system", []string{
			"ExecStart=" + program + " openbrain serve\n", "EnvironmentFile=/etc/contextengine/openbrain.env\n", "User=openbrain\n", "NoNewPrivileges=yes\n",
			"ProtectSystem=strict\n", "CapabilityBoundingSet=\n", "StateDirectory=openbrain\n",
		}},
		{"contextengine-sidecar.service", "--user", []string{
			"ExecStart=" + program + " serve --socket %t/contextengine.sock\n", "EnvironmentFile=-%E/contextengine/sidecar.env\n", "NoNewPrivileges=yes\n", "WantedBy=default.target\n",
		}},
	} {
		t.Run(u.name, func(t *testing.T) {
			text := read(t, u.name)
			for _, want := range u.want {
				if !strings.Contains(text, want) {
					t.Errorf("the unit lacks %q", want)
				}
			}
			analyze := needs.Program(t, "systemd-analyze")
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			unit := filepath.Join(t.TempDir(), u.name)
			if err := os.WriteFile(unit, []byte(strings.Replace(text, program, self, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), analyze, u.manager, "verify", "--recursive-errors=no", "--man=no", unit)
			cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir(), "HOME="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), "contextengine-") { // other units are none of ours
				t.Errorf("systemd-analyze verify: %v\n%s", err, out)
			}
		})
	}
}

// The agent of launchd is well-formed XML, and every argument is a flag of serve.
func TestLaunchAgent(t *testing.T) {
	const name = "local.contextengine.openbrain.plist"
	var list struct {
		Keys   []string `xml:"dict>key"`
		Labels []string `xml:"dict>string"`
		Words  []string `xml:"dict>array>string"`
	}
	decoder := xml.NewDecoder(strings.NewReader(read(t, name)))
	if err := decoder.Decode(&list); err != nil {
		t.Fatal(err)
	}
	if len(list.Labels) == 0 || list.Labels[0]+".plist" != name || !slices.Contains(list.Keys, "KeepAlive") {
		t.Errorf("label %q, keys %q", list.Labels, list.Keys)
	}
	if len(list.Words) < 4 || !slices.Equal(list.Words[:3], []string{"/usr/local/bin/contextengine", "openbrain", "serve"}) {
		t.Fatalf("arguments %q", list.Words)
	}
	cmd, _, err := verbs.New(verbs.Parts{}).Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.ParseFlags(list.Words[3:]); err != nil {
		t.Error(err)
	}
}
