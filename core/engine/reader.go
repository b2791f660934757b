package engine

import "github.com/contextengine/contextengine/core"

// reader reads what a view names from the store.
type reader struct {
	store core.Store
	// tailer, if any, tells what other processes do to a session.
	tailer core.Tailer
	gauge  *gauge
	cfg    *Config
}
