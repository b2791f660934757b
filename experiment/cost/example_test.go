package cost_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/cost"
	"github.com/contextengine/contextengine/experiment/dataset"
	"github.com/contextengine/contextengine/strategies/archive"
)

// exampleArm is one configuration: the newest messages, nothing recalled.
func exampleArm(name string) experiment.Arm {
	return experiment.Arm{Name: name, Open: func(_ context.Context, host core.Host, _ core.SessionID) (experiment.Subject, error) {
		compactor, err := archive.New(archive.DefaultConfig())
		if err != nil {
			return experiment.Subject{}, err
		}
		store := memory.New()
		e, err := engine.New(engine.Parts{Store: store, Compactor: compactor, Counter: exampleWords, Host: host}, engine.DefaultConfig())
		return experiment.Subject{Engine: e, Store: store, Close: func(context.Context) error { return store.Close() }}, err
	}}
}

// exampleWords stands for a tokenizer, such as that of models/tiktoken.
func exampleWords(text string) int { return len(strings.Fields(text)) }

// exampleChat is a conversation of so many turns.
func exampleChat(name string, turns int) dataset.Session {
	s := dataset.Session{File: name, Conversation: message.Conversation{Format: message.FormatOpenAI}}
	for i := range turns {
		s.Messages = append(s.Messages, message.New(message.User, fmt.Sprintf("What about loaf %d, which came out flat?", i)), message.New(message.Assistant, "Let it rise longer."))
	}
	return s
}

// A window that steps, and stands still between steps, is cheaper than one that slides with every message.
func ExampleMeasure() {
	row, err := cost.Measure(context.Background(), []dataset.Session{exampleChat("loaves", 50)}, exampleArm("recent"), 200, exampleWords)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("cheaper than sliding:", row.CostSliding < 1)
	// Output: cheaper than sliding: true
}
