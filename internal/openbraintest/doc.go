// Package openbraintest is an OpenBrain server for tests: real HTTP on the loopback interface, thoughts in memory, and
// switches for everything about such servers that is not documented or goes wrong.
//
// Start with New; it stops with the test:
//
//	srv := openbraintest.New(t)
//	cfg.BaseURL, cfg.APIKey = srv.URL(), srv.Key()
//
// Set changes how the server behaves, Inject makes it fail, Stop and Start restart it with the thoughts it had.
package openbraintest
