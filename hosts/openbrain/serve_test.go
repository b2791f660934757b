package openbrain_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/openbrain"
)

// slowStore holds appends of a source until it is let go.
type slowStore struct {
	core.Store
	entered, release chan struct{}
}

func (s *slowStore) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if entries[0].Agent == "slow" {
		close(s.entered)
		select {
		case <-s.release:
		case <-ctx.Done():
			return core.AppendResult{}, ctx.Err()
		}
	}
	return s.Store.Append(ctx, entries)
}

// listen serves with Serve on a loopback port; stop ends it and returns what Serve returned.
func listen(t *testing.T, f *fixture) (addr string, stop func() error) {
	t.Helper()
	ln, err := openbrain.DefaultConfig().Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.server.Serve(ctx, ln) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return ln.Addr().String(), stop
}

func TestShutdownDrains(t *testing.T) {
	for name, drained := range map[string]bool{"in time": true, "too late": false} {
		t.Run(name, func(t *testing.T) {
			slow := &slowStore{Store: memory.New(), entered: make(chan struct{}), release: make(chan struct{})}
			f := serve(t, slow, func(c *openbrain.Config) {
				if !drained {
					c.ShutdownTimeout = 20 * time.Millisecond
				}
			})
			addr, stop := listen(t, f)
			status := make(chan int, 1)
			go func() {
				res, err := http.Post("http://"+addr+"/v1/thoughts", "application/json", strings.NewReader(`{"content":"x","source":"slow"}`))
				if err != nil {
					status <- 0
					return
				}
				_ = res.Body.Close()
				status <- res.StatusCode
			}()
			<-slow.entered
			stopped := make(chan error, 1)
			go func() { stopped <- stop() }()
			if drained {
				// The request is still under way when the listener has gone.
				for {
					c, err := net.Dial("tcp", addr)
					if err != nil {
						break
					}
					_ = c.Close()
				}
				f.want(t, http.StatusServiceUnavailable, "", http.MethodGet, "/readyz", "", nil)
				close(slow.release)
				if got := <-status; got != http.StatusCreated {
					t.Errorf("request under way = %d, want 201", got)
				}
				if err := <-stopped; err != nil {
					t.Errorf("Serve = %v, want nil", err)
				}
				return
			}
			if err := <-stopped; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Serve = %v, want DeadlineExceeded", err)
			}
			if got := <-status; got == http.StatusCreated {
				t.Error("the request that was cut off answered 201")
			}
		})
	}
}

func TestSlowClientsAreCutOff(t *testing.T) {
	f := serve(t, nil, func(c *openbrain.Config) {
		c.ReadHeaderTimeout, c.ReadTimeout, c.MaxHeaderBytes = 50*time.Millisecond, 150*time.Millisecond, 4096
	})
	addr, _ := listen(t, f)
	for name, tc := range map[string]struct{ sent, want string }{
		"header never ends": {"GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", ""},
		"body never ends":   {"POST /v1/thoughts HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", "HTTP/1.1 408"},
		"header too large":  {"GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 20_000) + "\r\n\r\n", "HTTP/1.1 431"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			if _, err := io.WriteString(c, tc.sent); err != nil {
				t.Fatal(err)
			}
			// Far beyond the limits: it only keeps a server without them from hanging the test.
			_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
			line, err := bufio.NewReader(c).ReadString('\n')
			if errors.Is(err, os.ErrDeadlineExceeded) || (tc.want == "" && err == nil && !strings.HasPrefix(line, "HTTP/1.1 408")) {
				t.Errorf("answered %q, want the connection closed", line)
			}
			if tc.want != "" && !strings.HasPrefix(line, tc.want) {
				t.Errorf("answered %q, %v; want %s", line, err, tc.want)
			}
		})
	}
}

func TestServeTLS(t *testing.T) {
	dir := t.TempDir()
	cert, keyFile, pool := certificate(t, dir)
	f := serve(t, nil, func(c *openbrain.Config) { c.TLSCert, c.TLSKey = cert, keyFile })
	addr, _ := listen(t, f)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	res, err := client.Get("https://" + addr + "/healthz")
	if err != nil {
		t.Fatalf("GET over TLS: %v", err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("GET over TLS = %d, want 200", res.StatusCode)
	}
	if res, err := http.Get("http://" + addr + "/healthz"); err == nil {
		_ = res.Body.Close()
		if res.StatusCode == http.StatusOK {
			t.Error("plain HTTP is answered on a TLS port")
		}
	}
}

// A renewed certificate is used without a restart; one that does not fit its key is not.
func TestCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	cert, keyFile, first := certificate(t, dir)
	clock := newClock()
	f := serve(t, nil, func(c *openbrain.Config) { c.TLSCert, c.TLSKey = cert, keyFile }, openbrain.WithClock(clock.Now))
	addr, _ := listen(t, f)
	trusted := func(pool *x509.CertPool) error {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
		defer client.CloseIdleConnections()
		res, err := client.Get("https://" + addr + "/healthz")
		if err == nil {
			_ = res.Body.Close()
		}
		return err
	}
	if err := trusted(first); err != nil {
		t.Fatalf("the first certificate: %v", err)
	}
	old, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	_, _, second := certificate(t, dir)
	renewed, err := os.ReadFile(keyFile)
	if err == nil {
		err = os.WriteFile(keyFile, old, 0o600) // the key has not been replaced yet
	}
	if err != nil {
		t.Fatal(err)
	}
	clock.add(2 * time.Second)
	if err := trusted(first); err != nil {
		t.Errorf("in the middle of a renewal: %v", err)
	}
	if err := os.WriteFile(keyFile, renewed, 0o600); err != nil {
		t.Fatal(err)
	}
	clock.add(2 * time.Second)
	if err := trusted(second); err != nil {
		t.Errorf("the second certificate: %v\n%s", err, f.log)
	}
	if err := trusted(first); err == nil {
		t.Error("the first certificate is still used")
	}
	if _, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: second, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
}

// A server that listens beyond loopback without TLS says so.
func TestPlainHTTPIsWarnedAbout(t *testing.T) {
	f := serve(t, nil, func(c *openbrain.Config) { twoKeys(c); c.AllowPlainHTTP = true })
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "0.0.0.0:0")
	if err != nil {
		t.Skipf("not run: cannot listen: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.server.Serve(ctx, ln); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if !strings.Contains(f.log.String(), "travel in clear") {
		t.Errorf("the log does not warn:\n%s", f.log)
	}
}

func TestServeRefusesOpenAddresses(t *testing.T) {
	f := serve(t, nil, nil)
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "0.0.0.0:0")
	if err != nil {
		t.Skipf("not run: cannot listen: %v", err)
	}
	if err := f.server.Serve(t.Context(), ln); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("Serve on every interface without a key = %v, want ErrInvalid", err)
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is still open: %v", err)
	}
}

func certificate(t *testing.T, dir string) (cert, keyFile string, pool *x509.CertPool) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	kder, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "EC PRIVATE KEY", Bytes: kder}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return cert, keyFile, pool
}

func TestConcurrentUse(t *testing.T) {
	store := memory.New()
	servers := []*fixture{serve(t, store, nil), serve(t, store, nil)}
	const writers, each = 6, 30
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			f, source := servers[w%2], fmt.Sprintf("s%d", w%3)
			for i := range each {
				// Two writers send the same thoughts: each is stored once.
				body := fmt.Sprintf(`{"content":"word%d of %s","source":%q,"metadata":{"id":"k%d"}}`, i, source, source, i)
				r := f.ask(t, "", "POST", "/v1/thoughts", body)
				if r.status != 200 && r.status != 201 {
					t.Errorf("POST = %d: %s", r.status, r.body)
				}
				f.ask(t, "", "POST", "/v1/search", fmt.Sprintf(`{"query":"word%d"}`, i))
				f.ask(t, "", "GET", "/v1/thoughts?limit=5&offset=3&source="+source, "")
				f.ask(t, "", "GET", "/v1/stats", "")
				if i%10 == 9 {
					made := f.post(t, "", source, "passing", `{}`)
					f.ask(t, "", "PATCH", "/v1/thoughts/"+made.ID, `{"content":"passed"}`)
					f.want(t, 200, "", "DELETE", "/v1/thoughts/"+made.ID, "", nil)
				}
			}
		})
	}
	wg.Wait()
	for i, f := range servers {
		var l list
		f.want(t, 200, "", "GET", "/v1/thoughts?limit=1000", "", &l)
		if want := 3 * each; l.Count != want {
			t.Errorf("server %d lists %d thoughts, want %d", i, l.Count, want)
		}
		for j := 1; j < len(l.Thoughts); j++ {
			if l.Thoughts[j].CreatedAt > l.Thoughts[j-1].CreatedAt {
				t.Errorf("server %d: thought %d is newer than the one before", i, j)
			}
		}
	}
}

// What one server stored is found through another that searched before.
func TestServersShareAStore(t *testing.T) {
	store := memory.New()
	var mu sync.Mutex
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := openbrain.WithClock(func() time.Time { mu.Lock(); defer mu.Unlock(); return now })
	a, b := serve(t, store, nil, clock), serve(t, store, nil, clock)
	a.post(t, "", "s", "first otter", `{}`)
	if l := b.search(t, "", map[string]any{"query": "otter"}); l.Count != 1 {
		t.Fatalf("b finds %d, want 1", l.Count)
	}
	made := a.post(t, "", "s", "second otter", `{}`)
	a.post(t, "", "new", "third otter", `{}`)
	b.want(t, 200, "", "GET", "/v1/thoughts/"+made.ID, "", nil)
	var l list
	b.want(t, 200, "", "GET", "/v1/thoughts/recent?source=new", "", &l)
	if l.Count != 1 {
		t.Errorf("b lists %d of the new source at once, want 1", l.Count)
	}
	mu.Lock()
	now = now.Add(2 * time.Second)
	mu.Unlock()
	if l := b.search(t, "", map[string]any{"query": "otter"}); l.Count != 3 {
		t.Errorf("b finds %q, want all three otters", l.contents())
	}
}
