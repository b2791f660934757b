package docs_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

// block is a block of code of a document, with the mark in front of it: <!-- mark -->.
type block struct {
	mark, kind, text string
	line             int
}

var marked = regexp.MustCompile(`^<!-- (.*) -->$`)

func (d document) blocks() []block {
	var out []block
	for i := 0; i < len(d.lines); i++ {
		kind, ok := strings.CutPrefix(d.lines[i], "```")
		if !ok {
			continue
		}
		b := block{kind: kind, line: i + 1}
		if m := marked.FindStringSubmatch(d.lines[max(i-1, 0)]); m != nil {
			b.mark = m[1]
		}
		for i++; i < len(d.lines) && d.lines[i] != "```"; i++ {
			b.text += d.lines[i] + "\n"
		}
		out = append(out, b)
	}
	return out
}

// ours are the documents for people who use the program.
func ours(t *testing.T) []document {
	t.Helper()
	var out []document
	for _, d := range documents(t, os.DirFS("..")) {
		if d.name == "README.md" || strings.HasPrefix(d.name, "docs/") {
			out = append(out, d)
		}
	}
	return out
}

// README is what a person takes in at one sitting.
func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 12<<10 {
		t.Errorf("README.md has %d bytes, want at most %d: what is more belongs to docs", len(text), 12<<10)
	}
	var prompts []string
	for line := range strings.SplitSeq(string(text), "\n") {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			prompts = append(prompts, command)
		}
	}
	if len(prompts) < 2 || prompts[0] != "go run ./cmd/contextengine replay" || prompts[1] != "go test -timeout 30m ./..." {
		t.Errorf("the first two commands are %q", prompts)
	}
}

// Code stands in a file that is compiled and tested: "file PATH" is all of it, "from PATH" a part.
func TestCodeIsThatOfTheExamples(t *testing.T) {
	found := 0
	for _, d := range ours(t) {
		for _, b := range d.blocks() {
			how, name, _ := strings.Cut(b.mark, " ")
			if how != "file" && how != "from" {
				continue
			}
			found++
			text, err := os.ReadFile(filepath.Join("..", name))
			switch {
			case err != nil:
				t.Errorf("%s:%d: %v", d.name, b.line, err)
			case how == "file" && string(text) != b.text, !strings.Contains(string(text), b.text):
				t.Errorf("%s:%d: the code is not that of %s", d.name, b.line, name)
			}
		}
	}
	if found < 5 {
		t.Errorf("%d blocks name the file that they are from", found)
	}
}

// Go code names its file.
func TestGoCodeIsMarked(t *testing.T) {
	for _, d := range ours(t) {
		for _, b := range d.blocks() {
			if b.kind == "go" && b.mark == "" {
				t.Errorf("%s:%d: the code does not say which file it is from", d.name, b.line)
			}
		}
	}
}

// An interface that is shown has the methods that it has.
func TestMethods(t *testing.T) {
	found := 0
	for _, d := range ours(t) {
		for _, b := range d.blocks() {
			if b.mark != "methods core.Store" {
				continue
			}
			found++
			var names []string
			for _, m := range regexp.MustCompile(`(?m)^\t(\w+)\(`).FindAllStringSubmatch(b.text, -1) {
				names = append(names, m[1])
			}
			var want []string
			for m := range reflect.TypeFor[core.Store]().Methods() {
				want = append(want, m.Name)
			}
			slices.Sort(names)
			if !slices.Equal(names, want) {
				t.Errorf("%s:%d: methods %q, want %q", d.name, b.line, names, want)
			}
		}
	}
	if found != 1 {
		t.Errorf("found %d", found)
	}
}

// A block of YAML, JSON5 or TOML is a configuration, unless it is marked as something else. So is JSON that speaks of plugins or agents.
func TestConfigurationsLoad(t *testing.T) {
	found := 0
	for _, d := range ours(t) {
		for _, b := range d.blocks() {
			if b.mark != "" || b.kind != "yaml" && b.kind != "json5" && b.kind != "toml" && (b.kind != "json" || !regexp.MustCompile(`"(plugins|agents)"`).MatchString(b.text)) {
				continue
			}
			for n, text := range strings.Split(b.text, "\n---\n") {
				found++
				if _, err := builtin.New().Load(registry.Bytes(fmt.Sprintf("%s:%d (%d)", d.name, b.line, n+1), b.kind, []byte(text))); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d configurations", found)
	}
}

var (
	variable = regexp.MustCompile(`^([A-Z_]+)=('[^']*'|\S*) +`)
	word     = regexp.MustCompile(`'([^']*)'|"([^"]*)"|(\S+)`)
)

// command returns the arguments of a line that runs the program, and what is read by it.
func command(line string) (args []string, input string, ok bool) {
	line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
	for variable.MatchString(line) {
		line = variable.ReplaceAllString(line, "")
	}
	line = strings.Replace(line, "go run ./cmd/contextengine", "contextengine", 1)
	rest, ok := strings.CutPrefix(line, "contextengine ")
	if !ok || strings.Contains(rest, "$(") {
		return nil, "", false
	}
	for _, m := range word.FindAllStringSubmatch(rest, -1) {
		text := m[1] + m[2] + m[3]
		if m[3] != "" && strings.IndexByte("#|>&;[", text[0]) >= 0 {
			break
		}
		if m[3] == "<" {
			input = "?"
			continue
		}
		if input == "?" {
			input = text
			continue
		}
		args = append(args, text)
	}
	return args, input, true
}

// Every command line is understood: there is such a verb, with such flags.
func TestCommandLinesAreUnderstood(t *testing.T) {
	found := 0
	for _, d := range ours(t) {
		for _, b := range d.blocks() {
			for line := range strings.SplitSeq(b.text, "\n") {
				args, _, ok := command(line)
				if !ok || b.kind == "go" {
					continue
				}
				found++
				var out, errs bytes.Buffer
				if code := cli.Run(t.Context(), builtin.New(), append(args, "--help"), cli.IO{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}); code != cli.ExitOK {
					t.Errorf("%s:%d: %s\n%s", d.name, b.line, line, errs.String())
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("found %d command lines", found)
	}
}

// Blocks marked with "run" are run, all of a document in one folder, one after the other, and print what stands there. "…" stands for any text, and figures under p50 and
// p95 are times.
func TestOutputs(t *testing.T) {
	found := 0
	for _, d := range ours(t) {
		home, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.CopyFS(filepath.Join(dir, "examples", "transcript"), os.DirFS(filepath.Join(home, "../examples/transcript"))); err != nil {
			t.Fatal(err)
		}
		t.Run(d.name, func(t *testing.T) {
			t.Chdir(dir)
			t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
			for _, b := range d.blocks() {
				if name, ok := strings.CutPrefix(b.mark, "save "); ok {
					if err := os.WriteFile(name, []byte(b.text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if b.mark == "run" || b.mark == anyOrder {
					found++
					runBlock(t, d.name, b)
				}
			}
		})
	}
	if found < 3 {
		t.Errorf("found %d blocks to run", found)
	}
}

// TestExamplesPrint: blocks marked with "printed by" and the folder of an example are what that prints; "…" stands for any text.
func TestExamplesPrint(t *testing.T) {
	found := 0
	for _, d := range ours(t) {
		for _, b := range d.blocks() {
			folder, ok := strings.CutPrefix(b.mark, "printed by ")
			if !ok {
				continue
			}
			found++
			cmd := exec.CommandContext(t.Context(), "go", "run", "./"+folder)
			cmd.Dir = ".."
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v", folder, err)
			}
			if diff := differ(b.text, string(out)); diff != "" {
				t.Errorf("%s:%d: %s: %s\nit prints\n%s", d.name, b.line, folder, diff, out)
			}
		}
	}
	if found == 0 {
		t.Error("found no block")
	}
}

func runBlock(t *testing.T, name string, b block) {
	t.Helper()
	for part := range strings.SplitSeq("\n"+b.text, "\n$ ") {
		first, want, _ := strings.Cut(part, "\n")
		args, input, ok := command(first)
		if !ok {
			continue
		}
		var stdin []byte
		if input != "" {
			var err error
			if stdin, err = os.ReadFile(input); err != nil {
				t.Fatal(err)
			}
		}
		environ := os.Environ()
		for line := first; ; {
			m := variable.FindStringSubmatch(line)
			if m == nil {
				break
			}
			environ, line = append(environ, m[1]+"="+strings.Trim(m[2], "'")), line[len(m[0]):]
		}
		var out bytes.Buffer
		cli.Run(t.Context(), builtin.New(), args, cli.IO{Stdin: bytes.NewReader(stdin), Stdout: &out, Stderr: &out, Environ: environ})
		got := out.String()
		if b.mark == anyOrder {
			want, got = sorted(want), sorted(got)
		}
		if diff := differ(want, got); diff != "" {
			t.Errorf("%s:%d: %s: %s\nit prints\n%s", name, b.line, first, diff, out.String())
		}
	}
}

// anyOrder marks commands whose lines come as they are ready.
const anyOrder = "run, lines in any order"

func sorted(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

var gap = regexp.MustCompile(` {2,}`)

// differ says where an output is not the one wanted.
func differ(want, got string) string {
	rest := strings.Split(strings.TrimRight(timeless(got), "\n"), "\n")
	anywhere := false
	for line := range strings.SplitSeq(strings.TrimRight(timeless(want), "\n"), "\n") {
		if line == "…" {
			anywhere = true
			continue
		}
		pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + "$")
		for anywhere && len(rest) > 0 && !pattern.MatchString(rest[0]) {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return fmt.Sprintf("the line %q is missing", line)
		}
		if !pattern.MatchString(rest[0]) {
			return fmt.Sprintf("got the line %q, want %q", rest[0], line)
		}
		rest, anywhere = rest[1:], false
	}
	if len(rest) > 0 && !anywhere {
		return fmt.Sprintf("there is more: %q", rest[0])
	}
	return ""
}

// timeless takes the columns with times out of tables.
func timeless(text string) string {
	var out []string
	at, width := -1, 0
	for line := range strings.SplitSeq(text, "\n") {
		cells := gap.Split(strings.TrimSpace(line), -1)
		for i, cell := range cells {
			if cell == "p50" {
				at, width = i, len(cells)
			}
		}
		if at >= 0 && len(cells) == width {
			line = strings.Join(append(cells[:at:at], cells[at+2:]...), "  ")
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
