package registry_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/registry"
)

// TestArmsOfHostsKeys: what patterns make of the keys that OpenClaw gives its sessions, and of names that look like patterns.
func TestArmsOfHostsKeys(t *testing.T) {
	long := strings.Repeat("a", 100_000)
	for pattern, keys := range map[string]map[string]bool{
		"agent:*:cron:*": {
			"agent:main:cron:daily": true, "agent:main:cron:daily:run:8f2c": true, "agent:main:cron": false, "agent:main:main": false, "cron:daily": false,
		},
		"agent:*:hook:*": {"agent:main:hook:6f1c": true, "agent:main:hook:mail:7": true, "hook:6f1c": false, "agent:main:webhook:1": false},
		"*hook:*":        {"agent:main:hook:6f1c": true, "hook:6f1c": true, "agent:main:hooks": false},
		"agent:*:subagent:*": {
			"agent:main:subagent:2b9e": true, "agent:main:subagent:2b9e:subagent:77c0": true, "subagent:2b9e": false, "agent:main:subagents": false,
		},
		"agent:main:*:direct:*": {
			"agent:main:telegram:direct:1234": true, "agent:main:telegram:work:direct:1234": true, "agent:main:telegram:direct:1234:thread:9": true,
			"agent:main:direct:1234": false, "agent:other:telegram:direct:1234": false, "agent:main:telegram:group:1234": false,
		},
		"agent:*:group:*":         {"agent:main:discord:group:55": true, "agent:main:telegram:group:-100:topic:7": true, "agent:main:slack:channel:c1": false},
		"agent:*:thread:*":        {"agent:main:slack:channel:c1:thread:1700000000.5": true, "agent:main:slack:channel:c1": false},
		"agent:main:main":         {"agent:main:main": true, "agent:main:main2": false, "agent:main": false, "agent:main:Main": false},
		"agent:*:matrix:*:!Abc:*": {"agent:main:matrix:channel:!Abc:example.org": true, "agent:main:matrix:channel:!abc:example.org": false},
		"agent:main:AGENT:*":      {"agent:main:agent:1": false, "agent:main:AGENT:1": true},
		"agent:main:a?c":          {"agent:main:a?c": true, "agent:main:abc": false},
		"agent:main:[ab]":         {"agent:main:[ab]": true, "agent:main:a": false},
		`agent:main:\*`:           {`agent:main:\x`: true, "agent:main:*": false},
		"agent:main:a*c":          {"agent:main:a*c": true, "agent:main:abc": true, "agent:main:a**c": true, "agent:main:ac": true},
		"*":                       {"": true, "*": true, "agent:main:main": true, long: true},
		"**":                      {"": true, "x": true},
		"*a*a*a*a*a*a*a*a*a*b":    {long: false, long + "b": true, "ab": false},
		"agent:*:größe*":          {"agent:main:größe 7": true, "agent:main:grösse": false},
	} {
		cfg := registry.DefaultConfig()
		cfg.Arms = []registry.Arm{{Name: "own", Weight: 1, Sessions: []string{pattern}}}
		for key, want := range keys {
			if name, _ := registry.PickArm(cfg, "main", key); (name == "own") != want {
				t.Errorf("%q takes %.60q: %t, want %t", pattern, key, !want, want)
			}
		}
	}
}

// TestPatternsThatMatchNothing: a pattern that no session's name can be like is refused, and the error names it.
func TestPatternsThatMatchNothing(t *testing.T) {
	r := newRegistry(t, &shop{})
	for pattern, want := range map[string]string{
		"": "without blanks", " agent:main:main": "without blanks", "agent:*:cron:* ": "without blanks", "agent:\x00": "control characters", "a\nb": "control characters", "\xff": "control characters",
		strings.Repeat("a", 1025): "at most 1024 bytes", "contextengine-secrets": "records of its own",
	} {
		cfg := registry.DefaultConfig()
		cfg.Arms = []registry.Arm{{Name: "own", Weight: 1, Sessions: []string{"agent:*", pattern}}}
		if err := r.Check(cfg); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "arms.0.sessions.1: must ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", pattern, err, want)
		}
	}
	for _, pattern := range []string{"*", "a", "?", "[", strings.Repeat("a*", 1024), "agent:main:my list"} {
		cfg := registry.DefaultConfig()
		cfg.Arms = []registry.Arm{{Name: "own", Weight: 1, Sessions: []string{pattern}}}
		if err := r.Check(cfg); err != nil {
			t.Errorf("%.40q: %v", pattern, err)
		}
	}
}
