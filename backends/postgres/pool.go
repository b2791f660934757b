package postgres

import (
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// cancelPatience is how long the server may take to stop a query whose context ended, before its connection is closed.
const cancelPatience = 300 * time.Millisecond

// pool returns the settings of a pool of connections. It does not connect.
func (c Config) pool(dsn string) (*pgxpool.Config, error) {
	p, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	p.MaxConns = int32(c.MaxConns)
	p.MinConns = 0
	p.MaxConnIdleTime = 5 * time.Minute
	p.MaxConnLifetime = time.Hour
	p.MaxConnLifetimeJitter = 10 * time.Minute
	conn := p.ConnConfig
	conn.ConnectTimeout = c.ConnectTimeout
	// The server is told to stop; closing the connection alone would leave it working.
	conn.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: cancelPatience}
	}
	conn.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) {}
	if _, ok := conn.RuntimeParams["application_name"]; !ok {
		conn.RuntimeParams["application_name"] = "contextengine"
	}
	if c.Pooler {
		// Nothing may be left behind on a connection that the next transaction of somebody else will have.
		conn.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		conn.StatementCacheCapacity = 0
		return p, nil
	}
	// Compiling a search takes longer than running it.
	if _, ok := conn.RuntimeParams["jit"]; !ok {
		conn.RuntimeParams["jit"] = "off"
	}
	// The server gives up by itself, too, on what nobody waits for any more.
	limit := strconv.FormatInt((c.Timeout + time.Second).Milliseconds(), 10)
	for _, name := range []string{"statement_timeout", "idle_in_transaction_session_timeout"} {
		if _, ok := conn.RuntimeParams[name]; !ok {
			conn.RuntimeParams[name] = limit
		}
	}
	return p, nil
}
