package needs_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/internal/needs"
)

// ends records how a test ended.
type ends struct{ skipped, failed string }

func (e *ends) Helper()                        {}
func (e *ends) Skipf(format string, a ...any)  { e.skipped = fmt.Sprintf(format, a...) }
func (e *ends) Fatalf(format string, a ...any) { e.failed = fmt.Sprintf(format, a...) }

func TestProgram(t *testing.T) {
	t.Setenv(needs.Everything, "")
	var e ends
	if path := needs.Program(&e, "no-such-program", "go"); !strings.HasPrefix(filepath.Base(path), "go") || e != (ends{}) {
		t.Errorf("Program = %q, %+v, want the path of go", path, e)
	}
	if path := needs.Program(&e, "no-such-program", "nor-this"); path != "" || e != (ends{skipped: "not run: there is no no-such-program, no nor-this"}) {
		t.Errorf("without any: %q, %+v", path, e)
	}
	e = ends{}
	t.Setenv(needs.Everything, "1")
	if needs.Program(&e, "no-such-program"); e.skipped != "" || !strings.Contains(e.failed, "no-such-program") {
		t.Errorf("where everything is promised: %+v, want a failure", e)
	}
}
