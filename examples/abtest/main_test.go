package main

import (
	"strings"
	"testing"
)

func TestVerdict(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "found: with recall higher by 1") {
		t.Errorf("got %q, want recall to find what the newest messages no longer hold", got)
	}
}
