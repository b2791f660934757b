// Package pgtest starts PostgreSQL servers for tests, on the loopback and in folders of their own.
//
// A test binary keeps one value for all of its tests and stops it at the end:
//
//	var servers pgtest.Servers
//
//	func TestMain(m *testing.M) { os.Exit(servers.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		dsn := servers.Plain(t).Database(t)
//		...
//	}
//
// Plain is a real PostgreSQL without extensions, from the programs in CONTEXTENGINE_POSTGRES_BIN or else where Debian's package puts
// them. Vector is one with the extension "vector": PGlite, from the folder named by CONTEXTENGINE_PGLITE, in which its npm packages are
// installed. PostgreSQL refuses to run as root; then its programs run as the user "postgres", or "nobody".
//
// A test whose server cannot be had is skipped and says what is missing. With CONTEXTENGINE_CI=1 it fails.
//
// Servers are started when the first test asks. A shell that waits for the end of the test process stops them and removes their files, also
// when the process is killed.
package pgtest
