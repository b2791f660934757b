package engine

import (
	"context"
)

// Forgetter erases what was stored, at somebody's explicit wish.
type Forgetter interface {
	Forget(ctx context.Context, req ForgetRequest) (Receipt, error)
}
