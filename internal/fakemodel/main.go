// Command fakemodel runs another command with a model beside it, on the loopback, that costs nothing: what it says is how many messages it was sent.
//
//	go run ./internal/fakemodel go run ./examples/chat
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fakemodel: "+err.Error())
		os.Exit(1) //nolint:gocritic // nothing is left to be undone
	}
}

// run serves the model for as long as the command runs.
func run(ctx context.Context, command []string, in io.Reader, out io.Writer) error {
	if len(command) == 0 {
		return errors.New("name a command that is to talk with the model")
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: 10 * time.Second}
	defer func() { _ = server.Close() }()
	go func() { _ = server.Serve(listener) }() // ends with Close
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
	cmd.Env = append(os.Environ(), "OPENAI_BASE_URL=http://"+listener.Addr().String()+"/v1", "OPENAI_MODEL=fake")
	return cmd.Run()
}

// answer speaks as much of OpenAI's chat API as a streamed answer takes.
func answer(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || r.URL.Path != "/v1/chat/completions" {
		http.Error(w, "want a chat completion", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, piece := range []string{"I was sent ", fmt.Sprint(len(request.Messages)), " messages."} {
		fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", piece)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}
