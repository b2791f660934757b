//go:build race

package tiktoken

const raceEnabled = true
