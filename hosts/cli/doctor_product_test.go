package cli_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/internal/openbraintest"
	"github.com/contextengine/contextengine/registry/builtin"
)

// TestDoctorOfTheProductsConfiguration: the product document's openclaw.json as it stands, over a server that has the document's six calls alone.
func TestDoctorOfTheProductsConfiguration(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	srv := openbraintest.New(t, openbraintest.Strict(20, false))
	const product = `{
		"agents": { "defaults": { "contextEngine": "openbrain" } },
		"plugins": { "entries": { "openclaw-openbrain-context": { "enabled": true, "config": {
			"baseUrl": "BASE_URL", "apiKey": "API_KEY", "recentMessages": 20, "semanticSearchLimit": 10, "source": "openclaw"
		} } } }
	}`
	config := write(t, "openclaw.json", strings.NewReplacer("BASE_URL", srv.URL(), "API_KEY", srv.Key()).Replace(product))
	got := run(t, builtin.New(), "", "doctor", "--config", config)
	got.want(t, cli.ExitOK, "engine openbrain, store outbox", "ok    store", "ok    remote store")
	if strings.Contains(got.out+got.errors, srv.Key()) {
		t.Error("the key is shown")
	}
	srv.Stop()
	run(t, builtin.New(), "", "doctor", "--config", config).want(t, cli.ExitFailure, "ok    store", "fail  remote store")
}
