package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/contextengine/contextengine/core"
)

var _ core.Beside = (*Store)(nil)

// Beside implements core.Beside: a folder of this name in one that is named like the file with ".d" behind, readable by the owner alone. Capitals have
// "_" before them: some file systems take them for small letters.
// A store that can only be read has those that are there; another is errors.ErrUnsupported.
// Use is at most 64 letters and digits, else it is core.ErrInvalid.
func (s *Store) Beside(use string) (string, error) {
	if err := s.enter(context.Background()); err != nil {
		return "", fmt.Errorf("sqlite: beside %q: %w", use, err)
	}
	defer s.leave()
	ok := use != "" && len(use) <= 64
	var name []byte
	for _, c := range []byte(use) {
		capital := c >= 'A' && c <= 'Z'
		ok = ok && (c >= 'a' && c <= 'z' || capital || c >= '0' && c <= '9')
		if capital {
			name = append(name, '_')
		}
		name = append(name, c)
	}
	if !ok {
		return "", fmt.Errorf("sqlite: beside %q: the use must be 1 to 64 letters and digits: %w", use, core.ErrInvalid)
	}
	dir := filepath.Join(s.file+".d", string(name))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		if s.readOnly {
			err = errors.Join(err, errors.ErrUnsupported)
		}
		return "", fmt.Errorf("sqlite: beside %q: %w", use, err)
	}
	return dir, nil
}
