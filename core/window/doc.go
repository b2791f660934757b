// Package window decides what of a conversation is shown within a token budget. It is pure: it knows costs, not
// messages, and reads no clock.
//
// The policy is a stepped window. As long as the window costs less than the high mark it only grows, so that what was sent
// before stays a prefix of what is sent next. Above the high mark it steps down to the low mark: old tool results are
// masked first, then whole groups leave, oldest first. Start with Policy.Marks and Step; Clip shortens a single text.
package window
