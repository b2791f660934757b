// Package rpc lets programs in any language drive context engines: JSON-RPC 2.0 in both directions, one frame a line, over standard
// input and output or a unix socket. PROTOCOL.md in this folder is the contract, Schema its JSON Schema.
//
// A server is made of what gives each session its engine and of the Host that those engines were made with. The Host stands
// for all clients: it hands a compaction or a completion to the client whose call needs it.
//
//	host := rpc.NewHost()
//	// make the engines with this host
//	server, err := rpc.New(engines, host)
//	defer server.Close(ctx)
//	err = server.ServeStdio(ctx, os.Stdin, os.Stdout)
//
// Client is the other side, for tests and for hosts written in Go; Conversation spares it sending a long transcript again and again.
//
// Calls of one session begin in the order of their arrival, sessions run in parallel. Everything is bounded: frames, calls and
// bytes under way, remembered transcripts. Message contents, keys and names of sessions are never logged.
package rpc
