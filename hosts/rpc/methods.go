package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// methods lists how each method is served.
func methods() map[string]method {
	session, parent, child := sessionOf("session"), sessionOf("parent"), sessionOf("child")
	return map[string]method{
		MethodInitialize:    {run: handle(initialize)},
		MethodShutdown:      {early: true, run: shutdown},
		MethodPing:          {early: true, run: now(func(*call) any { return NoResult{} })},
		MethodHealth:        {early: true, run: now(func(k *call) any { return k.conn.s.health() })},
		MethodInfo:          {run: handle(info)},
		MethodFactory:       {run: handle(factory)},
		MethodBootstrap:     {key: session, run: handle(bootstrap)},
		MethodIngest:        {key: session, run: handle(ingest)},
		MethodIngestBatch:   {key: session, run: handle(ingestBatch)},
		MethodCommitTurn:    {key: session, run: handle(commitTurn)},
		MethodAfterTurn:     {key: session, run: handle(afterTurn)},
		MethodAssemble:      {key: session, run: handle(assemble)},
		MethodCompact:       {key: session, run: handle(compact)},
		MethodMaintain:      {key: session, run: handle(maintain)},
		MethodPrepareSpawn:  {key: parent, run: handle(prepareSpawn)},
		MethodRollbackSpawn: {run: handle(rollbackSpawn)},
		MethodSubagentEnded: {key: either(parent, child), run: handle(subagentEnded)},
		MethodDispose:       {key: session, run: handle(dispose)},
		// Reads run beside the session's other calls.
		MethodSearch:   {run: handle(search)},
		MethodExpand:   {run: handle(expand)},
		MethodDescribe: {run: handle(describeSession)},
		MethodScore:    {key: session, run: handle(score)},
		MethodRetry:    {run: handle(retry)},
	}
}

// now serves a method that needs no engine and waits for nothing.
func now(f func(k *call) any) func(context.Context, *call, json.RawMessage) ([]byte, error) {
	return func(_ context.Context, k *call, params json.RawMessage) ([]byte, error) {
		if err := decodeParams(params, &NoParams{}); err != nil {
			return nil, err
		}
		return encode(f(k))
	}
}

func initialize(ctx context.Context, k *call, p InitializeParams) (_ any, err error) {
	c := k.conn
	defer func() {
		if err != nil {
			c.mu.Lock()
			c.initializing = nil // it may be tried again
			c.mu.Unlock()
		}
	}()
	chosen := slices.IndexFunc(p.ProtocolVersions, func(v string) bool { return slices.Contains(Versions(), v) })
	if chosen < 0 {
		e := fail(CodeUnsupportedVersion, "no common protocol version")
		e.Data.Supported = Versions()
		return nil, e
	}
	cl, err := p.client()
	if err != nil {
		return nil, err
	}
	var ignored []string
	if p.Factory != nil {
		if ignored, err = c.s.told("", *p.Factory); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	c.client = cl
	c.mu.Unlock()
	c.s.host.join(c)
	res := InitializeResult{
		ProtocolVersion: p.ProtocolVersions[chosen], Server: c.s.program, Methods: Methods(), Formats: message.Formats(), Limits: c.s.limits(), Ignored: ignored,
	}
	var id core.SessionID
	if p.Session != nil {
		id = *p.Session
	}
	e, _, err := c.s.engineFor(ctx, id)
	if err != nil {
		d := describe(ctx, k.method, err)
		res.EngineError = &EngineError{Code: int(d.Code), Kind: d.Data.Kind, Message: d.Message}
		return res, nil
	}
	about := e.Info()
	res.Engine = &about
	return res, nil
}

// client checks what a client says about itself.
func (p InitializeParams) client() (*client, error) {
	cl := &client{host: p.Host, format: p.Format, can: p.Capabilities}
	if p.Client.Name == "" {
		return nil, badField("client.name", "name the program that speaks the protocol")
	}
	if cl.format != "" {
		if _, err := formatOf("format", cl.format, ""); err != nil {
			return nil, err
		}
	}
	if p.Session != nil {
		if err := checkSession("session", *p.Session); err != nil {
			return nil, err
		}
	}
	for i, can := range cl.can {
		if !slices.Contains(capability.All(), can) {
			return nil, badField(fmt.Sprintf("capabilities[%d]", i), "not a known capability")
		}
	}
	switch p.Log {
	case "", "off":
		cl.log = logOff
	case "warn":
		cl.log = slog.LevelWarn
	case "info":
		cl.log = slog.LevelInfo
	default:
		return nil, badField("log", `must be "off", "warn" or "info"`)
	}
	return cl, nil
}

// shutdown answers when the connection's other calls have ended. The connection ends with the answer.
func shutdown(ctx context.Context, k *call, params json.RawMessage) ([]byte, error) {
	if err := decodeParams(params, &NoParams{}); err != nil {
		return nil, err
	}
	c := k.conn
	grace, cancel := context.WithTimeout(ctx, c.s.cfg.ShutdownTimeout)
	defer cancel()
	c.quiet(grace, 1)
	return encode(NoResult{})
}

func info(ctx context.Context, k *call, p InfoParams) (any, error) {
	var id core.SessionID
	if p.Session != nil {
		if err := checkSession("session", *p.Session); err != nil {
			return nil, err
		}
		id = *p.Session
	}
	e, arm, err := k.conn.s.engineFor(ctx, id)
	if err != nil {
		return nil, err
	}
	return InfoResult{Engine: e.Info(), Arm: arm}, nil
}

// factory hands on what the host knows about an agent.
func factory(_ context.Context, k *call, p FactoryParams) (any, error) {
	if p.Agent == "" {
		return nil, badField("agent", "name the agent")
	}
	if err := checkTexts(text{"agent", p.Agent, maxWord}); err != nil {
		return nil, err
	}
	ignored, err := k.conn.s.told(p.Agent, p.Facts)
	return FactoryResult{Ignored: ignored}, err
}

// told hands facts to engines that want them.
func (s *Server) told(agent string, f Facts) (ignored []string, err error) {
	if err := checkTexts(text{"agentDir", f.AgentDir, maxPath}, text{"workspaceDir", f.WorkspaceDir, maxPath}); err != nil {
		return nil, err
	}
	if t, ok := s.engines.(Told); ok {
		return t.Factory(agent, f)
	}
	return nil, nil
}

// retry lets an engine that was set aside try again.
func retry(ctx context.Context, k *call, p RetryParams) (any, error) {
	if err := checkSession("session", p.Session); err != nil {
		return nil, err
	}
	e, err := member[engine.Retrier](ctx, k, p.Session)
	if err != nil {
		return nil, err
	}
	e.Retry()
	return NoResult{}, nil
}

// dispose forgets what is remembered of a session. The engine is shared by others and stays.
func dispose(_ context.Context, k *call, p DisposeParams) (any, error) {
	if err := checkSession("session", p.Session); err != nil {
		return nil, err
	}
	k.conn.s.known.forget(p.Session)
	return NoResult{}, nil
}

// checkSession names the part of a session that is missing.
func checkSession(field string, id core.SessionID) error {
	const most = 1024
	switch {
	case id.Agent == "":
		return badField(field+".agent", "name the agent that owns the session")
	case id.Session == "":
		return badField(field+".session", "give the host's session id or key")
	case len(id.Agent) > most || len(id.Session) > most:
		return badField(field, fmt.Sprintf("at most %d bytes each", most))
	case strings.ContainsRune(id.Agent+id.Session, 0):
		return badField(field, "must not contain NUL")
	}
	return nil
}
