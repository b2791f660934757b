package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxLog is how much of a log, from its end, is read, in bytes.
const maxLog = 32 << 20

// logSign is a kind of line of the gateway's log that tells of turns without the engine.
type logSign struct {
	sign     *regexp.Regexp
	text, do string
	// named: the first group of sign is the engine's id.
	named bool
	// passes: it is over when the plugin says that the engine is back.
	passes bool
}

// passing is a sign that is over when the engine is back.
func passing(s logSign) logSign {
	s.passes = true
	return s
}

func degraded(reason, text, do string) logSign {
	return logSign{
		sign:  regexp.MustCompile(`Context engine "([^"]*)" degraded to "legacy" for this logical turn: ` + reason),
		named: true, text: "turns ran on legacy: " + text, do: do,
	}
}

// logSigns are the known signs; of several that fit a line the first one counts.
var logSigns = []logSign{
	degraded(`current-turn transcript fencing is not declared`, "the plugin that is loaded does not declare the fence before the current turn",
		"the plugin's build is too old: build it again (npm ci && npm run build) and restart the gateway"),
	degraded(`atomic idempotent turn advancement is not declared`, "the plugin that is loaded does not declare atomic, idempotent turns, or has no commitTurn",
		"the plugin's build is too old: build it again (npm ci && npm run build) and restart the gateway"),
	degraded(`context engine "[^"]*" is not registered`, "the engine is not registered: the plugin did not load, or the slot has another name",
		"openclaw plugins inspect "+openClawPlugin+" --runtime says why; then restart the gateway"),
	degraded(`context engine "[^"]*" is available for discovery only`, "the plugin was loaded for reading only, not for running",
		"restart the gateway; if it stays so, see that plugins.allow and entries."+openClawPlugin+".enabled let it run"),
	degraded(`host "[^"]*" is missing `, "the runtime of those turns, such as a command line backend, lacks what the engine asks for",
		"use the embedded runtime for these agents, or an engine that asks for less"),
	passing(degraded(`pending durable turn advancement could not be completed`, "the turn before could not be stored; the host keeps it and tries again",
		"bring the sidecar back: the plugin's own lines in the log name what failed, and the findings above what is wrong now")),
	degraded(`current-turn transcript admission receipt is unavailable`, "the host had no receipt of the current turn, which 2026.8.1 asks for too early",
		"update the host to 2026.8.2 or newer"),
	degraded(`openclaw-openbrain-context: the engine cannot be used as configured: `, "no engine can be made of the configuration: there is no such engine, part or key",
		"the line ends with what is wrong in engine, configFile or the environment: correct it and restart the gateway"),
	degraded(``, "for a reason that doctor does not know; it may be the engine's own", "read the line; if it names the plugin's configuration, correct that"),
	{
		sign: regexp.MustCompile(`Context engine "([^"]*)".* quarantining it for this process`), named: true,
		text: "the engine is quarantined: a call outside of turns failed, and compaction and subagents go to legacy until a restart",
		do:   "read the line for the cause, mend it, and restart the gateway",
	},
	{
		sign: regexp.MustCompile(`quarantined; downgraded to legacy|context engine downgraded to legacy`),
		text: "the engine is quarantined: compaction and subagents go to legacy until a restart",
		do:   "find what failed first further up in the log, mend it, and restart the gateway",
	},
	{
		sign: regexp.MustCompile(`Context engine "([^"]*)".* is registered for read-only discovery only; falling back`), named: true,
		text: "the plugin was loaded for reading only where the engine was asked for", do: "restart the gateway",
	},
	{
		sign: regexp.MustCompile(`context engine assemble failed`), passes: true, text: "prompts could not be assembled: the model saw the host's own messages",
		do: "see that the sidecar runs and answers; the line names the cause",
	},
	{
		sign: regexp.MustCompile(`context engine bootstrap failed`), passes: true, text: "sessions could not be opened in the engine",
		do: "see that the sidecar runs and that its store can be reached; the line names the cause",
	},
	{
		sign: regexp.MustCompile(`durable turn advancement remains queued`), passes: true, text: "turns could not be stored and wait in the host",
		do: "bring the sidecar and its store back; the host then stores them. Until then turns run on legacy",
	},
	{
		sign: logAway, passes: true,
		text: "turns were answered without the engine, with the newest messages that fit; the plugin keeps them and stores them later",
		do:   "bring the sidecar and its store back: the line names the cause, and a later one says that the engine is back",
	},
	{
		sign: regexp.MustCompile(`Preflight compaction required but failed`), passes: true, text: "turns failed, because the history was over the window and could not be compacted",
		do: "the line names the cause: a sidecar or model that is away, or a window too small for system prompt and newest messages",
	},
}

// logStart is the sign that a gateway started, logAway and logBack are what the plugin says of each agent's engine when it goes and when it comes back.
var (
	logStart = regexp.MustCompile(`^(?:\S+ )?(?:\[gateway\] ready|gateway ready)`)
	logAway  = regexp.MustCompile(`openclaw-openbrain-context: .* until the engine is back, turns are answered`)
	logBack  = regexp.MustCompile(`openclaw-openbrain-context: the engine is back after `)
)

// seen is what was found of a sign.
type seen struct {
	count, line int
	when        string
	// past: what ended it, after the newest; empty when nothing did.
	past string
}

// What ends what a sign tells of.
const (
	restarted = "before the gateway's last start"
	cameBack  = "before the engine was back"
)

// log says what the gateway's log tells of turns without the engine. What is older than the gateway's last start, or than the engine's return, is no failure.
func (o *inspection) log(ctx context.Context, c hostConfig) {
	const name = "gateway log"
	path := o.findLog(c)
	if path == "" {
		o.note(name, "none is found, so that nothing is known of what happened in turns", "name it with --openclaw-log FILE")
		return
	}
	found, err := scanLog(ctx, path, engineIDs(c))
	if err != nil {
		text := path + " cannot be read: " + causeOf(err).Error()
		if o.flags.log != "" {
			o.broken(name, text, "correct --openclaw-log")
		} else {
			o.note(name, text, "name another one with --openclaw-log FILE")
		}
		return
	}
	clean := true
	for i, s := range logSigns {
		f := found[i]
		if f.count == 0 {
			continue
		}
		clean = false
		text := fmt.Sprintf("%s (%s, the newest at %s, line %d of %s", s.text, count(f.count, "line"), orUnknown(f.when), f.line, path)
		if f.past == "" {
			o.broken(name, text+")", s.do)
		} else {
			o.note(name, text+", "+f.past+")", "nothing, if it does not come back; otherwise: "+s.do)
		}
	}
	if clean {
		o.ok(name, "no sign of turns without the engine in %s", path)
	}
}

func orUnknown(when string) string {
	if when == "" {
		return "an unknown time"
	}
	return when
}

var rollingLog = regexp.MustCompile(`^openclaw(-[a-z0-9-]+)?-(\d{4}-\d{2}-\d{2}|YYYY-MM-DD)\.log$`)

// findLog returns the gateway's log: the one that was named, the one that the configuration names, or the newest one where the host writes them.
func (o *inspection) findLog(c hostConfig) string {
	if o.flags.log != "" {
		return o.flags.log
	}
	folders := []string{"/tmp/openclaw", filepath.Join(os.TempDir(), "openclaw"), filepath.Join(os.TempDir(), "openclaw-"+strconv.Itoa(os.Getuid()))}
	if named := c.tree.at("logging").text("file"); named != "" {
		named = o.app.expand(named)
		if !rollingLog.MatchString(filepath.Base(named)) {
			if _, err := os.Stat(named); err != nil {
				return ""
			}
			return named
		}
		folders = []string{filepath.Dir(named)}
	}
	var newest string
	var at time.Time
	for _, folder := range folders {
		files, _ := os.ReadDir(folder)
		for _, f := range files {
			info, err := f.Info()
			if err == nil && info.Mode().IsRegular() && rollingLog.MatchString(f.Name()) && info.ModTime().After(at) {
				newest, at = filepath.Join(folder, f.Name()), info.ModTime()
			}
		}
	}
	return newest
}

// scanLog counts the signs in a log, in the order of logSigns. Lines about engines with other ids than those given do not count.
func scanLog(ctx context.Context, path string, ids []string) ([]seen, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("it is no file")}
	}
	skipped := 0
	if over := info.Size() - maxLog; over > 0 {
		lines := &lineCounter{}
		if _, err := io.CopyN(lines, f, over); err != nil {
			return nil, err
		}
		skipped = lines.n
	}
	return readLog(ctx, io.LimitReader(f, maxLog), skipped, ids)
}

// lineCounter counts the ends of lines.
type lineCounter struct{ n int }

func (c *lineCounter) Write(p []byte) (int, error) {
	c.n += bytes.Count(p, []byte("\n"))
	return len(p), nil
}

// readLog counts the signs in what r holds; skipped lines were before.
func readLog(ctx context.Context, r io.Reader, skipped int, ids []string) ([]seen, error) {
	found := make([]seen, len(logSigns))
	away := 0 // agents whose engine went and did not come back
	in := bufio.NewReaderSize(r, 64<<10)
	for n := skipped + 1; ; n++ {
		line, err := in.ReadSlice('\n')
		head := string(line)
		for errors.Is(err, bufio.ErrBufferFull) { // what is this long is no line of the host's own
			_, err = in.ReadSlice('\n')
		}
		if n%1000 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		when, text := logLine(strings.TrimRight(head, "\r\n"))
		switch i := signOf(text, ids); {
		case logStart.MatchString(text):
			away = 0
			end(found, restarted, func(logSign) bool { return true })
		case logBack.MatchString(text):
			if away = max(0, away-1); away == 0 {
				end(found, cameBack, func(s logSign) bool { return s.passes })
			}
		case i >= 0:
			found[i] = seen{count: found[i].count + 1, line: n, when: when}
			if logAway.MatchString(text) {
				away++
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, err
		}
	}
}

// end says what ended the signs that ends is true for, where nothing else did.
func end(found []seen, why string, ends func(logSign) bool) {
	for i, s := range logSigns {
		if found[i].past == "" && ends(s) {
			found[i].past = why
		}
	}
}

// signOf returns the index of the sign that a line is, -1 for none.
func signOf(text string, ids []string) int {
	for i, s := range logSigns {
		if m := s.sign.FindStringSubmatch(text); m != nil {
			if s.named && !slices.Contains(ids, m[1]) {
				return -1
			}
			return i
		}
	}
	return -1
}

// logLine returns time and message of a line. The host writes JSON objects into its file and plain text to its terminal, both with the time in RFC 3339.
func logLine(line string) (when, text string) {
	var v struct {
		Time    string `json:"time"`
		Message string `json:"message"`
		First   any    `json:"0"`
		Second  any    `json:"1"`
	}
	if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &v) == nil {
		text = v.Message
		for _, other := range []any{v.First, v.Second} {
			if s, ok := other.(string); ok && text == "" {
				text = s
			}
		}
		return timeOf(v.Time), text
	}
	first, _, _ := strings.Cut(line, " ")
	return timeOf(first), line
}

// timeOf returns s if it is a time, and nothing otherwise: the text of a log is not repeated.
func timeOf(s string) string {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
