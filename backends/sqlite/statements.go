package sqlite

import (
	"context"
	"database/sql"
	"strings"
)

// writeStatements are prepared once on the writer.
type writeStatements struct {
	scope, addScope, dropScope   *sql.Stmt
	byKey, rowByID               *sql.Stmt
	update, remove               *sql.Stmt
	dropView                     *sql.Stmt
	next                         *sql.Stmt
	addChange                    *sql.Stmt
	space, addSpace, sizeSpace   *sql.Stmt
	owned, addVector, hasVectors *sql.Stmt
	dropVectors                  *sql.Stmt
}

// readStatements are prepared once on the readers.
type readStatements struct {
	scope, nextScope, lastScope *sql.Stmt
	forward, backward           *sql.Stmt
	messages, messagesBack      *sql.Stmt
	special, specialBack        *sql.Stmt
	counts, specials, sessions  *sql.Stmt
	view                        *sql.Stmt
	end                         query
	vectors                     *sql.Stmt
	// What glances run.
	get                 query
	getSome, getMany    query
	head                query
	change, left        query
	runs, changes       query
	between, betweenIDs query
	tail, tailIDs       query
}

// selectHighest is the highest number that was given so far.
const selectHighest = "SELECT max(coalesce((SELECT max(n) FROM entries), 0), coalesce((SELECT max(n) FROM changes), 0))"

// What Append runs, see direct.
const (
	selectNext  = selectHighest + " + 1"
	selectScope = "SELECT id, (" + selectHighest + ") + 1 FROM scopes WHERE agent = ? AND session = ?"
	insertScope = "INSERT INTO scopes (agent, session) VALUES (?, ?)"
	insertEntry = `INSERT INTO entries (n, scope, id, seq, turn, role, type, time, tokens, key, fingerprint, meta, message, sum)
		SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14
		WHERE ?15 OR NOT EXISTS (SELECT 1 FROM entries WHERE scope = ?2 AND seq = ?4) ON CONFLICT DO NOTHING`
	selectKeyByID = "SELECT scope, key FROM entries WHERE id = ?"
	selectIDByKey = "SELECT id FROM entries WHERE scope = ? AND key = ?"
)

// What SwapView runs, see direct.
const (
	insertView  = "INSERT INTO views (scope, version, body, sum) VALUES (?, 1, ?, ?) ON CONFLICT DO NOTHING"
	updateView  = "UPDATE views SET version = ?2 + 1, body = ?3, sum = ?4 WHERE scope = ?1 AND version = ?2"
	selectSwaps = "SELECT version FROM views WHERE scope = ?"
)

// selectTail is one look into each of three indexes.
const selectTail = `SELECT coalesce((SELECT v.version FROM views v WHERE v.scope = s.id), 0), coalesce((SELECT max(e.seq) + 1 FROM entries e WHERE e.scope = s.id), 0)
	FROM scopes s WHERE s.agent = ? AND s.session = ?`

const (
	selectByID  = "SELECT " + rowColumns + ", s.agent, s.session, s.id" + fromEntries + "e.id = ?"
	fromEntries = " FROM entries e JOIN scopes s ON s.id = e.scope WHERE "
)

// How many ids the statements that take several have places for.
const (
	someIDs = 16
	manyIDs = 64
)

// selectByIDs returns the statement for n ids.
func selectByIDs(n int) string {
	return "SELECT " + rowColumns + ", s.agent, s.session" + fromEntries + "e.id IN (?" + strings.Repeat(", ?", n-1) + ")"
}

func (w *writeStatements) prepare(ctx context.Context, db *sql.DB) error {
	return prepare(ctx, db, map[**sql.Stmt]string{
		&w.scope:    selectScope,
		&w.addScope: insertScope,
		&w.dropScope: `DELETE FROM scopes WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM entries WHERE scope = ?1)
			AND NOT EXISTS (SELECT 1 FROM views WHERE scope = ?1)`,
		&w.byKey:      selectIDByKey,
		&w.rowByID:    selectByID,
		&w.update:     "UPDATE entries SET type = ?, tokens = ?, key = ?, fingerprint = ?, meta = ?, message = ?, sum = ? WHERE n = ?",
		&w.remove:     "DELETE FROM entries WHERE n = ?",
		&w.dropView:   "DELETE FROM views WHERE scope = ?",
		&w.next:       selectNext,
		&w.addChange:  "INSERT INTO changes (n, owner, id, entry, token, sum) VALUES (?, ?, ?, ?, ?, ?)",
		&w.space:      "SELECT id, dimensions FROM spaces WHERE name = ?",
		&w.addSpace:   "INSERT INTO spaces (name, dimensions) VALUES (?, ?)",
		&w.sizeSpace:  "UPDATE spaces SET dimensions = ? WHERE id = ?",
		&w.hasVectors: "SELECT count(*) FROM (SELECT 1 FROM vectors WHERE space = ? LIMIT 1)",
		&w.owned:      "SELECT e.n, s.agent FROM entries e JOIN scopes s ON s.id = e.scope WHERE e.id = ?",
		&w.addVector: `INSERT OR REPLACE INTO vectors (owner, space, n, part, first, last, hash, body, sum)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		&w.dropVectors: "DELETE FROM vectors WHERE owner = ? AND space IN (SELECT id FROM spaces) AND n = ?",
	})
}

// selectForward returns the statement that reads a page of a session by an index, under a further condition, selectBackward the one from the end.
func selectForward(index, and string) string {
	return "SELECT " + rowColumns + " FROM entries e INDEXED BY " + index + ` WHERE e.scope = ? AND e.seq >= ? AND e.seq < ?
		AND (e.seq, e.n) > (?, ?) ` + and + " ORDER BY e.seq, e.n LIMIT +?"
}

func selectBackward(index, and string) string {
	return "SELECT " + rowColumns + " FROM entries e INDEXED BY " + index + ` WHERE e.scope = ? AND e.seq >= ? AND e.seq < ?
		AND (e.seq, e.n) < (?, ?) ` + and + " ORDER BY e.seq DESC, e.n DESC LIMIT +?"
}

// A LIMIT is written +? because SQLite looks into a bare ? when it plans: it would plan the statement anew each time that is run, which was half of
// what Changes took when nothing was new.
func (r *readStatements) prepare(ctx context.Context, db *sql.DB) error {
	statements := map[**sql.Stmt]string{
		&r.scope:     "SELECT id, session FROM scopes WHERE agent = ? AND session = ?",
		&r.nextScope: "SELECT id, session FROM scopes WHERE agent = ? AND id >= ? ORDER BY id LIMIT 1",
		&r.lastScope: "SELECT id, session FROM scopes WHERE agent = ? AND id <= ? ORDER BY id DESC LIMIT 1",
		&r.forward:   selectForward("entries_order", ""),
		&r.backward:  selectBackward("entries_order", ""),
		// Most entries are messages; the others have an index of their own.
		&r.messages:     selectForward("entries_order", "AND e.type = ?"),
		&r.messagesBack: selectBackward("entries_order", "AND e.type = ?"),
		&r.special:      selectForward("entries_types", "AND e.type = ? AND e.type <> 'message'"),
		&r.specialBack:  selectBackward("entries_types", "AND e.type = ? AND e.type <> 'message'"),
		&r.counts: `SELECT (SELECT count(*) FROM entries INDEXED BY entries_order WHERE scope = ?1),
			(SELECT count(*) FROM entries INDEXED BY sqlite_autoindex_entries_2 WHERE scope = ?1)`,
		&r.specials: `SELECT (SELECT count(*) FROM entries INDEXED BY entries_types WHERE scope = ?1 AND type <> 'message'),
			(SELECT count(*) FROM entries INDEXED BY entries_special WHERE scope = ?1 AND type <> 'message')`,
		&r.sessions: `SELECT (SELECT count(*) FROM scopes INDEXED BY sqlite_autoindex_scopes_1 WHERE agent = ?1 AND (?2 = '' OR session = ?2)),
			(SELECT count(*) FROM scopes NOT INDEXED WHERE agent = ?1 AND (?2 = '' OR session = ?2))`,
		&r.vectors: `SELECT v.n, v.part, v.first, v.last, v.hash, v.body, v.sum, e.id FROM vectors v LEFT JOIN entries e ON e.n = v.n
			WHERE v.owner = ?1 AND v.space = ?2 AND (v.n, v.part) > (?3, ?4) ORDER BY v.n, v.part LIMIT +?5`,
		&r.view: "SELECT v.version, v.body, v.sum FROM views v JOIN scopes s ON s.id = v.scope WHERE s.agent = ? AND s.session = ?",
	}
	for to, text := range map[*query]string{
		&r.get:     selectByID,
		&r.end:     selectTail,
		&r.getSome: selectByIDs(someIDs),
		&r.getMany: selectByIDs(manyIDs),
		&r.head: `SELECT id, covered, sum, (SELECT e.id FROM entries e WHERE e.n = ?2),
			(SELECT max(c.n) FROM changes c WHERE c.owner = ?1),
			(SELECT max(c.n) FROM changes c WHERE c.owner = ?1 AND c.id IS NULL), (` + selectHighest + ") FROM identity WHERE one = 1",
		&r.change: "SELECT " + changeColumns + " FROM changes WHERE n = ?2 AND owner = ?1",
		&r.left:   "SELECT count(*) FROM (SELECT 1 FROM changes WHERE owner = ? AND n > ? AND entry = ? AND id = ? LIMIT 1)",
		&r.runs: `SELECT first, last, sum FROM runs WHERE owner = ?1 AND last > ?2
			AND first >= coalesce((SELECT max(first) FROM runs WHERE owner = ?1 AND first <= ?2), 0) ORDER BY first LIMIT 256`,
		&r.between: "SELECT " + rowColumns + `, s.agent, s.session FROM entries e LEFT JOIN scopes s ON s.id = e.scope
			WHERE e.n BETWEEN ? AND ? ORDER BY e.n LIMIT +?`,
		&r.tail: "SELECT " + rowColumns + `, s.agent, s.session FROM entries e LEFT JOIN scopes s ON s.id = e.scope
			WHERE e.n > ? AND (s.agent = ? OR s.agent IS NULL) ORDER BY e.n LIMIT +?`,
		&r.betweenIDs: "SELECT e.n, e.id FROM entries e WHERE e.n BETWEEN ? AND ? ORDER BY e.n LIMIT +?",
		&r.tailIDs: `SELECT e.n, e.id FROM entries e LEFT JOIN scopes s ON s.id = e.scope
			WHERE e.n > ? AND (s.agent = ? OR s.agent IS NULL) ORDER BY e.n LIMIT +?`,
		&r.changes: "SELECT " + changeColumns + " FROM changes WHERE owner = ? AND n > ? AND id IS NOT NULL ORDER BY n LIMIT +?",
	} {
		to.text = text
		statements[&to.stmt] = text
	}
	return prepare(ctx, db, statements)
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
