package registry

import (
	"context"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// maxArms bounds the sessions whose arm an Instance remembers; others are asked for again.
const maxArms = 1 << 16

// arm returns the index of the arm that a session belongs to, -1 for none: the recorded one, else the one that it is given, which is recorded when the
// session begins.
func (i *Instance) arm(ctx context.Context, agent, session string, begin bool) (int, error) {
	picked := i.cfg.pick(agent, session, i.provider(agent, session))
	id := core.SessionID{Agent: agent, Session: session}
	if len(i.cfg.Arms) == 0 || id.Validate() != nil {
		return picked, nil // a session without a name cannot have begun
	}
	i.mu.RLock()
	arm, ok := i.arms[id]
	i.mu.RUnlock()
	if ok {
		return arm, nil
	}
	arm, known, err := i.recorded(ctx, id, picked)
	if err == nil && !known && picked >= 0 {
		if !begin {
			return picked, nil
		}
		arm, err = i.record(ctx, id, picked)
	}
	if err != nil {
		return 0, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.arms) >= maxArms {
		clear(i.arms)
	}
	i.arms[id] = arm
	return arm, nil
}

// recorded asks the stores of all arms that take the agent, that of the picked one first, for the arm of a session. Without one it is the picked one.
func (i *Instance) recorded(ctx context.Context, id core.SessionID, picked int) (arm int, known bool, err error) {
	var order []int
	for n, a := range i.cfg.Arms {
		if n == picked {
			order = slices.Insert(order, 0, n)
		} else if a.takes(id.Agent) {
			order = append(order, n)
		}
	}
	asked := make(map[string]bool)
	for _, n := range order {
		m, err := i.made(ctx, id.Agent, n)
		if err != nil {
			return 0, false, err
		}
		armed, ok := m.engine.(engine.Armed)
		if !ok || asked[m.store] {
			continue
		}
		asked[m.store] = true
		name, err := armed.Arm(ctx, id, func(recorded string) string { return recorded })
		if err != nil {
			return 0, false, err
		}
		if at := i.armNamed(name); at >= 0 {
			return at, true, nil
		}
	}
	return picked, false, nil
}

// record lets a session begin in an arm, unless another process, with other weights, was quicker.
func (i *Instance) record(ctx context.Context, id core.SessionID, picked int) (int, error) {
	m, err := i.made(ctx, id.Agent, picked)
	if err != nil {
		return 0, err
	}
	armed, ok := m.engine.(engine.Armed)
	if !ok {
		return picked, nil
	}
	name, err := armed.Arm(ctx, id, func(recorded string) string {
		if i.armNamed(recorded) >= 0 {
			return recorded
		}
		return i.cfg.Arms[picked].Name
	})
	if err != nil {
		return 0, err
	}
	return i.armNamed(name), nil
}

func (i *Instance) armNamed(name string) int {
	return slices.IndexFunc(i.cfg.Arms, func(a Arm) bool { return name != "" && a.Name == name })
}

func (a Arm) takes(agent string) bool { return len(a.Agents) == 0 || slices.Contains(a.Agents, agent) }

// info says what a session of an arm was given.
func (c Config) info(agent, session, provider string, arm int, config string) ArmInfo {
	if arm < 0 {
		return ArmInfo{Share: 1, Config: config}
	}
	own := 0.0
	if a := c.Arms[arm]; a.takes(agent) {
		own = a.Weight
	}
	weights, total := c.weights(agent, session, provider)
	total += own - weights[arm]
	info := ArmInfo{Name: c.Arms[arm].Name, Config: config}
	if total > 0 {
		info.Share = own / total
	}
	return info
}

// SetProvider says who serves the model of a session from now on. It is for sessions that have not begun: the arms that one may be given follow from it.
func (i *Instance) SetProvider(agent, session, provider string) {
	if !slices.ContainsFunc(i.cfg.Arms, func(a Arm) bool { return len(a.Providers) > 0 }) {
		return
	}
	id := core.SessionID{Agent: agent, Session: session}
	provider = strings.ToLower(provider)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.providers[id] == provider {
		return
	}
	if len(i.providers) >= maxArms {
		clear(i.providers)
	}
	i.providers[id] = provider
	if arm, ok := i.arms[id]; ok && arm < 0 {
		delete(i.arms, id) // it was given none for lack of a provider
	}
}

// provider returns who serves the model of a session, as far as that is known.
func (i *Instance) provider(agent, session string) string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.providers[core.SessionID{Agent: agent, Session: session}]
}
