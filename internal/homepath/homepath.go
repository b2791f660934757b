// Package homepath reads paths as people mean them, of a configuration, a command line and the environment: no shell has looked at them, or not at all of them.
// A folder that is really called "~" is "./~". Flags that are paths are made with package pathflag.
package homepath

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// Expand returns a path with "~", "$HOME" or "${HOME}" at its beginning replaced by the user's home. A path of another user's home ("~ann/x") is core.ErrInvalid: it
// would be a folder of that name below the working directory, which nobody means.
func Expand(path string) (string, error) {
	rest, ok := path, false
	for _, home := range []string{"~", "${HOME}", "$HOME"} {
		if rest, ok = strings.CutPrefix(path, home); ok {
			break
		}
	}
	switch {
	case !ok:
		return path, nil
	case rest != "" && !os.IsPathSeparator(rest[0]):
		if path[0] == '~' {
			return "", fmt.Errorf("path %q: only \"~\" itself stands for a home: write out another user's: %w", path, core.ErrInvalid)
		}
		return path, nil // $HOMEPAGE
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("path %q: %w: %w", path, err, core.ErrInvalid)
	}
	return filepath.Join(home, rest), nil
}
