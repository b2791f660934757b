package engine_test

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/strategies/mask"
)

// TestWindows leads conversations that a seed makes, and compares each window with the one that testdata/windows has for it. A window that is another is meant
// to be, or a defect: `go test ./core/engine -run TestWindows -rewrite` writes them anew, and the difference has to be read. The commands:
//
//	engine  makes an engine over an empty store; its input are keys of the configuration, "window.high=0.8"
//	talk    leads so many turns, see course; a line for each call of Assemble
//	show    the last window, a line for each message and each thing that is out
//	state   what the session is, by Describe
func TestWindows(t *testing.T) {
	needs.NoRace(t) // one goroutine, and long
	datadriven.Walk(t, "testdata/windows", func(t *testing.T, path string) {
		t.Helper()
		var c *conversation
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			if d.Cmd == "engine" {
				c = configured(t, d)
				return ""
			}
			c.t = t
			switch d.Cmd {
			case "talk":
				return c.talk(d)
			case "show":
				return c.show()
			case "state":
				return c.state()
			}
			d.Fatalf(t, "no such command: %s", d.Cmd)
			return ""
		})
	})
}

// set sets a key of a configuration.
func set(cfg reflect.Value, path []string, value string) error {
	for i := range cfg.NumField() {
		if cfg.Type().Field(i).Tag.Get("koanf") != path[0] {
			continue
		}
		f := cfg.Field(i)
		switch {
		case len(path) > 1:
			return set(f, path[1:], value)
		case f.Kind() == reflect.Bool:
			f.SetBool(value == "true")
		case f.Kind() == reflect.String:
			f.SetString(value)
		case f.CanInt():
			n, err := strconv.ParseInt(value, 10, 64)
			f.SetInt(n)
			return err
		case f.CanFloat():
			n, err := strconv.ParseFloat(value, 64)
			f.SetFloat(n)
			return err
		}
		return nil
	}
	return fmt.Errorf("no such key: %v", path)
}

// configured is a conversation with the configuration that a file asks for.
func configured(t *testing.T, d *datadriven.TestData) *conversation {
	t.Helper()
	c := newConversation(t)
	for line := range strings.Lines(d.Input) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key == "compactor" {
			m, err := mask.New(mask.DefaultConfig())
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			c.parts.Compactor = m
		} else if err := set(reflect.ValueOf(&c.cfg).Elem(), strings.Split(key, "."), value); err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	c.restart()
	return c
}

func (c *conversation) talk(d *datadriven.TestData) string {
	k := course{turns: 10, budget: 400, words: 12}
	for name, to := range map[string]any{
		"turns": &k.turns, "seed": &k.seed, "budget": &k.budget, "words": &k.words, "tools": &k.tools, "provider": &k.provider, "long": &k.long, "ask": &k.ask,
		"compact": &k.compact, "forget": &k.forget, "rewind": &k.rewind, "restart": &k.restart, "narrow": &k.narrow, "spawn": &k.spawn, "system": &k.system, "beat": &k.beat,
	} {
		d.MaybeScanArgs(c.t, name, to)
	}
	k.hosted, k.whole = d.HasArg("hosted"), d.HasArg("whole")
	return c.lead(&k)
}
