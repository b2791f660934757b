package docs_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

// The states of a requirement, and what a row of each has to say: what shows it, what lacks, and why.
var states = []string{"Handled", "Partly", "Missing", "Host", "Different"}

var (
	requirementID = regexp.MustCompile(`^([A-Z]\d*)\.(\d\d)$`)
	stateRow      = regexp.MustCompile(`^\| (\w+) \| [^|]+ \| (\d+) \|$`)
	named         = regexp.MustCompile("`([^`]*)`|\"([^\"]*)\"|\\bchecks? ")
	testName      = regexp.MustCompile(`^(Test|Fuzz|Example|Benchmark)([A-Z0-9_]\w*)?$`)
	checkName     = regexp.MustCompile(`^[a-z]+\.[a-z-]+$`)
	testFunc      = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example|Benchmark)\w*)\(`)
	repoPath      = regexp.MustCompile(`^(\.?[\w-][\w.-]*/[\w./-]+|\.?[\w-]+\.(md|go|mod|yml|yaml|json|ts|js|mjs)|Makefile)$`)
)

// requirement is a row of the table of requirements.
type requirement struct {
	line                   int
	id, head, state, where string
	shown                  string
}

// requirementRows returns the rows, and how many of each state the page counts.
func requirementRows(text string) (rows []requirement, counts map[string]int) {
	counts = map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		if m := stateRow.FindStringSubmatch(line); m != nil {
			counts[m[1]], _ = strconv.Atoi(m[2])
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) < 4 || strings.HasPrefix(line, "|--") || strings.HasPrefix(line, "| Id |") {
			continue
		}
		r := requirement{line: i + 1}
		for n, to := range []*string{&r.id, &r.head, &r.state, &r.where, &r.shown} {
			if n < len(cells) {
				*to = strings.TrimSpace(cells[n])
			}
		}
		rows = append(rows, r)
	}
	return rows, counts
}

// wrongRequirements returns what is wrong with a page of requirements: ids, states, and names of what is not in the tree.
func wrongRequirements(ctx context.Context, tree fs.FS, text string) []string {
	var out []string
	rows, counts := requirementRows(text)
	seen, last, got := map[string]bool{}, map[string]int{}, map[string]int{}
	group := ""
	for _, r := range rows {
		wrong := func(format string, args ...any) {
			out = append(out, fmt.Sprintf("%d: %s: ", r.line, r.id)+fmt.Sprintf(format, args...))
		}
		m := requirementID.FindStringSubmatch(r.id)
		switch {
		case m == nil:
			wrong("is no id")
			continue
		case seen[r.id]:
			wrong("is there twice")
			continue
		}
		seen[r.id] = true
		n, _ := strconv.Atoi(m[2])
		if n != last[m[1]]+1 {
			wrong("the one before is %s.%02d", m[1], last[m[1]])
		}
		if m[1] != group && n != 1 {
			wrong("stands apart from its group")
		}
		group, last[m[1]] = m[1], n
		got[r.state]++
		shown := evidence(ctx, tree, r, wrong)
		switch {
		case !slices.Contains(states, r.state):
			wrong("%q is no state (known: %s)", r.state, strings.Join(states, ", "))
		case r.head == "" || r.where == "":
			wrong("says nothing")
		case r.state == "Handled" && shown == 0:
			wrong("nothing shows it")
		case r.state == "Partly" && !strings.Contains(r.where, "Lacks: "):
			wrong("does not say what lacks")
		}
	}
	for _, s := range states {
		if got[s] != counts[s] {
			out = append(out, fmt.Sprintf("of counts: %d rows are %s, the page says %d", got[s], s, counts[s]))
		}
	}
	return out
}

// evidence looks for what a row names, and returns how many tests, checks, commands and files its last cell has.
func evidence(ctx context.Context, tree fs.FS, r requirement, wrong func(string, ...any)) int {
	found := 0
	for n, cell := range []string{r.where, r.shown} {
		folder, file, checks := "", "", false
		for _, m := range named.FindAllStringSubmatch(cell, -1) {
			word, title := m[1], m[2]
			switch {
			case word == "" && title == "":
				checks = true
				continue
			case title != "" && n == 0:
				continue // words, not a title
			case title != "":
				if text, _ := fs.ReadFile(tree, file); !strings.Contains(string(text), title) {
					wrong("%q does not stand in %q", title, file)
				}
			case testName.MatchString(word):
				if !slices.Contains(testsIn(tree, folder), word) {
					wrong("there is no %s in %q", word, folder)
				}
			case checks && checkName.MatchString(word):
				if !slices.ContainsFunc(conformance.Checks(), func(c conformance.Check) bool { return c.ID == word }) {
					wrong("there is no check %s", word)
				}
			case strings.HasPrefix(word, "make "):
				if text, _ := fs.ReadFile(tree, "Makefile"); !strings.Contains("\n"+string(text), "\n"+strings.Fields(word)[1]+":") {
					wrong("there is no %q", word)
				}
			case strings.HasPrefix(word, "contextengine "):
				args := append(strings.Fields(word)[1:], "--help")
				if cli.Run(ctx, builtin.New(), args, cli.IO{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}) != cli.ExitOK {
					wrong("%q is not understood", word)
				}
			case repoPath.MatchString(word), isFolder(tree, word):
				info, err := fs.Stat(tree, word)
				if err != nil {
					wrong("there is no %s", word)
					continue
				}
				folder, file, checks = "", word, false
				if info.IsDir() {
					folder, file = word, ""
					continue // a folder alone shows nothing
				}
			default:
				continue // a name in a file
			}
			found += n
		}
	}
	return found
}

func isFolder(tree fs.FS, name string) bool {
	info, err := fs.Stat(tree, name)
	return err == nil && info.IsDir()
}

// testsIn returns the names of the tests in a folder.
func testsIn(tree fs.FS, folder string) []string {
	var out []string
	files, _ := fs.Glob(tree, path.Join(folder, "*_test.go"))
	for _, name := range files {
		text, _ := fs.ReadFile(tree, name)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			out = append(out, m[1])
		}
	}
	return out
}

// TestRequirements: every requirement has its line, and what the line names is there.
func TestRequirements(t *testing.T) {
	text, err := os.ReadFile("requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	if rows, _ := requirementRows(string(text)); len(rows) != 200 {
		t.Errorf("%d rows, want one for each of 200 ids", len(rows))
	}
	for _, wrong := range wrongRequirements(t.Context(), os.DirFS(".."), string(text)) {
		t.Errorf("requirements.md: line %s", wrong)
	}
}

// A row that says what is not so is found, whatever is wrong with it.
func TestBrokenRequirements(t *testing.T) {
	tree := fstest.MapFS{
		"core/a.go":      {Data: []byte("package core\n")},
		"core/a_test.go": {Data: []byte("package core\n\nfunc TestThere(t *testing.T) {}\n\nfunc Example() {}\n// func TestOld(t *testing.T) {}\n")},
		"web/a.test.ts":  {Data: []byte(`test("it's there", () => {});`)},
		"Makefile":       {Data: []byte("there:\n\ttrue\n")},
	}
	const good = "| A.01 | what | Handled | `core/a.go` | `core` `TestThere`, `Example`; check `budget.recount`; `web/a.test.ts` \"it's there\"; `make there`; `contextengine doctor --openclaw` |\n"
	row := func(line string) string { return strings.Replace(good, "A.01", "A.02", 1) + line }
	for name, c := range map[string]struct{ text, want string }{
		"good":                     {good, ""},
		"twice":                    {good + good, "A.01: is there twice"},
		"a gap":                    {good + "| A.03 | x | Host | why | |\n", "A.03: the one before is A.01"},
		"the first one missing":    {row(""), "A.02: the one before is A.00"},
		"apart":                    {good + "| B.01 | x | Host | why | |\n| A.02 | x | Host | why | |\n", "A.02: stands apart from its group"},
		"no id":                    {good + "| A.2 | x | Host | why | |\n", "A.2: is no id"},
		"no state":                 {"| A.01 | x | Works | why | `core` `TestThere` |\n", `A.01: "Works" is no state`},
		"nothing said":             {"| A.01 | x | Host | | |\n", "A.01: says nothing"},
		"nothing shows it":         {"| A.01 | x | Handled | `core/a.go` | `core` |\n", "A.01: nothing shows it"},
		"no gap named":             {"| A.01 | x | Partly | half | `core` `TestThere` |\n", "A.01: does not say what lacks"},
		"no such test":             {strings.Replace(good, "TestThere", "TestGone", 1), `A.01: there is no TestGone in "core"`},
		"a test in a comment":      {strings.Replace(good, "TestThere", "TestOld", 1), `A.01: there is no TestOld in "core"`},
		"test of another folder":   {strings.Replace(good, "`core` ", "`web` ", 1), `A.01: there is no TestThere in "web"`},
		"test without a folder":    {strings.Replace(good, "`core` ", "", 1), `A.01: there is no TestThere in ""`},
		"no such file":             {strings.Replace(good, "core/a.go", "core/b.go", 1), "A.01: there is no core/b.go"},
		"no such file of the root": {strings.Replace(good, "core/a.go", ".lint.yml", 1), "A.01: there is no .lint.yml"},
		"no such folder":           {strings.Replace(good, "`core` ", "`core/none` ", 1), "A.01: there is no core/none"},
		"no such title":            {strings.Replace(good, "it's there", "it's gone", 1), `A.01: "it's gone" does not stand in "web/a.test.ts"`},
		"title without a file":     {strings.Replace(good, "`web/a.test.ts` ", "", 1), `A.01: "it's there" does not stand in ""`},
		"no such check":            {strings.Replace(good, "budget.recount", "budget.guess", 1), "A.01: there is no check budget.guess"},
		"no such target":           {strings.Replace(good, "make there", "make gone", 1), `A.01: there is no "make gone"`},
		"no such command":          {strings.Replace(good, "contextengine doctor", "contextengine docter", 1), `A.01: "contextengine docter --openclaw" is not understood`},
		"counts":                   {strings.Replace(good, "Handled", "Missing", 1), "1 rows are Missing, the page says 0"},
	} {
		t.Run(name, func(t *testing.T) {
			counts := map[string]int{}
			rows, _ := requirementRows(c.text)
			for _, r := range rows {
				counts[r.state]++
			}
			page := c.text
			for _, s := range states {
				if name != "counts" {
					page = fmt.Sprintf("| %s | m | %d |\n", s, counts[s]) + page
				}
			}
			got := strings.Join(wrongRequirements(t.Context(), tree, page), "\n")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
