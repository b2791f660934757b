package postgres

// rankText returns the statement that ranks entries by their words: agent, words of the query, mark of the agent, session or nil, from and to
// or nil, limit.
//
// Each word of the query (at most 64, longer ones first) weighs by the logarithm of how few of the entries that match at all have it, however often an entry
// has it: to keep that would take a fifth of the table and finds nothing more. The length of an entry, in different words, counts a fifth. The neighbours of the best 300 get a share of their score. Sums are of whole numbers, so that no order of adding changes them.
//
// No two large intermediate results are joined: their sizes are anybody's guess to the planner, and a bad one would take minutes.
func rankText(lang string) string {
	return `WITH t AS MATERIALIZED (
			SELECT ` + number("lexeme") + ` AS word FROM unnest(to_tsvector(` + lang + `, $2))
			ORDER BY length(lexeme) DESC, lexeme LIMIT 64),
		m AS MATERIALIZED (
			SELECT e.id, e.session, e.seq, e.time, e.words
			FROM {s}.entries e
			WHERE e.agent = $1
				AND e.words @> ARRAY[` + number("$3::text") + `] AND e.words && ARRAY(SELECT word FROM t)
				AND ($4::bytea IS NULL OR e.session = $4)
				AND ($5::timestamptz IS NULL OR e.time >= $5) AND ($6::timestamptz IS NULL OR e.time < $6)),
		whole AS MATERIALIZED (
			SELECT count(*)::float8 AS total, avg(cardinality(words))::float8 AS size FROM m),
		h AS MATERIALIZED (
			SELECT m.id, m.session, m.seq, m.time, t.word, 1 / (0.8 + 0.2 * cardinality(m.words) / whole.size) AS part
			FROM m CROSS JOIN whole CROSS JOIN LATERAL unnest(m.words) AS w(word) JOIN t ON t.word = w.word),
		weights AS MATERIALIZED (
			SELECT word, ln(1 + (min(whole.total) - count(*) + 0.5) / (count(*) + 0.5)) AS weight FROM h CROSS JOIN whole GROUP BY word),
		own AS MATERIALIZED (
			SELECT h.id, h.session, h.seq, h.time, sum((h.part * w.weight * 1e10)::bigint) AS score
			FROM h JOIN weights w ON w.word = h.word GROUP BY h.id, h.session, h.seq, h.time),
		best AS (
			SELECT session, seq, score FROM own ORDER BY score DESC, time DESC, id LIMIT 300),
		near AS (
			SELECT b.session, b.seq + d.step AS seq, round(sum(b.score * d.share)) AS score
			FROM best b CROSS JOIN (VALUES (-2, 0.2), (-1, 0.3), (1, 0.5), (2, 0.3)) AS d(step, share) GROUP BY 1, 2),
		found AS (
			SELECT id, time, score FROM own
			UNION ALL
			SELECT e.id, e.time, n.score FROM near n
			JOIN {s}.entries e ON e.agent = $1 AND e.session = n.session AND e.seq = n.seq
			WHERE e.words <> '{}' AND ($5::timestamptz IS NULL OR e.time >= $5) AND ($6::timestamptz IS NULL OR e.time < $6))
		SELECT id, (sum(score) / 1e9)::float8 FROM found GROUP BY id, time ORDER BY sum(score) DESC, time DESC, id LIMIT $7::bigint`
}
