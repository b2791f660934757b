package window_test

import (
	"testing"

	"github.com/contextengine/contextengine/core/window"
)

func TestNotShownEither(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		grows      bool
	}{
		{window.NotShown(40), window.NotShown(52), true},
		{
			"[40 earlier messages are stored but not shown, from 2026-01-02 03:04 to 2026-01-02 09:10 UTC. Ask memory_search.]",
			"[52 earlier messages are stored but not shown, the first 40 from 2026-01-02 03:04 to 2026-01-02 09:10 UTC. Ask memory_search.]", true,
		},
		{window.NotShown(41), window.NotShown(53), true},
		{"Yes. " + window.NotShown(41), "Yes. " + window.NotShown(41), false},
		{"The port is 8471.", "The port is 8471.", false},
		{"", "", false},
	} {
		if got, ok := window.NotShownEither(tt.text, 12); got != tt.want || ok != tt.grows {
			t.Errorf("%q becomes %q, %t, want %q, %t", tt.text, got, ok, tt.want, tt.grows)
		}
	}
}
