package soak

import (
	"context"
	"fmt"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment"
)

// Options shape a soak. Zero values stand for the defaults.
type Options struct {
	// Open makes the engine. It is called once; its result is closed before Run returns. Required.
	Open func(ctx context.Context) (experiment.Subject, error)
	// Sessions is how many live at the same time, 10,000 when 0. Agents is how many agents own them, one for each 20 sessions when 0.
	Sessions, Agents int
	// Time is how long it lasts after the sessions were given their past, 10 minutes when 0.
	Time time.Duration
	// Think is the mean time between two turns of a session, two minutes when 0: 10,000 sessions then make about 80 turns a second.
	Think time.Duration
	// Turns is how many turns a session lives, 20 when 0.
	Turns int
	// Every is the time between two samples; when 0 it is a sixtieth of Time, at least 100 ms.
	Every time.Duration
	// Budget is that of prompts, in tokens, 2,000 when 0: small, so that windows step and compactions happen.
	Budget int
	// Agent begins the names of the agents, "soak" when empty. What is stored under these names is erased.
	Agent string
	// Keep leaves sessions that end in the store. It then grows, and so does what is kept in memory of it.
	Keep bool
	// Seed makes the sessions say the same in every run.
	Seed uint64
	// Progress is called with each sample, from one goroutine; it may be nil.
	Progress func(Sample)
}

func (o *Options) complete() error {
	invalid := func(field, remedy string) error {
		return fmt.Errorf("soak: options: %s: %s: %w", field, remedy, core.ErrInvalid)
	}
	switch {
	case o.Open == nil:
		return invalid("open", "give a function that makes the engine")
	case o.Sessions < 0 || o.Agents < 0 || o.Turns < 0 || o.Budget < 0:
		return invalid("sessions, agents, turns, budget", "must not be negative")
	case o.Time < 0 || o.Think < 0 || o.Every < 0:
		return invalid("time, think, every", "must not be negative")
	}
	set(&o.Sessions, 10_000)
	set(&o.Agents, max(o.Sessions/20, 1))
	set(&o.Time, 10*time.Minute)
	set(&o.Think, 2*time.Minute)
	set(&o.Turns, 20)
	set(&o.Every, min(max(o.Time/60, 100*time.Millisecond), o.Time))
	set(&o.Budget, 2000)
	set(&o.Agent, "soak")
	if o.Every > o.Time {
		return invalid("every", "must not be longer than time")
	}
	return nil
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
