package openbrain_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/openbrain"
)

const (
	adminKey = "admin-secret-0123456789abcdef"
	mainKey  = "main-secret-0123456789abcdef0"
)

func twoKeys(c *openbrain.Config) {
	c.Keys = []openbrain.Key{key("admin", adminKey, "*"), key("limited", mainKey, "openclaw:main", "team-*")}
}

func TestKeysAreRequired(t *testing.T) {
	f := serve(t, nil, twoKeys)
	for name, header := range map[string]string{
		"none": "", "wrong": "Bearer wrong", "hash": "Bearer " + openbrain.HashKey(adminKey), "basic": "Basic " + adminKey,
		"bare": adminKey, "longer": "Bearer " + adminKey + "x", "empty": "Bearer ",
	} {
		for _, path := range []string{"/v1/stats", "/v1/thoughts/recent", "/v1/nothing"} {
			r := f.ask(t, "", http.MethodGet, path, "", "Authorization", header)
			if r.status != http.StatusUnauthorized || r.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s: GET %s = %d, WWW-Authenticate %q; want 401 and Bearer", name, path, r.status, r.header.Get("WWW-Authenticate"))
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		f.want(t, http.StatusOK, "", http.MethodGet, path, "", nil)
	}
	if r := f.ask(t, "", http.MethodGet, "/v1/stats", "", "Authorization", "bearer "+mainKey); r.status != 200 {
		t.Errorf("lower-case scheme = %d, want 200", r.status)
	}
}

func TestLimitedKeySeesNothingOfOthers(t *testing.T) {
	f := serve(t, nil, twoKeys)
	own := f.post(t, mainKey, "openclaw:main", "heron nests", `{"id":"h"}`)
	f.post(t, mainKey, "team-red", "heron feeds", `{}`)
	foreign := f.post(t, adminKey, "openclaw:main2", "heron flies", `{"id":"h"}`)
	foreignPath := "/v1/thoughts/" + foreign.ID
	for _, tc := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", foreignPath, "", 404},
		{"PATCH", foreignPath, `{"content":"x"}`, 404},
		{"DELETE", foreignPath, "", 404},
		{"GET", "/v1/thoughts/recent?source=openclaw:main2", "", 403},
		{"GET", "/v1/thoughts?source=openclaw:main2", "", 403},
		{"GET", "/v1/thoughts?source=nobody", "", 403},
		{"DELETE", "/v1/thoughts?source=openclaw:main2", "", 403},
		{"POST", "/v1/search", `{"query":"heron","source":"openclaw:main2"}`, 403},
		{"POST", "/v1/thoughts", `{"content":"x","source":"openclaw:main2"}`, 403},
		{"POST", "/v1/thoughts", `{"content":"x"}`, 403}, // the default source
	} {
		if r := f.ask(t, mainKey, tc.method, tc.path, tc.body); r.status != tc.status {
			t.Errorf("%s %s = %d, want %d", tc.method, tc.path, r.status, tc.status)
		}
	}
	unknown := f.ask(t, mainKey, "GET", "/v1/thoughts/00000000-0000-8000-8000-000000000000", "")
	if hidden := f.ask(t, mainKey, "GET", foreignPath, ""); string(hidden.body) != string(unknown.body) {
		t.Errorf("a foreign id is answered %s, an unknown one %s", hidden.body, unknown.body)
	}
	want := []string{"heron feeds", "heron nests"}
	for _, path := range []string{"/v1/thoughts/recent", "/v1/thoughts?limit=50"} {
		var l list
		f.want(t, 200, mainKey, "GET", path, "", &l)
		if diff := cmp.Diff(want, l.contents()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if l := f.search(t, mainKey, map[string]any{"query": "heron"}); l.Count != 2 {
		t.Errorf("search = %q, want the key's own two", l.contents())
	}
	var stats struct {
		Total    int
		BySource map[string]int `json:"by_source"`
	}
	r := f.want(t, 200, mainKey, "GET", "/v1/stats", "", &stats)
	if stats.Total != 2 || len(stats.BySource) != 2 || strings.Contains(string(r.body), "main2") {
		t.Errorf("stats of the limited key = %s", r.body)
	}
	// Somebody else's cursor opens nothing.
	var l list
	f.want(t, 200, adminKey, "GET", "/v1/thoughts?limit=1", "", &l)
	f.want(t, 200, mainKey, "GET", "/v1/thoughts?cursor="+l.Next, "", &l)
	for _, c := range l.contents() {
		if c == foreign.Content {
			t.Error("a cursor shows a foreign thought")
		}
	}
	var gone struct{ Deleted int }
	f.want(t, 200, mainKey, "DELETE", "/v1/thoughts?metadata_id=h", "", &gone)
	f.want(t, 404, adminKey, "GET", "/v1/thoughts/"+own.ID, "", nil)
	f.want(t, 200, adminKey, "GET", foreignPath, "", nil)
	if gone.Deleted != 1 {
		t.Errorf("deleted %d, want only the key's own 1", gone.Deleted)
	}
}

// No query of one of a thousand sources returns anything of another.
func TestIsolationOfAThousandSources(t *testing.T) {
	const sources = 1000
	f := serve(t, nil, func(c *openbrain.Config) {
		for i := range sources {
			c.Keys = append(c.Keys, key(fmt.Sprint(i), secretOf(i), fmt.Sprintf("agent:%d", i)))
		}
	})
	ids := make([]string, sources)
	for i := range sources {
		ids[i] = f.post(t, secretOf(i), fmt.Sprintf("agent:%d", i), fmt.Sprintf("shared words of owner%d", i), `{"id":"same"}`).ID
		f.post(t, secretOf(i), fmt.Sprintf("agent:%d", i), "shared again", `{}`)
	}
	for i := 0; i < sources; i += 37 {
		secret, source := secretOf(i), fmt.Sprintf("agent:%d", i)
		other := (i + 1) % sources
		var recent, all list
		f.want(t, 200, secret, "GET", "/v1/thoughts/recent?limit=1000", "", &recent)
		f.want(t, 200, secret, "GET", "/v1/thoughts?limit=1000", "", &all)
		found := f.search(t, secret, map[string]any{"query": fmt.Sprintf("shared words owner%d", other), "limit": 1000})
		for what, l := range map[string]list{"recent": recent, "list": all, "search": found} {
			if l.Count != 2 {
				t.Errorf("%s of %s: %d thoughts, want 2", what, source, l.Count)
			}
			for _, h := range l.Thoughts {
				if h.Source != source {
					t.Errorf("%s of %s shows a thought of %s", what, source, h.Source)
				}
			}
		}
		for _, method := range []string{"GET", "DELETE"} {
			f.want(t, 404, secret, method, "/v1/thoughts/"+ids[other], "", nil)
		}
		var gone struct{ Deleted int }
		f.want(t, 200, secret, "DELETE", "/v1/thoughts?metadata_id=same", "", &gone)
		if gone.Deleted != 1 {
			t.Errorf("%s deleted %d, want 1", source, gone.Deleted)
		}
		f.post(t, secret, source, fmt.Sprintf("shared words of owner%d", i), `{"id":"same"}`)
	}
}

func secretOf(i int) string { return fmt.Sprintf("secret-of-agent-number-%06d", i) }

func TestAccessLogHoldsNoContents(t *testing.T) {
	f := serve(t, nil, twoKeys)
	const words = "PRIVATEWORDS"
	made := f.post(t, adminKey, "src-"+words, words+" content", `{"note":"`+words+`","id":"`+words+`"}`)
	f.search(t, adminKey, map[string]any{"query": words})
	f.ask(t, adminKey, "GET", "/v1/thoughts"+query("source", "src-"+words, "metadata_id", words), "")
	f.ask(t, adminKey, "PATCH", "/v1/thoughts/"+made.ID, `{"content":"`+words+`2"}`)
	f.ask(t, adminKey, "GET", "/v1/"+words, "")
	f.ask(t, adminKey, words, "/v1/thoughts", "")
	f.ask(t, words, "GET", "/v1/stats", "")
	f.ask(t, adminKey, "DELETE", "/v1/thoughts"+query("source", "src-"+words), "")
	got := f.log.String()
	for _, forbidden := range []string{words, adminKey, mainKey, made.ID, openbrain.HashKey(adminKey)} {
		if strings.Contains(got, forbidden) {
			t.Errorf("the log shows %q", forbidden)
		}
	}
	for _, want := range []string{"method=POST route=/v1/thoughts status=201", "route=/v1/thoughts/{id} status=200", "status=401", "key=admin", "duration=", "bytes="} {
		if !strings.Contains(got, want) {
			t.Errorf("the log lacks %q:\n%s", want, got)
		}
	}
}

func TestWithoutKeysOnlyLoopbackNamesAreAnswered(t *testing.T) {
	f := serve(t, nil, nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/v1/stats", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "rebound.example.com"
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("foreign host name = %d, want 421", res.StatusCode)
	}
}

func TestRateLimit(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := serve(t, nil, func(c *openbrain.Config) {
		twoKeys(c)
		c.RatePerSecond, c.RateBurst = 0.1, 2
	}, openbrain.WithClock(func() time.Time { return now }))
	for range 2 {
		f.want(t, 200, adminKey, "GET", "/v1/stats", "", nil)
	}
	if r := f.ask(t, adminKey, "GET", "/v1/stats", ""); r.status != 429 || r.header.Get("Retry-After") != "10" {
		t.Errorf("third = %d, Retry-After %q; want 429 and 10", r.status, r.header.Get("Retry-After"))
	}
	f.want(t, 200, mainKey, "GET", "/v1/stats", "", nil) // has a bucket of its own
	now = now.Add(10 * time.Second)
	f.want(t, 200, adminKey, "GET", "/v1/stats", "", nil)
	f.want(t, 429, adminKey, "GET", "/v1/stats", "", nil)
}

func TestKeysFile(t *testing.T) {
	good := `{"keys":[{"name":"a","sha256":"` + openbrain.HashKey("x") + `","sources":["*"]}]}`
	for name, tc := range map[string]struct {
		text string
		mode os.FileMode
		ok   bool
	}{
		"good": {good, 0o600, true}, "read only": {good, 0o400, true}, "group": {good, 0o640, false}, "world": {good, 0o604, false},
		"no keys": {`{"keys":[]}`, 0o600, false}, "unknown field": {strings.Replace(good, "name", "nome", 1), 0o600, false},
		"plain key": {strings.Replace(good, openbrain.HashKey("x"), "plain-secret", 1), 0o600, false},
		"no source": {strings.Replace(good, `["*"]`, `[]`, 1), 0o600, false}, "more": {good + good, 0o600, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys.json")
			if err := os.WriteFile(path, []byte(tc.text), tc.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, tc.mode); err != nil {
				t.Fatal(err)
			}
			keys, err := openbrain.ReadKeys(path)
			if tc.ok != (err == nil) || (tc.ok && len(keys) != 1) {
				t.Fatalf("ReadKeys = %v, %v; ok should be %v", keys, err, tc.ok)
			}
			if err != nil && (!errors.Is(err, core.ErrInvalid) || strings.Contains(err.Error(), "plain-secret")) {
				t.Errorf("error %v; want ErrInvalid without contents", err)
			}
		})
	}
}

func TestCheckListen(t *testing.T) {
	withKeys := func(c *openbrain.Config) { twoKeys(c) }
	plain := func(c *openbrain.Config) { twoKeys(c); c.AllowPlainHTTP = true }
	tls := func(c *openbrain.Config) { twoKeys(c); c.TLSCert, c.TLSKey = "c", "k" }
	open := func(c *openbrain.Config) { c.AllowPlainHTTP = true }
	for _, tc := range []struct {
		addr   string
		change func(*openbrain.Config)
		ok     bool
	}{
		{"127.0.0.1:80", func(*openbrain.Config) {}, true}, {"[::1]:80", func(*openbrain.Config) {}, true},
		{"localhost:80", func(*openbrain.Config) {}, true}, {":80", open, false}, {"0.0.0.0:80", open, false},
		{"[::]:80", open, false}, {"192.0.2.1:80", open, false}, {"example.com:80", open, false},
		{"localhost.example.com:80", open, false}, {":80", withKeys, false}, {"0.0.0.0:80", withKeys, false},
		{":80", plain, true}, {":80", tls, true}, {"127.0.0.1", open, false}, {"127.0.0.1:80", withKeys, true},
	} {
		cfg := openbrain.DefaultConfig()
		tc.change(&cfg)
		if err := cfg.CheckListen(tc.addr); tc.ok != (err == nil) || (err != nil && !errors.Is(err, core.ErrInvalid)) {
			t.Errorf("CheckListen(%q) with %d keys = %v, ok should be %v", tc.addr, len(cfg.Keys), err, tc.ok)
		}
	}
}

func TestConfigValidate(t *testing.T) {
	if err := openbrain.DefaultConfig().Validate(); err != nil {
		t.Errorf("DefaultConfig: %v", err)
	}
	for field, change := range map[string]func(*openbrain.Config){
		"keys[0]": func(c *openbrain.Config) {
			c.Keys = []openbrain.Key{{Name: "x", SHA256: "short", Sources: []string{"*"}}}
		},
		"tlsCert": func(c *openbrain.Config) { c.TLSCert = "x" }, "maxBody": func(c *openbrain.Config) { c.MaxBody = 1 },
		"maxLimit": func(c *openbrain.Config) { c.MaxLimit = 0 }, "rateBurst": func(c *openbrain.Config) { c.RatePerSecond, c.RateBurst = 1, 0 },
		"ratePerSecond": func(c *openbrain.Config) { c.RatePerSecond = -1 }, "readTimeout": func(c *openbrain.Config) { c.ReadTimeout = 0 },
		"maxHeaderBytes": func(c *openbrain.Config) { c.MaxHeaderBytes = 0 }, "defaultSource": func(c *openbrain.Config) { c.DefaultSource = "" },
	} {
		cfg := openbrain.DefaultConfig()
		change(&cfg)
		if err := cfg.Validate(); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: Validate = %v, want ErrInvalid naming it", field, err)
		}
	}
}
