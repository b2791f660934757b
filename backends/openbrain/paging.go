package openbrain

import "sync"

// pagings is what was learnt of a server's lists. It only saves requests: a server that changed is found out again.
type pagings struct {
	mu sync.Mutex
	m  map[string]paged
}

// paged is what was learnt of one list.
type paged struct {
	// limit is what the server accepts, when it refused more; 0 when it never did.
	limit int
	// grown is the limit that showed everything last time, where offsets are ignored; 0 where they are not.
	grown int
}

func (p *pagings) get(path string) paged {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.m[path]
}

func (p *pagings) learn(path string, change func(*paged)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.m == nil {
		p.m = map[string]paged{}
	}
	known := p.m[path]
	change(&known)
	p.m[path] = known
}
