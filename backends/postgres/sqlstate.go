package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/contextengine/contextengine/core"
)

// The SQLSTATEs that this package tells apart; see https://www.postgresql.org/docs/current/errcodes-appendix.html.
const (
	stateDivisionByZero   = "22012"
	stateUniqueViolation  = "23505"
	stateSerialization    = "40001"
	stateDeadlock         = "40P01"
	stateNoPrivilege      = "42501"
	stateQueryCanceled    = "57014"
	stateReadOnly         = "25006"
	stateNoStatement      = "26000"
	stateDuplicatePrepare = "42P05"
	stateProtocol         = "08P01"
	stateNoDatabase       = "3D000"
)

// answered classifies what the server said. Its message, detail and context are left out: they quote values.
func answered(pg *pgconn.PgError) *failure {
	f := &failure{what: "SQLSTATE " + pg.Code}
	say := func(text string, kind error) *failure {
		f.what, f.kind = fmt.Sprintf("%s (SQLSTATE %s)", text, pg.Code), kind
		return f
	}
	// The server rolled back what it says an error about, unless the session itself ended.
	fatal := pg.Severity == "FATAL" || pg.Severity == "PANIC" || pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC"
	switch pg.Code {
	case stateUniqueViolation:
		return say("another one has the same key", core.ErrConflict)
	case stateSerialization, stateDeadlock:
		f.undone = true
		return say("transactions got in each other's way", core.ErrUnavailable)
	case stateNoStatement, stateDuplicatePrepare:
		f.undone = true
		return say("the connection is behind a pooler that does not keep prepared statements: set pooler", core.ErrUnavailable)
	case stateNoPrivilege:
		return say("the user lacks a privilege: it needs to own the schema, or create it", core.ErrAuth)
	case stateQueryCanceled:
		return say("the server stopped the statement: it took too long, or somebody cancelled it", core.ErrUnavailable)
	case stateReadOnly:
		return say("the server does not take writes: the address is that of a replica", core.ErrUnavailable)
	case stateProtocol:
		return say("the server does not understand this client: if it is a pooler such as PgBouncer, set pooler", core.ErrUnavailable)
	case stateNoDatabase:
		return say("there is no such database", core.ErrNotFound)
	}
	switch pg.Code[:min(2, len(pg.Code))] {
	case "28":
		return say("the server refused the user or password", core.ErrAuth)
	case "08":
		f.doubt, f.lost = true, true
		return say("connection to the server lost", core.ErrUnavailable)
	case "57":
		f.doubt, f.lost = true, fatal
		f.undone = !fatal || pg.Code == "57P03"
		return say("the server is starting or stopping", core.ErrUnavailable)
	case "53":
		f.undone = true
		return say("the server is out of connections, memory or disk", core.ErrUnavailable)
	case "55":
		f.undone = true
		return say("something is in use", core.ErrUnavailable)
	case "58", "XX":
		return say("the server reports an internal error or damage", ErrDamaged)
	case "42", "3F":
		return say("the tables are not what this program made", ErrSchema)
	case "22", "23":
		return say("the server refused a value", core.ErrInvalid)
	}
	return f
}
