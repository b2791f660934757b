package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// startVector starts PGlite, and waits until it answers.
func startVector() (*Server, error) {
	root := os.Getenv(EnvPGlite)
	if root == "" {
		return nil, absentError("PGlite is not installed: npm install @electric-sql/pglite @electric-sql/pglite-socket " +
			"@electric-sql/pglite-pgvector in a folder, and set " + EnvPGlite + " to it")
	}
	script := filepath.Join(root, "node_modules", "@electric-sql", "pglite-socket", "dist", "scripts", "server.js")
	if _, err := os.Stat(script); errors.Is(err, fs.ErrNotExist) {
		return nil, absentError(EnvPGlite + " does not hold PGlite: there is no " + script)
	}
	if _, err := exec.LookPath("node"); err != nil {
		return nil, absentError("node is not installed, which PGlite runs on")
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{port: port, password: "postgres", database: "postgres", max: 1}
	s.dog, err = watch(nil, `cd "$1" && node "$2" --db=memory:// --host=127.0.0.1 --port="$3" -m 4 `+
		`-e @electric-sql/pglite-pgvector:vector </dev/null >/dev/null 2>&1 &`, `kill -9 $!`, root, script, strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	if err := s.wait(); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// wait returns when the server answers a query.
func (s *Server) wait() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for {
		err := s.exec(ctx, s.DSN(), "SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("PGlite does not answer: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// exec runs one statement on a connection of its own.
func (s *Server) exec(ctx context.Context, dsn, statement string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol)
	return errors.Join(err, conn.Close(ctx))
}
