package rpc

import (
	_ "embed"
	"slices"
)

// Version is the protocol version that this package speaks.
const Version = "1"

// Versions lists the protocol versions that this package speaks, best first.
func Versions() []string { return []string{Version} }

// The methods of the server.
const (
	MethodInitialize    = "initialize"
	MethodShutdown      = "shutdown"
	MethodPing          = "ping"
	MethodHealth        = "health"
	MethodInfo          = "info"
	MethodFactory       = "factory"
	MethodBootstrap     = "bootstrap"
	MethodIngest        = "ingest"
	MethodIngestBatch   = "ingestBatch"
	MethodCommitTurn    = "commitTurn"
	MethodAfterTurn     = "afterTurn"
	MethodAssemble      = "assemble"
	MethodCompact       = "compact"
	MethodMaintain      = "maintain"
	MethodPrepareSpawn  = "prepareSubagentSpawn"
	MethodRollbackSpawn = "rollbackSubagentSpawn"
	MethodSubagentEnded = "onSubagentEnded"
	MethodDispose       = "dispose"
	MethodSearch        = "search"
	MethodExpand        = "expand"
	MethodDescribe      = "describe"
	MethodScore         = "score"
	MethodRetry         = "retry"
)

// NotifyCancel is the notification that ends a request of the client.
const NotifyCancel = "rpc.cancel"

// The requests and notifications of the server to its client.
const (
	MethodHostCompact  = "host.compact"
	MethodHostComplete = "host.complete"
	NotifyHostCancel   = "host.cancel"
	NotifyLog          = "log"
)

// Methods returns the methods of the server in alphabetical order. "tools/list" and "tools/call" are reserved.
func Methods() []string {
	return slices.Sorted(slices.Values([]string{
		MethodInitialize, MethodShutdown, MethodPing, MethodHealth, MethodInfo, MethodFactory, MethodBootstrap, MethodIngest, MethodIngestBatch,
		MethodCommitTurn, MethodAfterTurn, MethodAssemble, MethodCompact, MethodMaintain, MethodPrepareSpawn,
		MethodRollbackSpawn, MethodSubagentEnded, MethodDispose, MethodSearch, MethodExpand, MethodDescribe, MethodScore, MethodRetry,
	}))
}

//go:embed protocol.schema.json
var schema string

// Schema returns the JSON Schema (draft 2020-12) of every frame: "#/$defs/clientFrame" is what a client sends, "#/$defs/serverFrame"
// what it gets.
func Schema() string { return schema }
