package sqlite_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/needs"
)

// TestSeveralProcesses has two processes write and four read one file for 5 s, or as long as SOAK_SECONDS says.
func TestSeveralProcesses(t *testing.T) {
	needs.NoRace(t) // the detector looks into each process alone
	t.Parallel()
	cfg := config(t)
	lasts := time.Duration(number("SOAK_SECONDS", 5)) * time.Second
	var said [2]bytes.Buffer
	var followed bytes.Buffer
	var running []*exec.Cmd
	for i := range 6 {
		role := "reader"
		switch {
		case i < len(said):
			role = "writer"
		case i == len(said):
			role = "follower"
		}
		cmd := child(t, role, cfg.Path, i, lasts)
		var out bytes.Buffer
		cmd.Stdout = &out
		switch role {
		case "writer":
			cmd.Stdout = &said[i]
		case "follower":
			cmd.Stdout = &followed
		default:
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("reader %d: %s", i, &out)
				}
			})
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for i, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
	}
	s := open(t, cfg)
	longest := 0
	for i := range said {
		var n, busy int
		if _, err := fmt.Sscanf(said[i].String(), "wrote %d busy %d", &n, &busy); err != nil {
			t.Fatalf("writer %d says %q: %v", i, &said[i], err)
		}
		t.Logf("writer %d: %d entries, %d times busy", i, n, busy)
		longest = max(longest, n)
		own := core.SessionID{Agent: "ann", Session: fmt.Sprint("writer", i)}
		if diff := differ(entries(own, 0, n), all(t, s, own.Scope())); diff != "" {
			t.Errorf("entries of writer %d (-want +got):\n%s", i, diff)
		}
	}
	got := all(t, s, shared.Scope())
	if len(got) != longest/2 {
		t.Errorf("the shared session has %d entries, want %d", len(got), longest/2)
	}
	for i, e := range got {
		if e.Seq != int64(i)*2 {
			t.Fatalf("entry %d of the shared session has position %d, want %d", i, e.Seq, i*2)
		}
	}
	var told int
	if _, err := fmt.Sscanf(followed.String(), "followed %d", &told); err != nil {
		t.Fatalf("the follower says %q: %v", &followed, err)
	}
	if n := len(all(t, s, core.Scope{Agent: "ann"})); told != n {
		t.Errorf("who followed the changes was told of %d entries, want %d", told, n)
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}
