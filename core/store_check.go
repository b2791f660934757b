package core

import "fmt"

// The arguments of a Store are checked the same way by every store, with these. op begins the error, as in "memory: scan".

// Check returns ErrInvalid for a scope that names no agent.
func (s Scope) Check(op string) error {
	if s.Agent == "" {
		return fmt.Errorf("%s: scope.agent is empty: name the agent that owns the entries: %w", op, ErrInvalid)
	}
	return nil
}

// Check returns ErrInvalid for a query without an agent or with a limit out of range. The cursor is the store's own to check.
func (q ScanQuery) Check(op string) error {
	if err := q.Scope.Check(op); err != nil {
		return err
	}
	return CheckLimit(op, q.Limit)
}

// Check returns ErrInvalid for a query without an agent or with a limit out of range. The mark is the store's own to check.
func (q ChangeQuery) Check(op string) error {
	return ScanQuery{Scope: Scope{Agent: q.Agent}, Limit: q.Limit}.Check(op)
}

// CheckLimit returns ErrInvalid for the limit of a page that is not 1 to MaxPage.
func CheckLimit(op string, limit int) error {
	if limit < 1 || limit > MaxPage {
		return fmt.Errorf("%s: limit %d is not within 1 to %d: %w", op, limit, MaxPage, ErrInvalid)
	}
	return nil
}

// Check returns ErrInvalid, naming the field, for an entry that lacks what every stored one has.
func (e *Entry) Check(op string) error {
	field := ""
	switch {
	case e.ID == "":
		field = "id"
	case e.Key == "":
		field = "key"
	case e.Agent == "":
		field = "agent"
	case e.Session == "":
		field = "session"
	default:
		return nil
	}
	return fmt.Errorf("%s %q: %s is empty: entries are complete before they are stored: %w", op, e.ID, field, ErrInvalid)
}
