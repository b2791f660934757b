package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
)

func TestParseRelease(t *testing.T) {
	for text, want := range map[string]hostRelease{
		"2026.9.6": {2026, 9, 6}, "v2026.10.12-beta.1": {2026, 10, 12}, "2026.9": {}, "": {}, "1.2.3": {}, "2026.9.6x": {},
	} {
		got, ok := parseRelease(text)
		if got != want || ok != (want != hostRelease{}) {
			t.Errorf("parseRelease(%q) = %v, %v", text, got, ok)
		}
	}
	if (hostRelease{2026, 10, 1}).before(hostRelease{2026, 9, 6}) {
		t.Error("2026.10.1 counts as older than 2026.9.6")
	}
}

// Whatever a file holds, reading it ends in an object or in an error that repeats nothing of it.
func FuzzParseJSON5(f *testing.F) {
	for _, s := range []string{"", "{}", "[1]", "{a: 'b', /* c */ d: [1, 0x2,],}", "{\"a\": \"s3cr3t", strings.Repeat("[", 5000), "\ufeff{}", "{a: s3cr3t}", "//"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := parseJSON5(data)
		switch {
		case err == nil:
			_ = tree.at("plugins").at("slots").text("contextEngine")
		case !errors.Is(err, core.ErrInvalid) || strings.Contains(err.Error(), "s3cr3t"):
			t.Errorf("parseJSON5 = %v", err)
		}
	})
}

// Whatever a log holds, each of its lines is at most one sign, and no time is repeated that is none.
func FuzzReadLog(f *testing.F) {
	f.Add([]byte("2026-11-21T10:00:00Z [gateway] ready\n{\"message\": \"context engine bootstrap failed\", \"time\": \"s3cr3t\"}\n"))
	f.Add([]byte(`[context-engine] Context engine "openbrain" degraded to "legacy" for this logical turn: any`))
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := readLog(t.Context(), bytes.NewReader(data), 0, []string{openClawPlugin})
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, s := range found {
			sum += s.count
			if s.when != "" && timeOf(s.when) == "" {
				t.Errorf("time %q", s.when)
			}
		}
		if lines := bytes.Count(data, []byte("\n")) + 1; sum > lines {
			t.Errorf("%d signs in %d lines", sum, lines)
		}
	})
}
