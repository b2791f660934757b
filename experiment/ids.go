package experiment

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/contextengine/contextengine/core"
)

// IDs returns a source of entry ids that gives the same ones for the same session in every run, as long as an engine's own.
// With them a replay into an empty store is repeatable to the byte: ids stand in prompts. The function is safe for concurrent use.
func IDs(session core.SessionID) func() string {
	var n atomic.Int64
	return func() string {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", session.Agent, session.Session, n.Add(1)))
		return "e" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:26])
	}
}
