package pgtest

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// findBin returns the folder of the newest PostgreSQL.
func findBin() (string, error) {
	if dir := os.Getenv(EnvBin); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
			return "", absentError("there is no initdb in " + dir + ", which " + EnvBin + " names")
		}
		return dir, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		if path, err := exec.LookPath("initdb"); err == nil {
			return filepath.Dir(path), nil
		}
		return "", absentError("PostgreSQL is not installed: apt-get install postgresql, or set " + EnvBin + " to the folder of initdb")
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
	return filepath.Dir(found[0]), nil
}

// startPlain makes a cluster in a folder of its own and starts it.
func startPlain() (*Server, error) {
	bin, err := findBin()
	if err != nil {
		return nil, err
	}
	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, as: as, dir: filepath.Join(dir, "data"), password: rand.Text(), database: "postgres", max: 8}
	if err := s.make(dir); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	for range 3 {
		if s.port, err = freePort(); err != nil {
			break
		}
		if err = s.ctl("start"); err == nil {
			return s, nil
		}
	}
	s.stop()
	return nil, err
}

// make fills dir with a cluster, and starts the watchdog that will remove it.
func (s *Server) make(dir string) error {
	secret := filepath.Join(dir, "password")
	if err := os.WriteFile(secret, []byte(s.password), 0o600); err != nil {
		return err
	}
	for _, arg := range s.as {
		if id, ok := strings.CutPrefix(arg, "--reuid="); ok {
			uid, err := strconv.Atoi(id)
			if err != nil {
				return err
			}
			for _, path := range []string{dir, secret} {
				if err := os.Chown(path, uid, -1); err != nil {
					return err
				}
			}
		}
	}
	err := run(s.as, filepath.Join(s.bin, "initdb"), "-D", s.dir, "-U", "postgres", "-E", "UTF8", "--locale=C", "-A", "scram-sha-256",
		"--pwfile="+secret, "-N")
	if err != nil {
		return err
	}
	s.dog, err = watch(s.as, "", `"$1/pg_ctl" -D "$2" -m immediate -w stop; rm -rf "$3"`, s.bin, s.dir, dir)
	return err
}

// ctl runs pg_ctl and waits until the server is as it was told.
func (s *Server) ctl(args ...string) error {
	// Data survives a crash of the server without fsync, and only that is tested.
	options := fmt.Sprintf("-c port=%d -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c max_connections=100 "+
		"-c shared_buffers=64MB -c log_statement=none -c autovacuum_naptime=60", s.port)
	line := append([]string{"-D", s.dir, "-w", "-t", "60", "-s", "-l", filepath.Join(filepath.Dir(s.dir), "log"), "-o", options}, args...)
	return run(s.as, filepath.Join(s.bin, "pg_ctl"), line...)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("no TCP address: %v", l.Addr())
	}
	return addr.Port, nil
}
