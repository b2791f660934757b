package postgres

import (
	"fmt"
	"strconv"
	"strings"
)

// vectorStatements are the texts that are sent about vectors.
type vectorStatements struct {
	addSpace, holdSpace, resizeSpace, space string
	owners, put, scan, spaces               string
	dropOf, dropAll, dropSpace              string
	count, exact                            string
}

func newVectorStatements(q *statements) vectorStatements {
	return vectorStatements{
		addSpace:  q.replace("INSERT INTO {s}.spaces (name, dimensions) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING"),
		holdSpace: q.replace("SELECT space, dimensions FROM {s}.spaces WHERE name = $1 FOR NO KEY UPDATE"),
		resizeSpace: q.replace(`UPDATE {s}.spaces SET dimensions = $2 WHERE space = $1
			AND NOT EXISTS (SELECT 1 FROM {s}.vectors v WHERE v.space = $1)`),
		space:  q.replace("SELECT space, dimensions FROM {s}.spaces WHERE name = $1"),
		owners: q.replace("SELECT id, agent FROM {s}.entries WHERE id = ANY($1::bytea[]) AND type NOT IN ('erased') FOR KEY SHARE"),
		put: q.replace(`INSERT INTO {s}.vectors (agent, id, space, part, head, tail, hash, embedding)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text::{v}.vector)
			ON CONFLICT (agent, id, space, part) DO UPDATE SET head = excluded.head, tail = excluded.tail, hash = excluded.hash,
				embedding = excluded.embedding`),
		scan: q.replace(`SELECT v.id, v.part, v.head, v.tail, v.hash, v.embedding::real[] FROM {s}.vectors v
			WHERE v.agent = $1 AND v.space = (SELECT space FROM {s}.spaces WHERE name = $2) AND (v.id, v.part) > ($3::bytea, $4::integer)
			ORDER BY v.id, v.part LIMIT $5`),
		spaces: q.replace(`SELECT s.name, s.dimensions, count(DISTINCT (v.agent, v.id)) FROM {s}.spaces s JOIN {s}.vectors v ON v.space = s.space
			WHERE $1::bytea IS NULL OR v.agent = $1 GROUP BY s.space, s.name, s.dimensions ORDER BY s.name`),
		dropOf:    q.replace("DELETE FROM {s}.vectors WHERE space = $1 AND agent = $2"),
		dropAll:   q.replace("DELETE FROM {s}.vectors WHERE space = $1"),
		dropSpace: q.replace("DELETE FROM {s}.spaces WHERE space = $1"),
		exact:     q.replace(exactText),
		count:     q.replace("SELECT count(*) FROM (SELECT 1 FROM {s}.vectors WHERE agent = $1 AND space = $2 LIMIT $3) x"),
	}
}

// The longest vectors that an index can hold; see https://github.com/pgvector/pgvector#hnsw.
const (
	maxIndexed     = 2000
	maxIndexedHalf = 4000
)

// What is done with the index of a space.
const (
	dropIndex   = "DROP INDEX IF EXISTS {s}.{i}"
	createIndex = "CREATE INDEX {c} {i} ON {s}.vectors USING hnsw (({e}) {v}.{o}) WHERE space = {n}"
)

// indexText fills in the statement about the index of a space. The table holds spaces of several dimensions, so the index is one of an
// expression.
func (v *vectorStore) indexText(text string, space, dimensions int) string {
	concurrently := "CONCURRENTLY"
	if v.partitions > 1 {
		concurrently = "" // the server cannot, for a table with partitions
	}
	operators := "vector_cosine_ops"
	if dimensions > maxIndexed {
		operators = "halfvec_cosine_ops"
	}
	q := v.Store.sql.replace(strings.NewReplacer("{e}", v.expression(dimensions), "{o}", operators, "{c}", concurrently).Replace(text))
	return strings.NewReplacer("{i}", indexName(space), "{n}", strconv.Itoa(space)).Replace(q)
}

func indexName(space int) string { return fmt.Sprintf("vectors_hnsw_%d", space) }

// expression is what an index holds of the vectors of a space, and what a search with it compares.
func (v *vectorStore) expression(dimensions int) string {
	kind := "vector"
	if dimensions > maxIndexed {
		kind = "halfvec"
	}
	return fmt.Sprintf("embedding::{v}.%s(%d)", kind, dimensions)
}

// exactText is the statement that compares a vector with all of an agent in a space: agent, space, vector, session or nil, from and to or nil,
// limit.
const exactText = `SELECT e.id, max(1 - (v.embedding OPERATOR({v}.<=>) $3::text::{v}.vector)) AS score
	FROM {s}.vectors v JOIN {s}.entries e ON e.agent = v.agent AND e.id = v.id
	WHERE v.agent = $1 AND v.space = $2 AND e.agent = $1 AND e.type NOT IN ('heartbeat', 'erased')
		AND ({v}.vector_norm(v.embedding) > 0) AND ($4::bytea IS NULL OR e.session = $4)
		AND ($5::timestamptz IS NULL OR e.time >= $5) AND ($6::timestamptz IS NULL OR e.time < $6)
	GROUP BY e.id, e.time ORDER BY score DESC, e.time DESC, e.id LIMIT $7::bigint`

// nearText is the statement that asks the index of a space: agent, vector, limit. An entry has several vectors when its text is long.
func (v *vectorStore) nearText(space, dimensions int) string {
	by := strings.TrimPrefix(v.expression(dimensions), "embedding")
	return v.Store.sql.replace(`WITH near AS MATERIALIZED (
			SELECT id, embedding OPERATOR({v}.<=>) $2::text::{v}.vector AS distance FROM {s}.vectors
			WHERE agent = $1 AND space = ` + strconv.Itoa(space) + `
			ORDER BY ` + v.expression(dimensions) + ` OPERATOR({v}.<=>) ($2::text` + by + `) LIMIT 4 * $3::bigint)
		SELECT e.id, max(1 - n.distance) AS score FROM near n JOIN {s}.entries e ON e.agent = $1 AND e.id = n.id
		WHERE n.distance <> 'NaN' AND e.type NOT IN ('heartbeat', 'erased')
		GROUP BY e.id, e.time ORDER BY score DESC, e.time DESC, e.id LIMIT $3::bigint`)
}
