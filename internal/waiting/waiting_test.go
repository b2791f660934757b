package waiting

import (
	"bytes"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		done := start(&out, "opening")
		time.Sleep(2100 * time.Millisecond)
		done()
		done()
		if got, want := out.String(), "\ropening, 1 s\ropening, 2 s\r            \r"; got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	})
}

// What takes no second leaves no trace.
func TestSayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		done := start(&out, "opening")
		time.Sleep(900 * time.Millisecond)
		done()
		if out.Len() > 0 {
			t.Errorf("it says %q", out.String())
		}
	})
}

// Neither a buffer nor a file is a terminal.
func TestTerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if Terminal(&bytes.Buffer{}) || Terminal(f) {
		t.Error("it is taken for a terminal")
	}
	Say(f, "opening")()
	if info, err := f.Stat(); err != nil || info.Size() > 0 {
		t.Errorf("something was written: %v, %v", info, err)
	}
}
