package report_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/internal/needs"
)

// browser is a headless Chromium that is spoken to over a pipe in its own protocol: no port, no other program.
type browser struct {
	in  io.Writer
	cmd *exec.Cmd

	mu      sync.Mutex
	next    int
	waiting map[int]chan reply
	heard   func(event)
}

type reply struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
	event
}

type event struct {
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Session string          `json:"sessionId"`
}

// findBrowser returns the path of a browser, from CONTEXTENGINE_BROWSER or from the usual names.
func findBrowser(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("CONTEXTENGINE_BROWSER"); path != "" {
		return path
	}
	return needs.Program(t, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
}

// patience is how long the browser may take for one command on a busy machine.
const patience = 2 * time.Minute

func startBrowser(t *testing.T, path string) *browser {
	t.Helper()
	home, err := os.MkdirTemp("", "report-browser-") //nolint:usetesting // a TempDir must be empty in the end
	if err != nil {
		t.Fatal(err)
	}
	// The browser may still write while it ends, so its folder is removed as well as can be.
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	fromUs, toBrowser, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromBrowser, toUs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{in: toBrowser, waiting: map[int]chan reply{}, heard: func(event) {}}
	b.cmd = exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb",
		"--user-data-dir="+home, "--remote-debugging-pipe", "about:blank")
	b.cmd.Env = append(os.Environ(), "HOME="+home)
	b.cmd.ExtraFiles = []*os.File{fromUs, toUs} // descriptors 3 and 4
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = fromUs.Close(), toUs.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.read(fromBrowser)
	}()
	t.Cleanup(func() {
		_ = b.call("", "Browser.close", nil, nil)
		_ = toBrowser.Close()
		dead := time.AfterFunc(20*time.Second, func() { _ = b.cmd.Process.Kill() })
		_ = b.cmd.Wait()
		dead.Stop()
		_ = fromBrowser.Close()
		<-done
	})
	return b
}

// read hands on what the browser says until it ends. Messages end with a zero byte.
func (b *browser) read(r io.Reader) {
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := in.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			for id, c := range b.waiting {
				close(c)
				delete(b.waiting, id)
			}
			b.mu.Unlock()
			return
		}
		var m reply
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		c, ok := b.waiting[m.ID]
		delete(b.waiting, m.ID)
		if m.ID == 0 {
			b.heard(m.event)
		}
		b.mu.Unlock()
		if ok {
			c <- m
		}
	}
}

// call sends a command and decodes its result into out, unless that is nil.
func (b *browser) call(session, method string, params, out any) error {
	if params == nil {
		params = struct{}{}
	}
	c := make(chan reply, 1)
	b.mu.Lock()
	b.next++
	id := b.next
	b.waiting[id] = c
	msg := map[string]any{"id": id, "method": method, "params": params}
	if session != "" {
		msg["sessionId"] = session
	}
	data, err := json.Marshal(msg)
	if err == nil {
		_, err = b.in.Write(append(data, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case r, ok := <-c:
		switch {
		case !ok:
			return errors.New(method + ": the browser ended")
		case r.Error != nil:
			return fmt.Errorf("%s: %s", method, r.Error.Message)
		case out == nil:
			return nil
		}
		return json.Unmarshal(r.Result, out)
	case <-time.After(patience):
		return errors.New(method + ": no answer")
	}
}

// tab is a page of a browser; it notes what a page must not do.
type tab struct {
	t       *testing.T
	b       *browser
	session string

	mu       sync.Mutex
	requests []string
	problems []string
}

func openTab(t *testing.T, b *browser) *tab {
	t.Helper()
	tb := &tab{t: t, b: b}
	var target struct {
		ID string `json:"targetId"`
	}
	tb.must(b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target))
	var attached struct {
		Session string `json:"sessionId"`
	}
	tb.must(b.call("", "Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &attached))
	tb.session = attached.Session
	b.mu.Lock()
	b.heard = tb.hear
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		tb.do(domain+".enable", nil, nil)
	}
	return tb
}

func (tb *tab) hear(e event) {
	if e.Session != tb.session {
		return
	}
	tb.mu.Lock()
	defer tb.mu.Unlock()
	switch e.Method {
	case "Network.requestWillBeSent":
		var p struct {
			Request struct{ URL string } `json:"request"`
		}
		_ = json.Unmarshal(e.Params, &p)
		tb.requests = append(tb.requests, p.Request.URL)
	case "Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled":
		tb.problems = append(tb.problems, e.Method+" "+string(e.Params))
	}
}

func (tb *tab) must(err error) {
	tb.t.Helper()
	if err != nil {
		tb.t.Fatal(err)
	}
}

func (tb *tab) do(method string, params, out any) {
	tb.t.Helper()
	tb.must(tb.b.call(tb.session, method, params, out))
}

// eval runs an expression in the page and decodes what it gives.
func (tb *tab) eval(expression string, out any) {
	tb.t.Helper()
	var r struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text string `json:"text"`
		} `json:"exceptionDetails"`
	}
	tb.do("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if r.Exception != nil {
		tb.t.Fatalf("%s: %s", expression, r.Exception.Text)
	}
	if out != nil && len(r.Result.Value) > 0 {
		tb.must(json.Unmarshal(r.Result.Value, out))
	}
}

// press sends a key as a keyboard does.
func (tb *tab) press(key, text string) {
	tb.t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}
	p := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
	if text != "" {
		p["text"] = text
	}
	tb.do("Input.dispatchKeyEvent", p, nil)
	p["type"] = "keyUp"
	delete(p, "text")
	tb.do("Input.dispatchKeyEvent", p, nil)
}
