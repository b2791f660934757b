//go:build !race

package openbrain_test

const raceEnabled = false
