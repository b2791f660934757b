package imports

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// maxEvent is the largest size of an event, in bytes: the host's own bound on those it compresses.
const maxEvent = 4 << 20

// window is a session of the host: one of those that follow each other under a key. Facts about the schema are those of
// version 23, of OpenClaw 2026.9; older ones lack some of the tables.
type window struct {
	id, key string
	current bool
}

// clawFile is an agent's SQLite file being read.
type clawFile struct {
	src   *source
	in    *intake
	q     querier
	agent string
	// has says which tables and columns there are.
	compressed, paths, cold, archives bool
}

// readOpenClaw imports the sessions of an agent of OpenClaw. The current session of a key has the name that OpenClaw's plugin gives it, the key;
// those before it have "#" and their id behind.
func readOpenClaw(ctx context.Context, src *source, in *intake) error {
	return src.db.snapshot(ctx, func(q querier) error {
		c := &clawFile{src: src, in: in, q: q}
		if err := c.look(ctx); err != nil {
			return err
		}
		windows, err := c.windows(ctx)
		if err != nil {
			return err
		}
		for _, w := range windows {
			if err := c.window(ctx, w); err != nil {
				return err
			}
		}
		return c.archived(ctx)
	})
}

// look finds out what the file has.
func (c *clawFile) look(ctx context.Context) error {
	events, err := c.src.db.columns(ctx, c.q, "transcript_events")
	if err != nil {
		return err
	}
	c.compressed = events["event_zstd"]
	for table, to := range map[string]*bool{
		"session_transcript_active_events": &c.paths, "session_transcript_cold_archives": &c.cold, "session_transcript_archives": &c.archives,
	} {
		columns, err := c.src.db.columns(ctx, c.q, table)
		if err != nil {
			return err
		}
		*to = len(columns) > 0
	}
	err = c.q.QueryRowContext(ctx, "SELECT agent_id FROM schema_meta WHERE agent_id IS NOT NULL LIMIT 1").Scan(&c.agent)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		c.agent = "" // an older schema: the keys of sessions name the agent
	}
	return c.q.QueryRowContext(ctx, "SELECT count(*) FROM transcript_events").Scan(&c.in.total)
}

func (c *clawFile) windows(ctx context.Context) ([]window, error) {
	var out []window
	var w window
	var current sql.NullString
	err := each(ctx, c.q, `SELECT w.session_id, w.session_key, n.current_session_id FROM session_windows w
		LEFT JOIN session_nodes n ON n.session_key = w.session_key ORDER BY w.created_at, w.session_id`, nil,
		[]any{&w.id, &w.key, &current}, func() error {
			w.current = current.String == w.id
			out = append(out, w)
			return nil
		})
	return out, err
}

// place returns where the messages of a window go.
func (c *clawFile) place(w window) place {
	p := place{agent: agentOfKey(w.key), session: w.key}
	if p.agent == "" {
		p.agent = c.agent
	}
	if !w.current {
		p.session += "#" + w.id
	}
	return p
}

// agentOfKey returns the agent that a session key names: "agent:<id>:...".
func agentOfKey(key string) string {
	kind, rest, _ := strings.Cut(key, ":")
	agent, _, ok := strings.Cut(rest, ":")
	if kind != "agent" || !ok {
		return ""
	}
	return agent
}

// event is one row of a transcript.
type event struct {
	seq  int64
	json []byte
}

// window imports one session.
func (c *clawFile) window(ctx context.Context, w window) error {
	events, err := c.events(ctx, w)
	if err != nil {
		return err
	}
	var shown map[int64]bool
	if len(events) == 0 && c.cold {
		if events, shown, err = c.thaw(ctx, w); err != nil {
			return err
		}
	}
	if len(events) == 0 {
		return nil
	}
	if shown == nil {
		if shown, err = c.shown(ctx, w, events[len(events)-1].seq); err != nil {
			return err
		}
	}
	return c.ingest(ctx, c.place(w), w.id, events, shown)
}

// events reads the rows of a session in their order.
func (c *clawFile) events(ctx context.Context, w window) ([]event, error) {
	query := "SELECT seq, event_json, NULL, NULL FROM transcript_events WHERE session_id = ? ORDER BY seq"
	if c.compressed {
		query = strings.Replace(query, "NULL, NULL", "event_zstd, event_utf8_bytes", 1)
	}
	var out []event
	var seq int64
	var text, packed []byte
	var size sql.NullInt64
	err := each(ctx, c.q, query, []any{w.id}, []any{&seq, &text, &packed, &size}, func() error {
		e := event{seq: seq, json: bytes.Clone(text)}
		if text == nil {
			var err error
			if e.json, err = unzstd(packed, maxEvent); err == nil && size.Valid && int64(len(e.json)) != size.Int64 {
				err = fmt.Errorf("it is %d bytes long, and should be %d", len(e.json), size.Int64)
			}
			if err != nil {
				return c.in.skip(c.at(w.id, seq), err.Error())
			}
		}
		out = append(out, e)
		return nil
	})
	return out, err
}

func (c *clawFile) at(session string, seq int64) string {
	return at(c.src, "session %q, event %d", session, seq)
}

// shown returns the events that the host shows, by its own index if that is up to date; nil when it is not.
func (c *clawFile) shown(ctx context.Context, w window, last int64) (map[int64]bool, error) {
	if !c.paths {
		return nil, nil
	}
	var indexed int64
	var stale bool
	err := c.q.QueryRowContext(ctx, "SELECT indexed_seq, needs_rebuild FROM session_transcript_index_state WHERE session_id = ?", w.id).
		Scan(&indexed, &stale)
	if errors.Is(err, sql.ErrNoRows) || err == nil && (stale || indexed < last) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := make(map[int64]bool)
	var seq int64
	err = each(ctx, c.q, "SELECT event_seq FROM session_transcript_active_events WHERE session_id = ?", []any{w.id}, []any{&seq}, func() error {
		out[seq] = true
		return nil
	})
	return out, err
}

// ingest hands over the messages among the events: what is shown, then, where they are wanted, the branches.
func (c *clawFile) ingest(ctx context.Context, p place, session string, events []event, shown map[int64]bool) error {
	conversation := message.Conversation{Format: message.FormatPi}
	for i, e := range events {
		messages, err := messagesOf(e.json)
		if err != nil {
			if err := c.in.skip(c.at(session, e.seq), err.Error()); err != nil {
				return err
			}
		}
		for _, m := range messages {
			conversation.Messages = append(conversation.Messages, m)
			conversation.Lines = append(conversation.Lines, i+1)
		}
	}
	if len(conversation.Messages) == 0 {
		return nil
	}
	return readConversation(ctx, c.in, p, conversation, aside(events, shown))
}

// aside returns the events that the host does not show, by their position from 1, with the names of their branches.
func aside(events []event, shown map[int64]bool) map[int]string {
	t := newTree()
	position := make(map[string]int)
	var path []string
	for i, e := range events {
		var h entryHead
		if json.Unmarshal(e.json, &h) != nil || h.ID == "" {
			continue
		}
		if _, ok := position[h.ID]; !ok {
			position[h.ID] = i + 1
		}
		h.grow(t)
		if shown[e.seq] {
			path = append(path, h.ID)
		}
	}
	if shown == nil {
		var ok bool
		if path, ok = t.path(); !ok {
			return nil
		}
	}
	out := make(map[int]string)
	for _, branch := range t.branches(path) {
		for _, id := range branch {
			out[position[id]] = branch[len(branch)-1]
		}
	}
	return out
}

// messagesOf decodes an event: one message, or none when it is about something else.
func messagesOf(raw []byte) ([]message.Message, error) {
	// Behind a session's header entries of any type are to be expected.
	text := append([]byte("{\"type\":\"session\"}\n"), bytes.ReplaceAll(raw, []byte("\n"), []byte(" "))...)
	conversations, err := message.Read(bytes.NewReader(text), message.ReadOptions{Name: "event", Format: message.FormatPi})
	if err != nil {
		_, reason := splitLineError(err)
		return nil, errors.New(reason)
	}
	var out []message.Message
	for _, c := range conversations {
		out = append(out, c.Messages...)
	}
	return out, nil
}
