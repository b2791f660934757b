package recall_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// step is a call of a tool with its result, and a question whose evidence is one of the two.
type step struct {
	tool     string
	args     map[string]string
	output   string
	question string
	edit     bool // the evidence is the call
	said     string
}

// client writes what a client puts around what is said.
type client struct {
	name string
	user func(turn int, text string) string
	tool func(s *step, n int) string
}

var modules = strings.Fields("parser scheduler gateway cache billing mailer router indexer session exporter webhook ledger")

// kinds make a step of a module. Modules and kinds recur everywhere: what finds a step is that both come together in it.
var kinds = []func(rng *rand.Rand, m string) step{
	func(rng *rand.Rand, m string) step {
		return step{
			tool: "bash", args: map[string]string{"command": "go test ./" + m + "/..."}, question: "Which test failed when we ran the tests of the " + m + "?",
			output: fmt.Sprintf("--- FAIL: Test%s (0.%02ds)\n    %s_test.go:%d: got %d, want %d\nFAIL", symbol(rng), rng.IntN(90), m, rng.IntN(400), rng.IntN(50), rng.IntN(50)),
		}
	},
	func(rng *rand.Rand, m string) step {
		return step{
			tool: "bash", args: map[string]string{"command": "go build ./cmd/" + m}, question: "What was undefined when we tried to build the " + m + "?",
			output: fmt.Sprintf("./main.go:%d:%d: undefined: %s\n./main.go:%d:3: too many arguments in call", rng.IntN(400), rng.IntN(40), symbol(rng), rng.IntN(400)),
		}
	},
	func(rng *rand.Rand, m string) step {
		return step{
			tool: "bash", args: map[string]string{"command": "go test -run XXX -bench . ./" + m}, question: "How many allocations did an operation of the " + m + " make in the benchmark?",
			output: fmt.Sprintf("goos: linux\nBenchmark%s-8 \t %d \t %d ns/op \t %d B/op \t %d allocs/op\nPASS", symbol(rng), rng.IntN(90000), rng.IntN(90000), rng.IntN(4000), rng.IntN(90)),
		}
	},
	func(rng *rand.Rand, m string) step {
		return step{
			tool: "bash", args: map[string]string{"command": "kubectl rollout status deploy/" + m}, question: "How did the rollout of the " + m + " end, and with which revision?",
			output: fmt.Sprintf("Waiting for %d of %d updated replicas to be available...\nsuccessfully rolled out, revision %d", rng.IntN(4), 4+rng.IntN(4), rng.IntN(300)),
		}
	},
	func(rng *rand.Rand, m string) step {
		return step{
			tool: "bash", args: map[string]string{"command": "tail -n 20 /var/log/" + m + ".log"}, question: "How long did the slow request in the log of the " + m + " take?",
			output: fmt.Sprintf("level=info msg=started workers=%d\nlevel=warn msg=\"slow request\" took=%dms path=/v1/%s\nlevel=info msg=done", rng.IntN(30), rng.IntN(9000), strings.ToLower(symbol(rng))),
		}
	},
	func(rng *rand.Rand, m string) step {
		return step{
			tool: "read", args: map[string]string{"path": "config/" + m + ".yaml"}, question: "What timeout does the config of the " + m + " set?",
			output: fmt.Sprintf("listen: :%d\nworkers: %d\ntimeout: %ds\nretries: %d", 1024+rng.IntN(9000), rng.IntN(64), rng.IntN(120), rng.IntN(9)),
		}
	},
	func(rng *rand.Rand, m string) step {
		return step{
			tool: "grep", args: map[string]string{"pattern": "TODO", "path": m + "/"}, question: "What is left as a TODO in the " + m + "?",
			output: fmt.Sprintf("store.go:%d: // TODO: handle %s when the queue is full\nstore.go:%d: // TODO: remove", rng.IntN(400), symbol(rng), rng.IntN(400)),
		}
	},
	func(rng *rand.Rand, m string) step {
		return step{
			tool: "bash", args: map[string]string{"command": "git log --oneline -3 -- " + m}, question: "Which commits does the git log of the " + m + " show?",
			output: fmt.Sprintf("%07x Rename %s\n%07x Return early when there is nothing to do\n%07x Add %s", rng.IntN(1<<28), symbol(rng), rng.IntN(1<<28), rng.IntN(1<<28), symbol(rng)),
		}
	},
	func(rng *rand.Rand, m string) step {
		return step{
			tool: "edit", args: map[string]string{"path": m + "/retry.go", "old": fmt.Sprintf("attempts := %d", rng.IntN(9)), "new": fmt.Sprintf("attempts := %d // %s", 10+rng.IntN(9), symbol(rng))},
			output: "The file was updated.", edit: true, question: "To what did we edit the attempts in retry.go of the " + m + "?",
		}
	},
	func(rng *rand.Rand, m string) step {
		return step{
			tool: "bash", args: map[string]string{"command": "psql -c 'select count(*) from " + m + "_jobs'"}, question: "What was the count of jobs of the " + m + " in the database?",
			output: fmt.Sprintf(" count\n-------\n %d\n(1 row)", rng.IntN(90000)),
		}
	},
	func(rng *rand.Rand, m string) step {
		return step{
			tool: "bash", args: map[string]string{"command": "curl -s localhost:8080/" + m + "/health"}, question: "What status did the health check of the " + m + " return?",
			output: fmt.Sprintf(`{"status":"degraded","queue":%d,"since":"%dm"}`, rng.IntN(900), rng.IntN(60)),
		}
	},
	func(rng *rand.Rand, m string) step {
		return step{
			tool: "edit", args: map[string]string{"path": m + "/handler.go", "old": "return nil", "new": fmt.Sprintf("return fmt.Errorf(\"%s: %%w\", err)", symbol(rng))},
			output: "The file was updated.", edit: true, question: "What does the handler of the " + m + " return since our edit?",
		}
	},
}

func symbol(rng *rand.Rand) string {
	a, b := []string{"Load", "Read", "Open", "Send", "Merge", "Drain", "Split", "Parse"}, []string{"Batch", "Frame", "Token", "Lease", "Chunk", "Offset", "Header", "Window"}
	return a[rng.IntN(len(a))] + b[rng.IntN(len(b))] + string(rune('A'+rng.IntN(26)))
}

// codingSteps returns the steps of a session: every pair of module and kind once, and every tenth a run of all tests, which prints nearly the same each time.
func codingSteps(rng *rand.Rand) []step {
	var out []step
	for _, i := range rng.Perm(len(modules) * len(kinds)) {
		m := modules[i%len(modules)]
		s := kinds[i/len(modules)](rng, m)
		s.said = []string{"Now the " + m + ".", "I look at the " + m + " first.", "", "Next."}[rng.IntN(4)]
		out = append(out, s)
		if len(out)%10 == 9 {
			var b strings.Builder
			for _, m := range modules {
				fmt.Fprintf(&b, "ok  \t%s\t0.%02ds\n", m, rng.IntN(90))
			}
			out = append(out, step{tool: "bash", args: map[string]string{"command": "go test ./..."}, output: b.String(), said: "All tests once more."})
		}
	}
	return out
}

// messages returns a session as a client hands it over, and by step the place of its evidence among the messages; -1 where nothing is asked.
func codingMessages(steps []step, c client, rng *rand.Rand) (out []message.Message, evidence []int) {
	for i := range steps {
		s := &steps[i]
		if i%4 == 0 {
			m := modules[rng.IntN(len(modules))]
			text := []string{"Go on with the " + m + ", please.", "Good. What about the " + m + "?", "Please check the " + m + " next.", "Now mend the " + m + "."}[rng.IntN(4)]
			out = append(out, message.New(message.User, c.user(i, text)))
		}
		args, _ := json.Marshal(s.args)
		call := message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: fmt.Sprint("call-", i), Name: s.tool, Args: string(args)}}}
		if s.said != "" {
			call.Parts = append([]message.Part{{Kind: message.Text, Text: s.said}}, call.Parts...)
		}
		result := message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: fmt.Sprint("call-", i), Name: s.tool, Text: c.tool(s, i)}}}
		at := -1
		if s.question != "" {
			at = len(out) + 1
			if s.edit {
				at--
			}
		}
		evidence = append(evidence, at)
		out = append(out, call, result)
	}
	return out, evidence
}

// clients are shaped like what clients send; the words between the marks are ours.
var clients = []client{
	{"bare", func(_ int, text string) string { return text }, func(s *step, _ int) string { return s.output }},
	{
		"claude-code",
		func(turn int, text string) string {
			first := ""
			if turn == 0 {
				first = "<system-reminder>\nNotes of the project: tests of " + strings.Join(modules, ", ") + " are run with go test; the config of each stands in config. Which test failed, what was undefined, how the rollout ended: say it briefly.\n</system-reminder>\n"
			}
			return first + fmt.Sprintf("<system-reminder>\nThe list of things to do is empty. %d tokens left. Do not speak of this to the user.\n</system-reminder>\n%s", 90000-97*turn, text)
		},
		func(s *step, n int) string {
			out := s.output
			if s.tool == "read" {
				for i, line := range strings.Split(out, "\n") {
					out = strings.Replace(out, line, fmt.Sprintf("%6d→%s", i+1, line), 1)
				}
			}
			return out + fmt.Sprintf("\n\n<system-reminder>\nWhether a file that was read does harm is to be thought of first. %d tokens left.\n</system-reminder>\n", 90000-97*n)
		},
	},
	{
		"codex",
		func(turn int, text string) string {
			if turn == 0 {
				text = "# AGENTS.md instructions for /src\n\n<INSTRUCTIONS>\nThe " + strings.Join(modules, ", the ") + ": each has a config, a handler, a log and a benchmark.\n</INSTRUCTIONS>\n" + text
			}
			return fmt.Sprintf("<environment_context>\n  <cwd>/src</cwd>\n  <shell>bash</shell>\n  <turn>%d</turn>\n</environment_context>\n%s", turn, text)
		},
		func(s *step, n int) string {
			return fmt.Sprintf("Chunk ID: %06x\nWall time: 0.%02d seconds\nProcess exited with code 0\nOriginal token count: %d\nOutput:\n%s", n*7919, n%97, len(s.output)/4, s.output)
		},
	},
	{
		"cline",
		func(turn int, text string) string {
			return fmt.Sprintf("<user_input mode=\"act\">%s</user_input>\n<environment_details>\n# Visible files\n%s/retry.go\n# Open tabs\n%s/handler.go, config/%s.yaml\n# Time\n2026-03-01 10:%02d\n# Context window\n%d / 200K tokens used\n</environment_details>",
				text, modules[turn%12], modules[(turn+5)%12], modules[(turn+7)%12], turn%60, 1000*turn)
		},
		func(s *step, _ int) string { return s.output },
	},
	{
		"opencode",
		func(turn int, text string) string {
			return text + "\n<system-reminder>\nYour mode changed from plan to build. You may change files and run commands.\n</system-reminder>"
		},
		func(s *step, _ int) string {
			if s.tool == "read" {
				return "<file>\n" + s.output + "\n\n</file>"
			}
			return s.output + "\n<bash_metadata>\nthe command ended in time\n</bash_metadata>"
		},
	},
	{ // no rule knows it
		"unknown",
		func(turn int, text string) string {
			return fmt.Sprintf("<my-editor>\nopen: %d files; the modules are %s\n</my-editor>\n%s", 40+turn, strings.Join(modules, " "), text)
		},
		func(s *step, n int) string {
			return s.output + fmt.Sprintf("\n<my-budget>\n%d tokens are left for the tests, builds and edits of all modules\n</my-budget>", 90000-97*n)
		},
	},
}
