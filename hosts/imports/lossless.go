package imports

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core/message"
)

// Facts about the schema are those of lossless-claw 0.15 to 1.0.

// chat is a conversation of lossless-claw.
type chat struct {
	n            int64
	session, key string
	current      bool
}

// readLossless imports the conversations of lossless-claw. Its summaries stay behind: they stand for messages that are all there.
func readLossless(ctx context.Context, src *source, in *intake) error {
	return src.db.snapshot(ctx, func(q querier) error {
		columns, err := src.db.columns(ctx, q, "messages")
		if err != nil {
			return err
		}
		chats, err := chatsOf(ctx, src, q)
		if err != nil {
			return err
		}
		if err := q.QueryRowContext(ctx, "SELECT count(*) FROM messages").Scan(&in.total); err != nil {
			return err
		}
		var summaries int
		if err := q.QueryRowContext(ctx, "SELECT count(*) FROM summaries").Scan(&summaries); err == nil {
			in.leave(leftSummaries, summaries)
		}
		named := make(map[string]bool)
		for _, c := range chats {
			p := c.place()
			if named[p.session] {
				p.session += "#" + c.session
			}
			named[p.session] = true
			if err := in.begin(ctx, p); err != nil {
				return err
			}
			if err := readChat(ctx, src, q, in, c, columns["transcript_entry_id"]); err != nil {
				return err
			}
		}
		return nil
	})
}

// chatsOf lists the conversations, the current one of each key first.
func chatsOf(ctx context.Context, src *source, q querier) ([]chat, error) {
	columns, err := src.db.columns(ctx, q, "conversations")
	if err != nil {
		return nil, err
	}
	query := "SELECT conversation_id, session_id, session_key, active FROM conversations ORDER BY active DESC, conversation_id"
	for _, name := range []string{"session_key", "active"} {
		if !columns[name] {
			query = strings.Replace(query, name, map[string]string{"session_key": "NULL", "active": "1"}[name], 1)
		}
	}
	if !columns["active"] {
		query = strings.Replace(query, "active DESC, ", "", 1)
	}
	var out []chat
	var c chat
	var key sql.NullString
	err = each(ctx, q, query, nil, []any{&c.n, &c.session, &key, &c.current}, func() error {
		c.key = key.String
		out = append(out, c)
		return nil
	})
	return out, err
}

func (c *chat) place() place {
	if c.key == "" {
		return place{session: c.session}
	}
	p := place{agent: agentOfKey(c.key), session: c.key}
	if !c.current {
		p.session += "#" + c.session
	}
	return p
}

// row is a message as the table has it.
type row struct {
	n       int64
	role    string
	content string
	created string
	entry   sql.NullString
}

// pageRows is the number of messages that are read with their parts at once.
const pageRows = 500

// readChat ingests the messages of one conversation.
func readChat(ctx context.Context, src *source, q querier, in *intake, c chat, entries bool) error {
	query := "SELECT message_id, role, content, created_at, transcript_entry_id FROM messages WHERE conversation_id = ? ORDER BY seq LIMIT ? OFFSET ?"
	if !entries {
		query = strings.Replace(query, "transcript_entry_id", "NULL", 1)
	}
	for offset := 0; ; offset += pageRows {
		var rows []row
		var r row
		err := each(ctx, q, query, []any{c.n, pageRows, offset}, []any{&r.n, &r.role, &r.content, &r.created, &r.entry}, func() error {
			rows = append(rows, r)
			return nil
		})
		if err != nil {
			return err
		}
		for _, r := range rows {
			parts, err := partsOf(ctx, q, r.n)
			if err != nil {
				return err
			}
			m, err := r.message(parts)
			if err != nil {
				if err := in.skip(at(src, "message %d of conversation %d", r.n, c.n), err.Error()); err != nil {
					return err
				}
				continue
			}
			in.leave(leftFiles, outside(parts))
			if err := in.add(ctx, m); err != nil {
				return err
			}
		}
		if len(rows) < pageRows {
			return nil
		}
	}
}

// message makes of a row what the host's message was.
func (r *row) message(parts []storedPart) (message.Message, error) {
	at := timeOf(r.created)
	raw, err := r.encode(parts, at)
	if err != nil {
		return message.Message{}, err
	}
	codec, err := message.Lookup(message.FormatPi)
	if err != nil {
		return message.Message{}, err
	}
	m, err := codec.Decode(raw)
	if err != nil {
		return message.Message{}, unwrapped(err)
	}
	m.Time, m.ID = at, r.entry.String
	return m, nil
}

// unwrapped drops what a codec says about itself.
func unwrapped(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// timeOf reads a time as SQLite's datetime() or JavaScript writes it; zero when it is none.
func timeOf(s string) time.Time {
	for _, layout := range []string{time.DateTime, time.RFC3339Nano, "2006-01-02 15:04:05.999"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC().Truncate(time.Millisecond)
		}
	}
	return time.Time{}
}
