package sqlite

import (
	"context"
	"database/sql"
)

// writeStatements are prepared once on the writer.
type writeStatements struct {
	scope, addScope, dropScope   *sql.Stmt
	insert, byID, byKey, rowByID *sql.Stmt
	update, remove               *sql.Stmt
	firstView, nextView          *sql.Stmt
	viewVersion, dropView        *sql.Stmt
}

// readStatements are prepared once on the readers.
type readStatements struct {
	scope, nextScope, lastScope *sql.Stmt
	get, forward, backward      *sql.Stmt
	view                        *sql.Stmt
}

const selectByID = "SELECT " + rowColumns + ", s.id, s.agent, s.session FROM entries e JOIN scopes s ON s.id = e.scope WHERE e.id = ?"

func (w *writeStatements) prepare(ctx context.Context, db *sql.DB) error {
	return prepare(ctx, db, map[**sql.Stmt]string{
		&w.scope:    "SELECT id FROM scopes WHERE agent = ? AND session = ?",
		&w.addScope: "INSERT INTO scopes (agent, session) VALUES (?, ?)",
		&w.dropScope: `DELETE FROM scopes WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM entries WHERE scope = ?1)
			AND NOT EXISTS (SELECT 1 FROM views WHERE scope = ?1)`,
		&w.insert: `INSERT INTO entries (scope, id, seq, turn, role, type, time, tokens, key, fingerprint, meta, message, sum)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		&w.byID:        "SELECT scope, key FROM entries WHERE id = ?",
		&w.byKey:       "SELECT id FROM entries WHERE scope = ? AND key = ?",
		&w.rowByID:     selectByID,
		&w.update:      "UPDATE entries SET type = ?, tokens = ?, key = ?, fingerprint = ?, meta = ?, message = ?, sum = ? WHERE n = ?",
		&w.remove:      "DELETE FROM entries WHERE n = ?",
		&w.firstView:   "INSERT INTO views (scope, version, body, sum) VALUES (?, 1, ?, ?) ON CONFLICT DO NOTHING",
		&w.nextView:    "UPDATE views SET version = ?2 + 1, body = ?3, sum = ?4 WHERE scope = ?1 AND version = ?2",
		&w.viewVersion: "SELECT version FROM views WHERE scope = ?",
		&w.dropView:    "DELETE FROM views WHERE scope = ?",
	})
}

func (r *readStatements) prepare(ctx context.Context, db *sql.DB) error {
	return prepare(ctx, db, map[**sql.Stmt]string{
		&r.scope:     "SELECT id, session FROM scopes WHERE agent = ? AND session = ?",
		&r.nextScope: "SELECT id, session FROM scopes WHERE agent = ? AND id >= ? ORDER BY id LIMIT 1",
		&r.lastScope: "SELECT id, session FROM scopes WHERE agent = ? AND id <= ? ORDER BY id DESC LIMIT 1",
		&r.get:       selectByID,
		&r.forward: "SELECT " + rowColumns + ` FROM entries e WHERE e.scope = ? AND e.seq >= ? AND e.seq < ?
			AND (e.seq, e.n) > (?, ?) ORDER BY e.seq, e.n LIMIT ?`,
		&r.backward: "SELECT " + rowColumns + ` FROM entries e WHERE e.scope = ? AND e.seq >= ? AND e.seq < ?
			AND (e.seq, e.n) < (?, ?) ORDER BY e.seq DESC, e.n DESC LIMIT ?`,
		&r.view: "SELECT v.version, v.body, v.sum FROM views v JOIN scopes s ON s.id = v.scope WHERE s.agent = ? AND s.session = ?",
	})
}

func prepare(ctx context.Context, db *sql.DB, statements map[**sql.Stmt]string) error {
	for to, text := range statements {
		stmt, err := db.PrepareContext(ctx, text)
		if err != nil {
			return err
		}
		*to = stmt
	}
	return nil
}
