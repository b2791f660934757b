package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// statements are the texts that a store sends, with its schema filled in. Every one about entries names the agent.
type statements struct {
	// schema and extension are quoted names.
	schema, extension string

	ping                           string
	lockAgents, bump               string
	insert, known, conflict        string
	get, lockEntry, update, remove string
	firstView, nextView, view      string
	tail                           string
	dropView, listViews            string
	changes, counter, changedAt    string
	rank, stats                    string
	dropVectors                    string
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

func (q *statements) replace(text string) string {
	return strings.NewReplacer("{s}", q.schema, "{v}", q.extension).Replace(text)
}

// columns are what scanRow reads, in its order.
const columns = "e.session, e.id, e.n, e.seq, e.turn, e.role, e.type, e.time, e.nanos, e.tokens, e.key, e.meta, e.body"

func newStatements(cfg Config) statements {
	q := statements{schema: quoted(cfg.Schema)}
	lang := "'pg_catalog." + cfg.Language + "'::regconfig"
	// What is not to be found has no words, not even that of its agent.
	words := func(text, agent string) string {
		return "CASE WHEN " + text + " = '' THEN '{}' ELSE " + numbers("tsvector_to_array(to_tsvector("+lang+", "+text+")) || "+agent) + " END"
	}

	q.ping = q.replace("SELECT count(*) FROM (SELECT 1 FROM {s}.schema_version LIMIT 1) x")

	// The rows of several agents are locked in one order by all.
	q.lockAgents = q.replace(`INSERT INTO {s}.agents AS a (agent, n)
		SELECT t.agent, t.k FROM unnest($1::bytea[], $2::bigint[]) AS t(agent, k) ORDER BY t.agent
		ON CONFLICT (agent) DO UPDATE SET n = a.n + excluded.n`)
	q.bump = q.replace("UPDATE {s}.agents SET n = n + $2::bigint WHERE agent = $1")

	// The agent's n is that of the batch's last entry by now; back says how far an entry is from it.
	q.insert = q.replace(`INSERT INTO {s}.entries
			(agent, session, id, n, rev, seq, turn, role, type, time, nanos, tokens, key, meta, body, raw, words)
		SELECT t.agent, t.session, t.id, a.n - t.back, a.n - t.back, t.seq, t.turn, t.role, t.type, t.time, t.nanos, t.tokens, t.key, t.meta,
			t.body, t.raw, ` + words("t.text", "t.mark") + `
		FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::text[], $9::timestamptz[],
			$10::smallint[], $11::bigint[], $12::bytea[], $13::bytea[], $14::bytea[], $15::bigint[], $16::text[], $17::text[]) WITH ORDINALITY
			AS t(agent, session, id, back, seq, turn, role, type, time, nanos, tokens, key, meta, body, raw, text, mark, place)
		JOIN {s}.agents a ON a.agent = t.agent
		ORDER BY t.place
		ON CONFLICT DO NOTHING`)
	sameAgent := ""
	if cfg.Distributed {
		sameAgent = "x.agent = t.agent AND"
	}
	// taken is whether the id belongs to an entry with another key. With LIMIT each entry is looked up by itself: the plan of a join, from when the table was small,
	// reads all of it.
	asked := q.replace(` FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bigint[]) WITH ORDINALITY
			AS t(agent, session, id, key, at, place)
		LEFT JOIN LATERAL (SELECT e.id, e.n, e.seq FROM {s}.entries e WHERE e.agent = t.agent AND e.session = t.session AND e.key = t.key LIMIT 1) k ON true
		LEFT JOIN LATERAL (SELECT true AS taken FROM {s}.entries x WHERE ` + sameAgent + ` x.id = t.id
			AND (x.agent, x.session, x.key) IS DISTINCT FROM (t.agent, t.session, t.key) LIMIT 1) c ON true`)
	// The division fails, and with it the whole transaction, when an id or a position is taken: the answer would come too late, the server commits in
	// the same round trip. Whoever writes entries of an agent holds its row, so nobody takes a position meanwhile; at is how far an entry is from the batch's
	// last, which tells those that are new. Older data may hold several entries at a position.
	q.known = "SELECT k.id, 1 / CASE WHEN k.id IS NULL OR c.taken OR p.taken THEN 0 ELSE 1 END" + asked + q.replace(`
		LEFT JOIN LATERAL (SELECT true AS taken FROM {s}.agents a JOIN {s}.entries y ON y.agent = a.agent WHERE a.agent = t.agent AND k.n = a.n - t.at
			AND y.session = t.session AND y.seq = k.seq AND y.n <> k.n LIMIT 1) p ON true ORDER BY t.place`)
	// Here at is the position.
	q.conflict = "SELECT t.id, t.at, c.taken IS NOT NULL" + asked + q.replace(` WHERE c.taken OR k.id IS NULL
			AND EXISTS (SELECT 1 FROM {s}.entries y WHERE y.agent = t.agent AND y.session = t.session AND y.seq = t.at)
		ORDER BY c.taken IS NULL, t.place LIMIT 1`)
	q.tail = q.replace(`SELECT coalesce((SELECT version FROM {s}.views WHERE agent = $1 AND session = $2), 0),
		coalesce((SELECT max(seq) + 1 FROM {s}.entries WHERE agent = $1 AND session = $2), 0)`)

	q.get = q.replace("SELECT " + columns + " FROM {s}.entries e WHERE e.agent = $1 AND e.id = ANY($2::bytea[]) AND ($3::bytea IS NULL OR e.session = $3)")
	q.lockEntry = q.get + " FOR UPDATE"
	q.update = q.replace(`UPDATE {s}.entries e SET rev = a.n, type = $3, tokens = $4, key = $5, meta = $6, body = $7, raw = $8,
		words = ` + words("$9::text", "$10::text") + `
		FROM {s}.agents a WHERE a.agent = $1 AND e.agent = $1 AND e.id = $2`)
	q.remove = q.replace(`WITH d AS (DELETE FROM {s}.entries WHERE agent = $1 AND id = ANY($2::bytea[]) AND ($3::bytea IS NULL OR session = $3)
			RETURNING id)
		INSERT INTO {s}.gone (agent, id, rev)
		SELECT a.agent, d.id, a.n + 1 - row_number() OVER (ORDER BY d.id DESC) FROM d JOIN {s}.agents a ON a.agent = $1
		ON CONFLICT (agent, id) DO UPDATE SET rev = excluded.rev`)

	q.firstView = q.replace("INSERT INTO {s}.views (agent, session, version, body) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING")
	q.nextView = q.replace("UPDATE {s}.views SET version = $3, body = $4 WHERE agent = $1 AND session = $2 AND version = $3 - 1")
	q.view = q.replace("SELECT version, body FROM {s}.views WHERE agent = $1 AND session = $2")
	q.dropView = q.replace("DELETE FROM {s}.views WHERE agent = $1 AND session = $2")
	q.listViews = q.replace(`SELECT agent, session FROM {s}.views WHERE (agent, session) > ($1::bytea, $2::bytea) AND ($3::bytea IS NULL OR agent = $3)
		ORDER BY agent, session LIMIT $4`)

	q.changes = q.replace(`(SELECT rev, id, false AS gone FROM {s}.entries WHERE agent = $1 AND rev > $2 ORDER BY rev LIMIT $3)
		UNION ALL
		(SELECT rev, id, true FROM {s}.gone WHERE agent = $1 AND rev > $2 AND $2 > 0 ORDER BY rev LIMIT $3)
		ORDER BY rev LIMIT $3`)
	q.counter = q.replace("SELECT n FROM {s}.agents WHERE agent = $1")
	q.changedAt = q.replace("SELECT id FROM {s}.entries WHERE agent = $1 AND rev = $2 UNION ALL SELECT id FROM {s}.gone WHERE agent = $1 AND rev = $2")

	q.stats = q.replace(`SELECT count(DISTINCT agent), count(DISTINCT (agent, session)), count(*), coalesce(sum(raw), 0)::bigint,
		min(time), max(time),
		(SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_catalog.pg_class c
			JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r')
		FROM {s}.entries`)
	q.rank = q.replace(rankText(lang))
	q.dropVectors = q.replace("DELETE FROM {s}.vectors WHERE agent = $1 AND id = $2")
	return q
}
