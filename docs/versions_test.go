package docs_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The table of host versions is what the end-to-end run is played on, newest first, and the plugin's own text speaks of the newest.
func TestHostVersions(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	played := strings.Fields(read("../hosts/openclaw/e2e/versions"))
	_, table, _ := strings.Cut(read("hosts.md"), "\n### Versions of the host\n")
	var said []string
	for _, m := range regexp.MustCompile(`(?m)^\| (\d{4}\.\d+\.\d+) \|`).FindAllStringSubmatch(table, -1) {
		said = append(said, m[1])
	}
	if len(played) != 3 || !slices.Equal(said, played) {
		t.Errorf("docs/hosts.md has the versions %q, the run is played on %q", said, played)
	}
	if readme := read("../hosts/openclaw/plugin/README.md"); !strings.Contains(readme, "("+played[0]+")") {
		t.Errorf("the plugin's README says nothing of the host %s", played[0])
	}
}
