// Command chat talks with a model behind any endpoint that speaks OpenAI's API, and streams its answers. However long the talk gets, what the model sees of it stays
// within the budget:
//
//	OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_MODEL=my-model go run ./examples/chat
//
// OPENAI_API_KEY is sent if it is set. Every line you type is a message; an empty line, or the end of the input, ends the talk.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

func main() {
	if err := run(context.Background(), os.Stdin, os.Stdout, os.Getenv); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer, getenv func(string) string) error {
	address, model := getenv("OPENAI_BASE_URL"), getenv("OPENAI_MODEL")
	if address == "" || model == "" {
		return errors.New("set OPENAI_BASE_URL to an endpoint, such as http://127.0.0.1:11434/v1, and OPENAI_MODEL to a model that it has")
	}
	reg := builtin.New()
	// Without the store named here, the talk is kept in a file, and goes on where it ended.
	cfg, err := reg.Load(registry.Values("chat", map[string]any{"store": "memory"}))
	if err != nil {
		return err
	}
	instance, err := reg.Build(ctx, cfg, registry.BuildOptions{})
	if err != nil {
		return err
	}
	defer instance.Close(ctx)
	session := core.SessionID{Agent: "main", Session: "chat"}
	engine, _, err := instance.Engine(ctx, session.Agent, session.Session)
	if err != nil {
		return err
	}
	settings := openai.DefaultConfig(getenv("OPENAI_API_KEY"))
	settings.BaseURL = address
	client := openai.NewClientWithConfig(settings)
	lines := bufio.NewScanner(in)
	for lines.Scan() && lines.Text() != "" {
		if err := say(ctx, engine, session, message.User, lines.Text()); err != nil {
			return err
		}
		var said strings.Builder
		if err := answer(ctx, engine, session, client, model, io.MultiWriter(out, &said)); err != nil {
			return err
		}
		fmt.Fprintln(out)
		if err := say(ctx, engine, session, message.Assistant, said.String()); err != nil {
			return err
		}
	}
	return lines.Err()
}

func say(ctx context.Context, engine core.ContextEngine, session core.SessionID, role message.Role, text string) error {
	_, err := engine.Ingest(ctx, core.IngestRequest{Session: session, Message: message.New(role, text)})
	return err
}

// answer sends the window to the model, and writes what comes back while it comes.
func answer(ctx context.Context, engine core.ContextEngine, session core.SessionID, client *openai.Client, model string, out io.Writer) error {
	window, err := engine.Assemble(ctx, core.AssembleRequest{Session: session, Budget: 8000})
	if err != nil {
		return err
	}
	messages, err := toChat(window)
	if err != nil {
		return err
	}
	stream, err := client.CreateChatCompletionStream(ctx, openai.ChatCompletionRequest{Model: model, Messages: messages})
	if err != nil {
		return err
	}
	return show(stream, out)
}

// toChat writes a window in the format of the endpoint. What the engine has to say beside it goes in front.
func toChat(window core.AssembleResult) ([]openai.ChatCompletionMessage, error) {
	var out []openai.ChatCompletionMessage
	if window.SystemPromptAddition != "" {
		out = append(out, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: window.SystemPromptAddition})
	}
	for _, m := range window.Messages {
		raw, err := message.Encode(m, message.FormatOpenAI)
		if err != nil {
			return nil, err
		}
		var one openai.ChatCompletionMessage
		if err := json.Unmarshal(raw, &one); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// show writes the pieces of an answer as they arrive.
func show(stream *openai.ChatCompletionStream, out io.Writer) error {
	defer stream.Close()
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, choice := range piece.Choices {
			if _, err := io.WriteString(out, choice.Delta.Content); err != nil {
				return err
			}
		}
	}
}
