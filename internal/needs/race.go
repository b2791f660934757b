//go:build race

package needs

// Race says whether this is a build for the race detector.
const Race = true
