package core

import "context"

// Telemetry is told what an Engine does, so that metrics and traces can be made of it without changing the Engine. It is called from many goroutines at once and must not
// block; what it panics with is not caught. Nothing that was said in a conversation reaches it but for what an error text quotes, which is nothing.
type Telemetry interface {
	// Begin is called in front of an operation. What is done inside the operation is done with the context that it returns, which parts of the
	// Engine and the store are given too. The function that it returns is called once, when the operation is over, with its error; it must not be nil.
	Begin(ctx context.Context, op Operation) (context.Context, func(err error))
}

// Operation is a call of the host's, or a part's work within one.
type Operation struct {
	// Name is that of the method, such as "Assemble" (Ingest is an "IngestBatch" of one), or of the part that is asked: "retriever", "compactor" or "observer".
	Name string
	// Session is the one that the call is about; it is zero for a part's work and what is about a whole agent. It says who talks: a metric should not have it as a label.
	Session SessionID
}
