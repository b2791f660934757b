package cli_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

// step is one command of the walk over all verbs.
type step struct {
	args  string
	stdin string
	code  int
	// first is what the first line that is printed begins with: of standard error when the command fails, else of standard output.
	first string
	// leaves are the files that are there afterwards and were not before, by pattern. What belongs to the store of the program is not listed.
	leaves []string
}

// walk is every verb with no, bad and good input. %s stands for nothing: files are those of TestWalk.
var walk = []step{
	{args: "", code: 0, first: "contextengine "},
	{args: "repaly", code: 2, first: `error: unknown command "repaly", did you mean "replay"?`},
	{args: "version", code: 0, first: "contextengine "},
	{args: "--version", code: 0, first: "contextengine "},
	{args: "completion bash", code: 0, first: "# bash completion"},
	{args: "completion", code: 2, first: "error: completion needs SHELL: one of bash, fish, powershell, zsh"},
	{args: "completion tcsh", code: 2, first: `error: unknown command of completion "tcsh" (known: bash, fish, powershell, zsh)`},
	{args: "completion bash zsh", code: 2, first: `error: completion bash takes flags only, and there is "zsh"`},
	{args: "help", code: 0, first: "contextengine "},
	{args: "help replay", code: 0, first: "replay feeds"},
	{args: "help openbrain key new", code: 0, first: "Make a key and print it"},
	{args: "help nothing", code: 2, first: `error: unknown command "nothing" (known: agents, backup, `},
	{args: "help repaly", code: 2, first: `error: unknown command "repaly", did you mean "replay"?`},
	{args: "help openbrain serv", code: 2, first: `error: unknown command of openbrain "serv", did you mean "serve"?`},
	{args: "help replay now", code: 2, first: `error: replay has no commands, and there is "now"`},
	{args: "version --loud", code: 2, first: "error: unknown flag: --loud"},
	{args: "version now", code: 2, first: `error: version takes flags only, and there is "now"`},

	{args: "man", code: 2, first: "error: man needs DIR"},
	{args: "man chat.jsonl", code: 2, first: "error: chat.jsonl is no folder"},

	{args: "version --color always", code: 0, first: "contextengine "},
	{args: "repaly --color=always", code: 2, first: "\x1b[31;1merror:\x1b[0m unknown"},
	{args: "version --color red", code: 2, first: `error: unknown value of --color "red" (known: always, auto, never)`},
	{args: "list", code: 0, first: "engines"},
	{args: "list --json", code: 0, first: "{"},
	{args: "list --schema", code: 0, first: "{"},
	{args: "list hybrid", code: 2, first: "error: "},
	{args: "list --json --schema", code: 2, first: "error: --json and --schema: each prints something else: give one of them"},
	{args: "list --prompts --schema", code: 2, first: "error: --schema and --prompts: each prints something else"},

	{args: "init -o c1.yaml", code: 0, first: "wrote c1.yaml;", leaves: []string{"c1.yaml"}},
	{args: "init -o c1.yaml", code: 1, first: "error: --output: c1.yaml exists"},
	{args: "init -o c1.yaml --force", code: 0, first: "wrote c1.yaml;"},
	{args: "init -o c1.toml", code: 0, first: "wrote c1.toml;", leaves: []string{"c1.toml"}},
	{args: "init -o c1.json", code: 0, first: "wrote c1.json;", leaves: []string{"c1.json"}},
	{args: "init -o c1.json5", code: 0, first: "wrote c1.json5;", leaves: []string{"c1.json5"}},
	{args: "init -o c1.ini", code: 2, first: `error: --output: c1.ini: registry: template: unknown format "ini"`},
	{args: "init -o -", code: 0, first: "# Configuration of a context engine."},
	{args: "init -o folder --force", code: 2, first: "error: --output: folder"},
	{args: "init -o link.yaml --force", code: 1, first: "error: --output: link.yaml is no regular file"},
	{args: "init -o nowhere/c.yaml", code: 1, first: "error: --output: there is no folder for nowhere/c.yaml"},
	{args: "init --output=", code: 2, first: "error: --output: is empty"},
	{args: "doctor --config c1.yaml", code: 0, first: "ok    configuration"},
	{args: "doctor --config c1.toml", code: 0, first: "ok    configuration"},
	{args: "doctor --config c1.json", code: 0, first: "ok    configuration"},
	{args: "doctor --config c1.json5", code: 0, first: "ok    configuration"},
	{args: "doctor --config absent.yaml", code: 2, first: "fail  configuration  registry: load \"absent.yaml\""},
	{args: "doctor --config bad.yaml", code: 2, first: `fail  configuration  registry: load "bad.yaml": retriver: unknown key`},
	{args: "doctor --config bad.yaml --wide", code: 2, first: `fail  configuration  registry: load "bad.yaml": retriver: unknown key "retriver", did you mean "retriever"?`},
	{args: "doctor --timeout soon", code: 2, first: `error: --timeout: "soon" is not a length of time, such as 30s`},
	{args: "doctor --openclaw absent.json", code: 2, first: "fail  "},

	{args: "upgrade", code: 2, first: "error: upgrade changes nothing by itself: --check says what is to be done"},
	{args: "upgrade --check", code: 0, first: "ok    version        the defaults, as written for 0.1.0; this is "},
	{args: "upgrade --check --config old.yaml", code: 2, first: "ok    version        old.yaml, as written for 0.1.0; this is "},
	{args: "upgrade --check --config old.yaml --json", code: 2, first: "{"},
	{args: "upgrade --check --config old.yaml --from 0.0.9", code: 2, first: `error: registry: upgrade: unknown version "0.0.9" (known: 0.1.0)`},
	{args: "upgrade --check --config absent.yaml", code: 1, first: `error: registry: upgrade "absent.yaml": `},
	{args: "upgrade --check --config older.yaml", code: 2, first: "error: older.yaml was written for 0.0.3, of which nothing is known: name the nearest version with --from (known: 0.1.0)"},
	{args: "upgrade --check --config older.yaml --from 0.1.0", code: 0, first: "ok    version        older.yaml, as written for 0.1.0"},
	{args: "upgrade now", code: 2, first: `error: upgrade takes flags only, and there is "now"`},

	{args: "replay --budget 2k", code: 0, first: "example.jsonl: 1 session, 152 messages"},
	{args: "replay absent.jsonl", code: 1, first: "error: dataset: open absent.jsonl: "},
	{args: "replay empty.jsonl", code: 1, first: "error: empty.jsonl: no messages"},
	{args: "replay folder", code: 1, first: "error: "},
	{args: "replay not.json", code: 1, first: "error: not.json:1: expected a JSON object, found text that is not JSON"},
	{args: "replay torn.jsonl", code: 1, first: "error: torn.jsonl:2: expected "},
	{args: "replay chat.jsonl --budget much", code: 2, first: `error: budget "much": want a positive number of tokens`},
	{args: "replay chat.jsonl --format xyz", code: 2, first: `error: unknown value of --format "xyz" (known: anthropic, openai, pi)`},
	{args: "replay chat.jsonl --config absent.yaml", code: 2, first: `error: registry: load "absent.yaml": `},
	{args: "replay chat.jsonl --retriever=", code: 2, first: "error: --retriever: is empty"},
	{args: "replay chat.jsonl --jitter 200", code: 2, first: "error: --jitter: "},
	{args: "replay chat.jsonl --jitter nan", code: 2, first: "error: --jitter: "},
	{args: "replay chat.jsonl --cache-price nan", code: 2, first: "error: --cache-price: "},
	{args: "compare chat.jsonl --retriever recent,recent", code: 2, first: "error: two configurations are called recent+archive+memory"},
	{args: "compare chat.jsonl --retriever recent,hybrid --keep nan", code: 2, first: "error: --keep: "},
	{args: "inspect --agent ann --session one --limit -3", code: 2, first: "error: --limit and --offset: must not be negative"},
	{args: "replay chat.jsonl --cache-price 2", code: 2, first: "error: --cache-price: "},
	{args: "replay chat.jsonl --combinations some", code: 2, first: `error: unknown value of --combinations "some" (known: all)`},
	{args: "replay --budget", code: 2, first: "error: --budget needs a value: token budgets"},
	{args: "replay --=3", code: 2, first: `error: "--=3" is no flag: write --name`},
	{args: "replay chat.jsonl --store openbrain", code: 2, first: "chat.jsonl: 1 session, 4 messages"},
	{args: "compare chat.jsonl --store memory,openbrain", code: 2, first: "error: compare: chat.jsonl, hybrid+archive+openbrain"},
	{args: "replay -", stdin: short, code: 0, first: "stdin: 1 session, 4 messages"},

	{args: "explain --budget 2k", code: 0, first: "example.jsonl#afternoon, "},
	{args: "explain absent.jsonl", code: 1, first: "error: dataset: open absent.jsonl: no such file"},
	{args: "explain empty.jsonl", code: 1, first: "error: empty.jsonl: no messages"},
	{args: "explain chat.jsonl --call 0", code: 2, first: "error: --turn and --call count from 1"},
	{args: "explain chat.jsonl --turn 0", code: 2, first: "error: --turn and --call count from 1"},
	{args: "explain chat.jsonl --turn 1 --call 1", code: 2, first: "error: --turn and --call: each names a model call"},
	{args: "explain chat.jsonl --turn 99", code: 2, first: "error: there is no such call: "},
	{args: "explain chat.jsonl --session nobody", code: 2, first: `error: unknown session "nobody"`},
	{args: "explain chat.jsonl other.jsonl", code: 2, first: "error: "},

	{args: "compare chat.jsonl --retriever recent", code: 2, first: "error: one configuration has nothing to be compared with"},
	{args: "compare chat.jsonl --retriever recent,hybrid --budget 1k --html page.html", code: 0, first: "1 conversation, compared with recent+archive+memory", leaves: []string{"page.html"}},
	{args: "compare chat.jsonl --retriever recent,hybrid --budget 1k --html page.html", code: 1, first: "error: --html: page.html exists"},
	{args: "compare chat.jsonl --retriever recent,hybrid --budget 1k --html page.html --force", code: 0, first: "1 conversation"},
	{args: "compare chat.jsonl --retriever recent,hybrid --html folder --force", code: 1, first: "error: --html: folder is no regular file"},
	{args: "compare chat.jsonl --retriever recent,hybrid --html " + os.DevNull, code: 1, first: "error: --html: " + os.DevNull + " is no regular file"},
	{args: "compare chat.jsonl --retriever recent,hybrid --html " + os.DevNull + " --force", code: 1, first: "error: --html: " + os.DevNull + " is no regular file"},
	{args: "compare chat.jsonl --retriever recent,hybrid --session nobody --html other.html", code: 2, first: `error: unknown conversation "nobody"`},
	{args: "compare empty.jsonl --retriever recent,hybrid", code: 1, first: "error: empty.jsonl: no messages"},

	{args: "evaluate", code: 2, first: "error: evaluate needs DATASET"},
	{args: "evaluate absent.jsonl", code: 1, first: "error: questions: stat absent.jsonl: no such file"},
	{args: "evaluate empty.jsonl", code: 1, first: "error: "},
	{args: "evaluate not.json", code: 1, first: "error: "},
	{args: "evaluate questions.jsonl --html recall.html --details details.jsonl", code: 0, first: "questions.jsonl: 1 conversation", leaves: []string{"details.jsonl", "recall.html"}},
	{args: "evaluate questions.jsonl --details details.jsonl", code: 1, first: "error: --details: details.jsonl exists"},
	{args: "evaluate questions.jsonl --details details.jsonl --force", code: 0, first: "questions.jsonl: "},
	{args: "evaluate questions.jsonl --html " + os.DevNull, code: 1, first: "error: --html: " + os.DevNull + " is no regular file"},
	{args: "evaluate questions.jsonl --resume folder", code: 1, first: "error: --resume: folder is no regular file"},
	{args: "evaluate questions.jsonl --pack paper", code: 2, first: `error: unknown value of --pack "paper"`},
	{args: "evaluate questions.jsonl --set retriever.hybrid.nothing=1", code: 2, first: "error: "},

	{args: "import", code: 2, first: "error: import needs FILE"},
	{args: "import absent.jsonl", code: 1, first: "error: imports: open absent.jsonl: no such file"},
	{args: "import empty.jsonl", code: 1, first: "error: empty.jsonl: "},
	{args: "import not.json", code: 1, first: "error: "},
	{args: "import folder", code: 2, first: "error: "},
	{args: "import chat.jsonl --from chatgtp", code: 2, first: `error: unknown value of --from "chatgtp", did you mean "chatgpt"?`},
	{args: "import chat.jsonl --agent ann --session one", code: 0, first: "chat.jsonl (transcript): 1 session, 4 messages: imported 4"},

	{args: "export", code: 0, first: `{"header":`},
	{args: "export -o out.jsonl.gz", code: 0, first: "", leaves: []string{"out.jsonl.gz"}},
	{args: "export -o out.jsonl.gz", code: 1, first: "error: --output: out.jsonl.gz exists"},
	{args: "export -o " + os.DevNull + " --force", code: 1, first: "error: --output: " + os.DevNull + " is no regular file"},
	{args: "export --session one", code: 2, first: "error: --session: name the agent"},
	{args: "export --store nowhere", code: 2, first: `error: registry: load "command line": store: unknown store "nowhere"`},
	{args: "import out.jsonl.gz", code: 0, first: "out.jsonl.gz (export): 1 session, 4 messages: imported 0, 4 known already"},

	{args: "stats", code: 0, first: "store     sqlite"},
	{args: "stats --json", code: 0, first: "{"},
	{args: "stats --store memory", code: 1, first: `error: store "memory" cannot`},
	{args: "verify", code: 0, first: "ok: "},
	{args: "vacuum", code: 0, first: ""},
	{args: "backup", code: 2, first: "error: backup needs FILE"},
	{args: "backup a.db b.db", code: 2, first: `error: backup takes FILE, and there is "b.db", too`},
	{args: "backup copy.db", code: 0, first: "wrote copy.db, ", leaves: []string{"copy.db"}},
	{args: "backup copy.db", code: 1, first: "error: "},
	{args: "backup ./folder/copy.db", code: 0, first: "wrote ./folder/copy.db, ", leaves: []string{"folder/copy.db"}},
	{args: "backup nowhere/copy.db", code: 1, first: "error: FILE: there is no folder for nowhere/copy.db"},
	{args: "backup copy2.db --store memory", code: 1, first: `error: store "memory" cannot`},

	{args: "retain", code: 2, first: "error: name a bound"},
	{args: "retain --max-age old", code: 2, first: "error: --max-age: "},
	{args: "retain --max-age 1h --archive old.jsonl.gz", code: 0, first: "removed 0 messages"},
	{args: "retain --max-age 1h --archive " + os.DevNull, code: 1, first: "error: --archive: " + os.DevNull + " is no regular file"},
	{args: "retain --max-age 1h --dry-run", code: 0, first: "would remove 0 messages"},
	{args: "forget", code: 2, first: "error: --agent: "},
	{args: "forget --agent ann --session one", code: 2, first: `4 messages in 1 session of agent "ann"`},
	{args: "forget --agent ann --entry nobody --yes", code: 1, first: "error: "},
	{args: "forget --agent ann --receipts", code: 0, first: ""},
	{args: "reembed", code: 1, first: "error: "},

	{args: "agents", code: 0, first: "agent  sessions"},
	{args: "agents ann", code: 2, first: `error: agents takes flags only, and there is "ann"`},
	{args: "agents --store memory --json", code: 0, first: "[]"},
	{args: "sessions", code: 2, first: "error: --agent: name the agent"},
	{args: "sessions --agent ann", code: 0, first: "session"},
	{args: "inspect", code: 2, first: "error: --agent: name the agent"},
	{args: "inspect --agent ann", code: 0, first: "session"},
	{args: "inspect --agent nobody", code: 0, first: ""},
	{args: "inspect --agent ann --session one", code: 0, first: "ann/one"},
	{args: "inspect --agent ann --session nobody", code: 1, first: `error: session "nobody" of agent "ann" holds nothing`},
	{args: "inspect --agent ann --session one --search hello", code: 0, first: ""},
	{args: "inspect --agent ann --session nobody --search hello", code: 1, first: `error: session "nobody" of agent "ann" holds nothing`},
	{args: "inspect --agent ann --session one --expand nobody", code: 1, first: "error: "},

	{args: "experiment", code: 0, first: "A configuration with arms"},
	{args: "experiment status", code: 2, first: "error: the configuration has no arms"},
	{args: "experiment score", code: 2, first: "error: experiment score needs VALUE"},
	{args: "experiment score --agent ann --session one --metric good much", code: 2, first: `error: VALUE: "much" is no number`},
	{args: "experiment score --agent ann --session nobody --metric good 1", code: 1, first: "error: session "},
	{args: "experiment score --agent ann --session one --metric good 1", code: 0, first: `noted good 1 for session "one" of agent "ann"`},

	{args: "soak --sessions 0", code: 2, first: "error: --sessions"},
	{args: "soak --budget none", code: 2, first: "error: budget"},
	{args: "soak --time 100ms --every 1h", code: 2, first: "error: soak: options: every: must not be longer than time"},
	{args: "soak now", code: 2, first: "error: "},

	{args: "dataset", code: 0, first: "The public sets"},
	{args: "dataset fetsch", code: 2, first: `error: unknown command of dataset "fetsch", did you mean "fetch"?`},
	{args: "dataset list --in folder", code: 0, first: "name"},
	{args: "dataset list --in nowhere", code: 2, first: "error: --in: there is no folder nowhere"},
	{args: "dataset fetch", code: 2, first: "error: name a set"},
	{args: "dataset fetch nothing --to folder", code: 2, first: `error: unknown set "nothing"`},
	{args: "dataset fetch locomo --to data --from absent", code: 1, first: "locomo: "},
	{args: "dataset verify locomo --in folder", code: 1, first: "locomo: absent"},

	{args: "serve --schema", code: 0, first: "{"},
	{args: "serve --config bad.yaml", code: 2, first: `error: registry: load "bad.yaml"`},
	{args: "serve --log-level loud", code: 2, first: "error: "},
	{args: "serve --log-level warn", code: 0, first: ""},
	{args: "serve --socket folder", code: 1, first: "error: "},

	{args: "openbrain", code: 0, first: ""},
	{args: "openbrain serve --listen nowhere", code: 2, first: "error: "},
	{args: "openbrain serve --store nowhere", code: 2, first: "error: "},
	{args: "openbrain health --url nowhere", code: 2, first: "error: --url: "},
	{args: "openbrain health --url http://127.0.0.1:1", code: 1, first: "error: "},
	{args: "openbrain backup", code: 2, first: "error: --to is required"},
	{args: "openbrain backup --store sqlite --path brain.db --to brain-copy.db", code: 1, first: "error: backup: there is no store brain.db"},
	{args: "openbrain backup --to brain-copy.db", code: 1, first: "error: backup: there is no store "},
	{args: "openbrain backup --store sqlite --path copy.db --to brain-copy.db", code: 0, first: "wrote brain-copy.db", leaves: []string{"brain-copy.db", "copy.db-mark"}},
	{args: "openbrain key", code: 0, first: ""},
	{args: "openbrain key new --name laptop", code: 2, first: "error: --source is required"},
	{args: "openbrain key new --name laptop --source a", code: 2, first: "error: --keys is required"},
	{args: "openbrain key new --keys keys.json", code: 2, first: "error: --name is required"},
	{args: "openbrain key new --keys keys.json --name laptop --source a", code: 0, first: "", leaves: []string{"keys.json"}},
	{args: "openbrain key list --keys keys.json", code: 0, first: "name"},
	{args: "openbrain key list --keys absent.json", code: 1, first: "error: "},
	{args: "openbrain key revoke nobody --keys keys.json", code: 2, first: `error: openbrain key revoke takes flags only, and there is "nobody"`},
	{args: "openbrain key revoke --name nobody --keys keys.json", code: 1, first: "error: "},
}

// TestWalk goes through every verb with no, bad and good input: what it returns, what it says first, and that it leaves nothing behind but what it was asked for.
func TestWalk(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"chat.jsonl": short, "other.jsonl": short, "empty.jsonl": "", "not.json": "not json\n", "bad.yaml": "retriver: hybrid\n", "older.yaml": "# Written for contextengine 0.0.3\nstore: sqlite\n", "old.yaml": "retriever: {type: hybrid, k: 60}\n",
		"torn.jsonl": strings.Replace(short, `{"role":"user","content":"hello"}`, `{"role":"user","content"`, 1),
		"questions.jsonl": `{"conversation":"c","session":"s","id":"m1","role":"user","text":"The boat is called Wren."}
{"conversation":"c","question":"What is the boat called?","evidence":["m1"]}
`,
		"folder/note.txt": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("chat.jsonl", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	before := filesIn(t, dir)
	for _, s := range walk {
		t.Run(s.args, func(t *testing.T) {
			var out, errs bytes.Buffer
			args := strings.Fields(s.args)
			code := cli.Run(t.Context(), builtin.New(), args, cli.IO{Stdin: strings.NewReader(s.stdin), Stdout: &out, Stderr: &errs, Environ: os.Environ()})
			said := out.String()
			if code != cli.ExitOK && out.Len() == 0 {
				said = errs.String()
			}
			first, _, _ := strings.Cut(said, "\n")
			if code != s.code || !strings.HasPrefix(first, s.first) {
				t.Errorf("exit code %d, want %d; the first line is %q, want %q\n%s", code, s.code, first, s.first, errs.String())
			}
			if code != cli.ExitOK && errs.Len() == 0 && out.Len() == 0 {
				t.Error("it fails without a word")
			}
			for _, bad := range unsaid {
				if m := bad.FindString(errs.String()); m != "" {
					t.Errorf("it says %q:\n%s", m, errs.String())
				}
			}
			after := filesIn(t, dir)
			var left []string
			for _, name := range after {
				if !slices.Contains(before, name) {
					left = append(left, name)
				}
			}
			if !slices.Equal(left, s.leaves) || len(after) < len(before) {
				t.Errorf("it leaves %q behind, want %q", left, s.leaves)
			}
			before = after
		})
	}
}

// unsaid is what no error says: the names of things in the program, and what only a program needs to know.
var unsaid = []*regexp.Regexp{
	regexp.MustCompile(`(?m): (invalid|malformed|conflict|unsupported operation)$`), regexp.MustCompile(`: invalid `), regexp.MustCompile(`open: (open|stat) `), regexp.MustCompile(`accepts \d+ arg`), regexp.MustCompile(`requires at least`), regexp.MustCompile(`unknown command ".*" for`),
	regexp.MustCompile(`required flag\(s\)`), regexp.MustCompile(`strconv\.`), regexp.MustCompile(`(?i)panic`), regexp.MustCompile(`<nil>`),
}

// filesIn lists the files below a folder.
func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			out = append(out, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every verb takes part in the walk.
func TestWalkIsComplete(t *testing.T) {
	var verbs []string
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+) +[A-Z]`).FindAllStringSubmatch(run(t, builtin.New(), "", "--help").out, -1) {
		verbs = append(verbs, m[1])
	}
	if len(verbs) < 20 {
		t.Errorf("found the verbs %q", verbs)
	}
	for _, v := range verbs {
		if v != "help" && !slices.ContainsFunc(walk, func(s step) bool { return strings.HasPrefix(s.args, v) }) {
			t.Errorf("%s is not walked", v)
		}
	}
}
