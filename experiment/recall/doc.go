// Package recall measures how much of what answers a question a configuration brings back.
//
// The conversations of a data set are imported into the configured store through the engine, with the times at which things were said. Then the
// engine's retriever is asked every question, and what it proposes is compared with the messages that hold the answer:
//
//	set, err := questions.Open("locomo-dev.json")
//	result, err := recall.Run(ctx, recall.Plan{Dataset: set, Arms: []recall.Arm{a, b}})
//	fmt.Println(result.Arms[0].Groups[0].Measures[1].Recall.Mean) // R@10 of the headline group
//
// # Protocol
//
// Evidence recall of a question is the share of the messages in its evidence that are found: "R@10" among the first 10 candidates, "2k" among those that are
// packed into 2,000 tokens. Packing is greedy in rank order and skips what does not fit. A token is ceil(1.3 x words) of "speaker: text", the speaker being
// the name or else the role. What is packed is the whole message or the passage that the retriever quotes, as the data set says; a message
// counts when one of its passages is in. Figures of a group are means over its questions, with 95 % intervals over conversations (package stats).
//
// Answer-token recall is the share of the distinct words of the gold answer that stand in what is packed. Latency is the time of one call of the
// retriever for as many candidates as the engine asks for, the index being built; the first call of each conversation, which builds it, is reported as cold. Memory is what the Go heap grew by.
//
// Recency is not asked for: the retriever sees the question alone, no window, and all sessions of the conversation.
package recall
