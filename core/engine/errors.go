package engine

import (
	"fmt"

	"github.com/contextengine/contextengine/core"
)

// invalid returns an ErrInvalid that names the operation, the field and the remedy.
func invalid(op, field, remedy string) error {
	return fmt.Errorf("core: %s: %s: %s: %w", op, field, remedy, core.ErrInvalid)
}
