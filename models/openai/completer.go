package openai

import (
	"context"
	"fmt"
	"strings"

	library "github.com/sashabaranov/go-openai"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/endpoint"
)

// maxCompletionBytes bounds the answer to a completion.
const maxCompletionBytes = 16 << 20

// Completer asks one model for text. It is safe for concurrent use and holds nothing that needs closing.
type Completer struct {
	end *service
}

var _ core.Completer = (*Completer)(nil)

// NewCompleter returns a Completer, or a core.ErrInvalid for a Config that Validate refuses. It does not call the
// endpoint.
func NewCompleter(cfg Config, opts ...Option) (*Completer, error) {
	end, err := newService(cfg, opts)
	if err != nil {
		return nil, err
	}
	return &Completer{end: end}, nil
}

// Complete sends System, if any, and Prompt as one chat and returns the first answer. An answer without text, a refusal
// for instance, is no error: see StopReason. Purpose is not sent.
func (c *Completer) Complete(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
	chat, err := c.chat(req)
	if err != nil {
		return core.Completion{}, err
	}
	var answer core.Completion
	err = c.end.do(ctx, "complete", chat.Model, maxCompletionBytes, func(ctx context.Context, client *library.Client) error {
		resp, err := client.CreateChatCompletion(ctx, chat)
		if err != nil {
			return err
		}
		if len(resp.Choices) == 0 {
			return endpoint.Nonsense("holds no choice")
		}
		choice := resp.Choices[0]
		answer = core.Completion{
			Text:         choice.Message.Content,
			Model:        resp.Model,
			InputTokens:  max(0, resp.Usage.PromptTokens),
			OutputTokens: max(0, resp.Usage.CompletionTokens),
			StopReason:   string(choice.FinishReason),
		}
		if answer.Model == "" {
			answer.Model = chat.Model
		}
		if answer.Text == "" && choice.Message.Refusal != "" {
			answer.StopReason = "refusal"
		}
		return nil
	})
	if err != nil {
		return core.Completion{}, err
	}
	return answer, nil
}

// chat builds the library's request.
func (c *Completer) chat(req core.CompletionRequest) (library.ChatCompletionRequest, error) {
	chat := library.ChatCompletionRequest{Model: req.Model}
	if chat.Model == "" {
		chat.Model = c.end.cfg.Model
	}
	if req.Prompt == "" {
		return chat, fmt.Errorf("openai: complete %q: Prompt: must not be empty: %w", chat.Model, core.ErrInvalid)
	}
	if req.MaxTokens < 0 {
		return chat, fmt.Errorf("openai: complete %q: MaxTokens: must be 0 (no bound) or more: %w", chat.Model, core.ErrInvalid)
	}
	if req.System != "" {
		chat.Messages = append(chat.Messages, library.ChatCompletionMessage{Role: library.ChatMessageRoleSystem, Content: req.System})
	}
	chat.Messages = append(chat.Messages, library.ChatCompletionMessage{Role: library.ChatMessageRoleUser, Content: req.Prompt})
	field := c.end.cfg.MaxTokensField
	if field == FieldMaxCompletionTokens || (field == FieldAuto && reasons(chat.Model)) {
		chat.MaxCompletionTokens = req.MaxTokens
	} else {
		chat.MaxTokens = req.MaxTokens //nolint:staticcheck // deprecated by OpenAI, yet the one field other endpoints know
	}
	return chat, nil
}

// reasons tells whether a model's name is one of OpenAI's reasoning families, which refuse max_tokens.
func reasons(model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, family := range [...]string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(name, family) {
			return true
		}
	}
	return false
}
