package conformance

import (
	"errors"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	ask := func(env map[string]string) (options, error) {
		o := options{cases: 25}
		err := o.ask(func(name string) string { return env[name] })
		return o, err
	}
	for name, values := range map[string][]string{
		envSeed: {"banana", "1.5"}, envCases: {"banana", "0", "-1", "2.5"}, envTimes: {"banana", "0", "-1", "NaN", "Inf", "2,5"},
	} {
		for _, value := range values {
			_, err := ask(map[string]string{name: value})
			if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), value) {
				t.Errorf("%s=%s: %v, want ErrInvalid with both", name, value, err)
			}
		}
	}
	got, err := ask(map[string]string{envSeed: "7", envCases: "10", envTimes: "0.5"})
	if err != nil || got.seed != 7 || got.cases != 5 {
		t.Errorf("seed %d, %d cases, %v; want 7, 5, nil", got.seed, got.cases, err)
	}
	if got, err := ask(nil); err != nil || got.cases != 25 || got.seed != 0 {
		t.Errorf("without variables: seed %d, %d cases, %v", got.seed, got.cases, err)
	}
}
