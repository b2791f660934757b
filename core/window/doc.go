// Package window decides what of a conversation is shown within a token budget. It is pure: it knows costs, not
// messages, and reads no clock.
//
// The policy is a stepped window. As long as the window costs less than the high mark it only grows, so that what was sent
// before stays a prefix of what is sent next. Above the high mark it steps down to the low mark: old tool results are
// masked first, then whole groups leave, oldest first. Start with Policy.Marks and Step; Clip shortens a single text.
//
// What stands there is written here too: Stub is what is shown instead of content, MediaNote stands for an image, Quote makes a text unable to be anything but data,
// and a Choice says why something is shown, or not.
package window
