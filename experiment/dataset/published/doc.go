// Package published gets the public sets of conversations that figures of this project are measured on from where they are published, or
// from a mirror, and sees that they are those.
//
// The sets are data: sets.json beside this file says what each is, who published it under which licence, where its files are, pinned to a
// revision, and the checksums of what arrives and of what is written. A set is the half that was developed on. Where the publisher's file
// holds more, the set is selected from it, the same bytes every time.
//
// Start with Sets and Fetch:
//
//	sets, err := published.Sets()
//	...
//	written, err := published.Fetch(ctx, "data", sets[0], published.Options{})
//
// Nothing here is safe to run twice at once on one set except that files appear whole or not at all.
package published
