package live_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment/live"
	"github.com/contextengine/contextengine/strategies/archive"
)

// Six sessions are dealt out to two arms, and one of each pair is said to have gone well. Three sessions of an arm tell nothing yet.
func ExampleRead() {
	ctx := context.Background()
	store := memory.New()
	defer store.Close()
	compactor, err := archive.New(archive.DefaultConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	counter := func(text string) int { return len(strings.Fields(text)) }
	eng, err := engine.New(engine.Parts{Store: store, Compactor: compactor, Counter: counter}, engine.DefaultConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	for n := range 6 {
		id, arm := core.SessionID{Agent: "main", Session: fmt.Sprint("s", n)}, []string{"old", "new"}[n%2]
		_, err := eng.Arm(ctx, id, func(string) string { return arm })
		if err == nil {
			_, err = eng.Ingest(ctx, core.IngestRequest{Session: id, Message: message.New(message.User, "hello")})
		}
		if err == nil {
			err = eng.Score(ctx, engine.Outcome{Session: id, Name: "resolved", Value: float64(n % 2)})
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	status, err := live.Read(ctx, live.Source{Stores: []core.Store{store}, Arms: []string{"old", "new"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, arm := range status.Arms {
		fmt.Println(arm.Name, arm.Sessions, "sessions")
	}
	for _, d := range status.Differences {
		if d.Metric == "resolved" {
			fmt.Println(d.Verdict)
		}
	}
	// Output:
	// old 3 sessions
	// new 3 sessions
	// too few to tell (3 sessions in the smaller arm, 5 are needed): 1 more
}
