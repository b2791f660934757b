package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/registry"
)

// repair is what doctor can mend.
type repair struct {
	// What is to be done, and what was done about it.
	What string `json:"what"`
	Done string `json:"done,omitempty"`
	// Error says why it could not be done.
	Error string `json:"error,omitempty"`

	do func(ctx context.Context) (done string, err error)
}

// mending opens the store of an agent, damaged or not, and calls f with what can be mended there. An outbox is waited for as long as patience says.
func (a *app) mending(ctx context.Context, config, agent string, patience time.Duration, f func([]*repair) error) error {
	base, err := a.load(config, nil)
	if err != nil {
		return err
	}
	cfg, _, err := a.reg.Resolve(base, agent, storeSession)
	if err != nil {
		return err
	}
	base.Store = unchecked(cfg.Store)
	instance, err := a.reg.Build(ctx, base, registry.BuildOptions{Getenv: a.getenv, Version: version()})
	if err != nil {
		return err
	}
	k := &keeper{instance: instance, kind: orNone(cfg.Store.Type), a: a}
	switch k.store, err = k.storeOf(ctx, agent, storeSession); {
	case errors.Is(err, errNoStore):
		err = f(nil)
	case err == nil:
		var found []*repair
		if found, err = k.repairs(ctx, patience); err == nil {
			err = f(found)
		}
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return errors.Join(err, instance.Close(end))
}

// unchecked is a store's choice with which damaged files are opened, too.
func unchecked(c registry.Choice) registry.Choice {
	c.Options = maps.Clone(c.Options)
	if c.Options == nil {
		c.Options = make(map[string]any)
	}
	if c.Type == fileStore {
		c.Options["check"] = "never"
	}
	switch local := c.Options["local"].(type) {
	case string:
		c.Options["local"] = registry.Choice{Type: local}
	case map[string]any:
		name, _ := local["type"].(string)
		inner := unchecked(registry.Choice{Type: name, Options: local})
		c.Options["local"] = inner.Options
	}
	return c
}

// repairs returns what of a store can be mended, in the order in which it is to be done.
func (k *keeper) repairs(ctx context.Context, patience time.Duration) (out []*repair, err error) {
	left, err := leftovers(k.store)
	if err != nil {
		return nil, err
	}
	if len(left) > 0 {
		out = append(out, &repair{What: "remove " + leftText(left), do: func(context.Context) (string, error) { return removeLeft(k.store, left) }})
	}
	if r, ok := core.As[upkeep.Repairer](k.store); ok {
		v, can := core.As[verifier](k.store)
		if can && k.a.saying("verifying what is stored", func() error { return v.Verify(ctx) }) != nil {
			out = append(out, &repair{What: "make the indexes of the store's file anew from what is in it; a copy of the file is kept beside it", do: k.reindex(r)})
			return append(out, &repair{What: "make the views of sessions agree with their entries, where they do not", do: k.agree}), ctx.Err()
		}
	}
	if _, ok := core.As[core.ViewStore](k.store); ok {
		flaws, err := k.flaws(ctx)
		if err != nil {
			return nil, err
		}
		if len(flaws) > 0 {
			out = append(out, &repair{What: fmt.Sprintf("make views agree with their entries: %s; nothing that is stored is lost, and the views as they are go to a file", count(len(flaws), "flaw")), do: k.agree})
		}
	}
	d, ok := core.As[upkeep.Drainer](k.store)
	b, tells := core.As[upkeep.Backlogger](k.store)
	if !ok || !tells {
		return out, nil
	}
	log, err := b.Backlog(ctx)
	if err == nil && log.Waiting+log.SetAside > 0 {
		out = append(out, &repair{
			What: fmt.Sprintf("deliver what the outbox holds: %d changes wait, %d were refused before and are tried again", log.Waiting, log.SetAside), do: k.deliver(d, patience),
		})
	}
	return out, err
}

func (k *keeper) reindex(r upkeep.Repairer) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		saved, err := r.Repair(ctx)
		switch {
		case err != nil:
			return "", fmt.Errorf("%w; nothing was changed: put back a copy that \"contextengine backup\" made, or write what can be read to a file with \"contextengine export\"", err)
		case saved == "":
			return "the indexes agree with what is in the file; what is damaged is something else: see \"contextengine verify\"", nil
		}
		return "the indexes are made anew; the file as it was is " + saved, nil
	}
}

func (k *keeper) agree(ctx context.Context) (string, error) {
	n := 0
	kept, err := k.mendViews(ctx, func(core.SessionID, int) { n++ })
	done := "the views of " + count(n, "session") + " agree with their entries again"
	if kept != "" {
		done += "; as they were they are in " + kept
	}
	return done, err
}

// deliver tries everything that waits, and what was refused before.
func (k *keeper) deliver(d upkeep.Drainer, patience time.Duration) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if again, ok := core.As[interface {
			Retry(ctx context.Context, ids ...string) (int, error)
		}](k.store); ok {
			if _, err := again.Retry(ctx); err != nil {
				return "", err
			}
		}
		left, err := d.Drain(ctx)
		if left > 0 {
			return "", fmt.Errorf("%d changes are not delivered; everything is kept in the local store: %w", left, err)
		}
		return "everything is delivered", err
	}
}

// fix shows what can be mended, asks, and mends it. The first error is returned; what follows is tried all the same.
func (a *app) fix(ctx context.Context, found []*repair, yes, quiet bool) error {
	if len(found) == 0 {
		if !quiet {
			fmt.Fprintln(a.Stdout, "there is nothing that doctor could mend")
		}
		return nil
	}
	if !quiet {
		fmt.Fprintln(a.Stdout, "to mend:")
		for _, r := range found {
			fmt.Fprintln(a.Stdout, "  "+r.What)
		}
	}
	if !yes {
		if err := a.confirm(ctx, "Mend this? Type yes: ", "nothing was mended"); err != nil {
			return err
		}
	}
	var first error
	for _, r := range found {
		done, err := r.do(ctx)
		if r.Done = done; err != nil {
			r.Done, r.Error = "", err.Error()
			first = errors.Join(first, err)
		}
		switch {
		case quiet:
		case err != nil:
			fmt.Fprintf(a.Stdout, "%s  %s\n", a.paint(a.Stdout, red, "not mended"), plain(r.Error))
		default:
			fmt.Fprintf(a.Stdout, "%s  %s\n", a.paint(a.Stdout, green, "mended"), plain(done))
		}
	}
	return first
}
