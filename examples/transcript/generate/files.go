package main

import (
	"fmt"
	"strings"
)

// file is the text of a source file with these functions, with line numbers as the tool prints them.
func file(pkg, doc string, functions ...string) string {
	var b strings.Builder
	line := 0
	put := func(format string, args ...any) {
		line++
		fmt.Fprintf(&b, "%4d  %s\n", line, fmt.Sprintf(format, args...))
	}
	put("// %s", doc)
	put("package %s", pkg)
	put("")
	for i, name := range functions {
		kind := []string{"stations", "events", "heights", "days", "rows"}[(len(name)+i)%5]
		put("// %s works on the %s of one harbour and leaves the input alone.", name, kind)
		put("func %s(ctx context.Context, harbour string, %s []%s) ([]%s, error) {", name, kind, singular(kind), singular(kind))
		put("\tif harbour == \"\" {")
		put("\t\treturn nil, fmt.Errorf(\"%s: %s: harbour is empty: %%w\", ErrInput)", pkg, name)
		put("\t}")
		put("\tout := make([]%s, 0, len(%s))", singular(kind), kind)
		put("\tfor _, x := range %s {", kind)
		switch (len(name) + i) % 3 {
		case 0:
			put("\t\tif x.At.Before(cutoff(ctx)) {")
			put("\t\t\tcontinue // older than what the chart covers")
			put("\t\t}")
		case 1:
			put("\t\tx.Height = math.Round(x.Height*%d) / %d", 10*(i+1), 10*(i+1))
		default:
			put("\t\tif err := x.Check(); err != nil {")
			put("\t\t\treturn nil, fmt.Errorf(\"%s: %s %%q: %%w\", harbour, err)", pkg, name)
			put("\t\t}")
		}
		put("\t\tout = append(out, x)")
		put("\t}")
		put("\treturn out, nil")
		put("}")
		put("")
	}
	return b.String()
}

func singular(kind string) string {
	return strings.ToUpper(kind[:1]) + strings.TrimSuffix(kind[1:], "s")
}

// tests is the output of a test run; those in failures fail for the reason given.
func tests(pkg string, names []string, failures map[string]string) string {
	var b strings.Builder
	for i, n := range names {
		fmt.Fprintf(&b, "=== RUN   %s\n", n)
		if why := failures[n]; why != "" {
			fmt.Fprintf(&b, "    %s\n--- FAIL: %s (0.%02ds)\n", why, n, i%7)
			continue
		}
		fmt.Fprintf(&b, "--- PASS: %s (0.%02ds)\n", n, i%7)
	}
	if len(failures) > 0 {
		fmt.Fprintf(&b, "FAIL\nFAIL\texample.com/tidetable/%s\t0.%d1s\nFAIL\n", pkg, len(names)%9)
	} else {
		fmt.Fprintf(&b, "PASS\nok  \texample.com/tidetable/%s\t0.%d1s\n", pkg, len(names)%9)
	}
	return b.String()
}

// matches is the output of a search: path, line and text of each hit.
func matches(pattern string, paths ...string) string {
	var b strings.Builder
	for i, p := range paths {
		fmt.Fprintf(&b, "%s:%d:\t%s\n", p, 17+23*i, strings.ReplaceAll(pattern, `\(`, "("))
	}
	fmt.Fprintf(&b, "%d matches\n", len(paths))
	return b.String()
}

// table is an answer of the database.
func table(columns string, rows ...string) string {
	return columns + "\n" + strings.Repeat("-", len(columns)) + "\n" + strings.Join(rows, "\n") + fmt.Sprintf("\n(%d rows)\n", len(rows))
}

func read(say, path, result string) step {
	return step{say: say, tool: "read_file", args: map[string]string{"path": path}, result: result}
}

func search(say, pattern, result string) step {
	return step{say: say, tool: "search", args: map[string]string{"pattern": pattern}, result: result}
}

func edit(say, path, old, replacement string) step {
	return step{say: say, tool: "edit_file", args: map[string]string{"path": path, "old": old, "new": replacement}, result: "1 replacement in " + path}
}

func run(say, command, result string, failed bool) step {
	return step{say: say, tool: "run", args: map[string]string{"command": command}, result: result, failed: failed}
}
