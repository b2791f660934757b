package cli_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/hosts/cli"
)

const logTime = "2026-11-21T11:00:00.500+00:00"

// Every sign in the log is found, in both forms that the host writes, with its count, its newest place and what to do.
func TestDoctorOfOpenClawReadsTheLog(t *testing.T) {
	const turn = `[context-engine] Context engine "openbrain" degraded to "legacy" for this logical turn: `
	for _, tt := range []struct{ line, text, do string }{
		{turn + "current-turn transcript fencing is not declared. The", "does not declare the fence", "npm run build"},
		{turn + "atomic idempotent turn advancement is not declared. The", "does not declare atomic, idempotent turns", "npm run build"},
		{turn + `context engine "openbrain" is not registered. The`, "the engine is not registered", "openclaw plugins inspect openbrain --runtime"},
		{turn + `context engine "openbrain" is available for discovery only. The`, "for reading only", "restart the gateway"},
		{turn + `host "cli" is missing assemble-before-prompt. The`, "lacks what the engine asks for", "embedded runtime"},
		{turn + "pending durable turn advancement could not be completed before the next turn. The", "the turn before could not be stored", "bring the sidecar back"},
		{turn + "current-turn transcript admission receipt is unavailable. The", "no receipt of the current turn", "2026.8.2"},
		{turn + "openclaw-openbrain-context: the engine cannot be used as configured: it ended with code 2: error: s3cr3t. The", "no engine can be made of the configuration", "the line ends with what is wrong"},
		{turn + "s3cr3t", "a reason that doctor does not know", "read the line"},
		{`[context-engine] Context engine "openbrain" owner=plugin:openbrain failed during compact: s3cr3t; quarantining it for this process and falling back`, "the engine is quarantined", "restart the gateway"},
		{"Context engine: warning (1 quarantined; downgraded to legacy: openbrain)", "the engine is quarantined", "restart the gateway"},
		{`[context-engine] Context engine "openbrain" owner=plugin:openbrain is registered for read-only discovery only; falling back`, "for reading only", "restart"},
		{"context engine assemble failed, using pipeline messages: s3cr3t", "prompts could not be assembled", "see that the sidecar runs"},
		{"context engine bootstrap failed: s3cr3t", "sessions could not be opened", "see that the sidecar runs"},
		{"[context-engine] durable turn advancement remains queued: s3cr3t", "turns could not be stored", "bring the sidecar and its store back"},
		{"[plugins] openclaw-openbrain-context: assemble: s3cr3t -> until the engine is back, turns are answered with the newest messages that fit", "turns were answered without the engine", "bring the sidecar and its store back"},
		{"agent failed: Preflight compaction required but failed: s3cr3t", "could not be compacted", "the line names the cause"},
	} {
		asJSON, err := json.Marshal(map[string]string{"message": tt.line, "time": logTime, "0": tt.line, "1": "s3cr3t"})
		if err != nil {
			t.Fatal(err)
		}
		for form, line := range map[string]string{"JSON": string(asJSON), "text": logTime + " " + tt.line} {
			t.Run(form+" "+tt.text, func(t *testing.T) {
				i := newInstallation(t)
				i.file("gateway.log", "2026-11-21T10:00:00Z [gateway] ready\n"+line+"\n"+logTime+" [other] s3cr3t\n"+line+"\n", 0o600)
				got := i.doctor()
				got.want(t, cli.ExitFailure, "fail  gateway log", tt.text, tt.do, "(2 lines, the newest at 2026-11-21T11:00:00Z, line 4 of "+i.path("gateway.log"))
				if n := got.statuses("fail"); n != 1 {
					t.Errorf("%d failures, want 1:\n%s", n, got.out)
				}
			})
		}
	}
}

// What was before the last start of the gateway may be mended, and what another engine did is not the plugin's.
func TestDoctorOfOpenClawKnowsOldAndForeignLines(t *testing.T) {
	for name, start := range map[string]string{
		"JSON": `{"0": "{\"subsystem\":\"gateway\"}", "1": "gateway ready", "time": "2026-11-21T12:00:00Z", "message": "gateway ready"}`, "text": "2026-11-21T12:00:00Z [gateway] ready",
	} {
		t.Run("old "+name, func(t *testing.T) {
			i := newInstallation(t)
			i.file("gateway.log", logTime+" context engine bootstrap failed: s3cr3t\n"+start+"\n", 0o600)
			i.doctor().want(t, cli.ExitOK, "note  gateway log", "before the gateway's last start", "nothing, if it does not come back")
		})
	}
	t.Run("foreign", func(t *testing.T) {
		i := newInstallation(t)
		i.file("gateway.log", `[context-engine] Context engine "other" degraded to "legacy" for this logical turn: any`+"\n", 0o600)
		i.doctor().want(t, cli.ExitOK, "ok    gateway log")
	})
	t.Run("long line", func(t *testing.T) {
		i := newInstallation(t)
		i.file("gateway.log", strings.Repeat("x", 1<<20)+"\ncontext engine bootstrap failed", 0o600)
		i.doctor().want(t, cli.ExitFailure, "at an unknown time, line 2 of")
	})
}

// When the engine is back for all agents that it was away for, what went wrong meanwhile is past; what its return does not mend is not.
func TestDoctorOfOpenClawKnowsThatTheEngineIsBack(t *testing.T) {
	const (
		away   = logTime + " [plugins] openclaw-openbrain-context: assemble: s3cr3t -> until the engine is back, turns are answered with the newest messages that fit\n"
		back   = logTime + " [plugins] openclaw-openbrain-context: the engine is back after 20 s\n"
		queued = logTime + " [context-engine] durable turn advancement remains queued: s3cr3t\n"
		broken = logTime + ` [context-engine] Context engine "openbrain" owner=plugin:openbrain failed during compact: s3cr3t; quarantining it for this process` + "\n"
	)
	named := func(line string) string {
		return strings.Replace(line, "[plugins] ", "[plugins] [gateway work:18789, pid 4711] ", 1)
	}
	for _, tt := range []struct {
		name, log    string
		code         int
		notes, fails int
		want         string
	}{
		{"back", away + queued + back, cli.ExitOK, 2, 0, "before the engine was back"},
		{"as each gateway names itself", named(away) + queued + named(back), cli.ExitOK, 2, 0, "before the engine was back"},
		{"another gateway's engine is back", named(away) + named(away) + strings.ReplaceAll(named(back), "18789", "19001"), cli.ExitFailure, 0, 1, "turns were answered without the engine"},
		{"away again", away + back + away, cli.ExitFailure, 0, 1, "turns were answered without the engine"},
		{"back for one of two agents", away + away + back, cli.ExitFailure, 0, 1, "turns were answered without the engine"},
		{"back for both", away + away + back + back, cli.ExitOK, 1, 0, "before the engine was back"},
		{"something else after it", away + back + queued, cli.ExitFailure, 1, 1, "turns could not be stored"},
		{"quarantined", away + broken + back, cli.ExitFailure, 1, 1, "the engine is quarantined"},
		{"restarted meanwhile", away + logTime + " [gateway] ready\n" + away + back, cli.ExitOK, 1, 0, "before the engine was back"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := newInstallation(t)
			i.file("gateway.log", tt.log, 0o600)
			got := i.doctor()
			got.want(t, tt.code, tt.want)
			if notes, fails := got.statuses("note"), got.statuses("fail"); notes != tt.notes || fails != tt.fails {
				t.Errorf("%d notes and %d failures, want %d and %d:\n%s", notes, fails, tt.notes, tt.fails, got.out)
			}
		})
	}
}

// Of the files that the host begins each day, the newest is read.
func TestDoctorOfOpenClawFindsTheNewestLog(t *testing.T) {
	i := newInstallation(t)
	i.file("logs/openclaw-2026-11-20.log", "context engine bootstrap failed\n", 0o600)
	i.file("logs/openclaw-2026-11-21.log", "", 0o600)
	i.file("logs/else.log", "context engine bootstrap failed\n", 0o600)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(i.path("logs/openclaw-2026-11-20.log"), old, old); err != nil {
		t.Fatal(err)
	}
	i.set("logging/file", i.path("logs/openclaw-YYYY-MM-DD.log"))
	i.doctor().want(t, cli.ExitOK, "no sign of turns without the engine in "+i.path("logs/openclaw-2026-11-21.log"))
}
