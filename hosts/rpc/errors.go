package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/creachadair/jrpc2"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
)

// Code is the code of an error that crosses the wire. PROTOCOL.md says what each means.
type Code int

// The codes.
const (
	CodeParseError         Code = -32700
	CodeInvalidRequest     Code = -32600
	CodeMethodNotFound     Code = -32601
	CodeInvalidParams      Code = -32602
	CodeInternal           Code = -32603
	CodeDeadline           Code = -32096
	CodeCancelled          Code = -32097
	CodeNotInitialized     Code = -32001
	CodeUnsupportedVersion Code = -32002
	CodeFrameTooLarge      Code = -32003
	CodeOverloaded         Code = -32004
	CodeClosed             Code = -32005
	CodeNeedTranscript     Code = -32010
	CodeBudget             Code = -32011
	CodeConflict           Code = -32012
	CodeNotFound           Code = -32013
	CodeUnavailable        Code = -32014
	CodeNotAuthorized      Code = -32015
	CodeMissingCapability  Code = -32016
	CodeUnsupported        Code = -32017
	CodeConfiguration      Code = -32018
	CodeQuarantined        Code = -32019
)

// kinds are the names of the codes, and the errors of the framework that they stand for on the client's side.
var kinds = map[Code]struct {
	name string
	is   error
}{
	CodeParseError:         {"parse error", core.ErrInvalid},
	CodeInvalidRequest:     {"invalid request", core.ErrInvalid},
	CodeMethodNotFound:     {"method not found", errors.ErrUnsupported},
	CodeInvalidParams:      {"invalid params", core.ErrInvalid},
	CodeInternal:           {"internal", nil},
	CodeDeadline:           {"deadline", context.DeadlineExceeded},
	CodeCancelled:          {"cancelled", context.Canceled},
	CodeNotInitialized:     {"not initialized", nil},
	CodeUnsupportedVersion: {"unsupported version", errors.ErrUnsupported},
	CodeFrameTooLarge:      {"frame too large", core.ErrInvalid},
	CodeOverloaded:         {"overloaded", core.ErrUnavailable},
	CodeClosed:             {"closed", core.ErrClosed},
	CodeNeedTranscript:     {"need transcript", core.ErrNeedTranscript},
	CodeBudget:             {"budget", core.ErrBudget},
	CodeConflict:           {"conflict", core.ErrConflict},
	CodeNotFound:           {"not found", core.ErrNotFound},
	CodeUnavailable:        {"unavailable", core.ErrUnavailable},
	CodeNotAuthorized:      {"not authorized", core.ErrAuth},
	CodeMissingCapability:  {"missing capability", capability.ErrRequirement},
	CodeUnsupported:        {"unsupported", errors.ErrUnsupported},
	CodeConfiguration:      {"configuration", nil},
	CodeQuarantined:        {"quarantined", core.ErrQuarantined},
}

// String returns the name of the code, as in the field kind.
func (c Code) String() string {
	if k, ok := kinds[c]; ok {
		return k.name
	}
	return fmt.Sprintf("error %d", int(c))
}

// Error is an error that crossed the wire. errors.Is finds the core error or context error that the code stands for.
type Error struct {
	Code    Code
	Message string
	Data    ErrorData
}

// ErrorData are the details of an error; which fields are set follows from the code.
type ErrorData struct {
	Kind      string            `json:"kind"`
	Field     string            `json:"field,omitempty"`
	Supported []string          `json:"supported,omitempty"`
	Limit     int               `json:"limit,omitempty"`
	Known     *[]Checkpoint     `json:"known,omitempty"`
	Budget    int               `json:"budget,omitempty"`
	Needed    int               `json:"needed,omitempty"`
	System    int               `json:"system,omitempty"`
	Entry     string            `json:"entry,omitempty"`
	Operation string            `json:"operation,omitempty"`
	Missing   []capability.Name `json:"missing,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the core or context error that the code stands for, or nil.
func (e *Error) Unwrap() error { return kinds[e.Code].is }

// fail returns an error of the server. The text may come from outside: it is cut to one line of bounded length.
func fail(code Code, text string) *Error {
	const most = 1000
	text, _, _ = strings.Cut(text, "\n")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return &Error{Code: code, Message: text, Data: ErrorData{Kind: code.String()}}
}

// badField returns the error for parameters that can never succeed.
func badField(field, text string) *Error {
	e := fail(CodeInvalidParams, field+": "+text)
	e.Data.Field = field
	return e
}

// wireError returns what the library sends for e.
func (e *Error) wireError() *jrpc2.Error {
	data, err := encode(e.Data)
	if err != nil {
		data = nil
	}
	return &jrpc2.Error{Code: jrpc2.Code(e.Code), Message: e.Message, Data: data}
}

// fromWire is the opposite of wireError.
func fromWire(e *jrpc2.Error) *Error {
	out := &Error{Code: Code(e.Code), Message: e.Message}
	if json.Unmarshal(e.Data, &out.Data) != nil || out.Data.Kind == "" {
		out.Data.Kind = out.Code.String()
	}
	return out
}

// describe turns whatever stopped a call into an error of the protocol. ctx is the call's.
func describe(ctx context.Context, method string, err error) *Error {
	e, ok := errors.AsType[*Error](err)
	if named, is := misconfigured(err); is && !ok {
		e, ok = named, true
	}
	if !ok {
		e = fail(codeOf(ctx, err), err.Error())
		detail(e, err)
	}
	out := *e
	if e.Code == CodeConfiguration && e.Data.Kind != e.Code.String() {
		return &out // it has a name of its own, and begins with it
	}
	out.Message = "rpc: " + method + ": " + e.Message
	return &out
}

// misconfigured returns what is sent for an error that has a name of its own (a method ErrorName() string): a part lacks what only the
// operator can give. Text and kind begin with the name, so that it is found wherever it surfaces.
func misconfigured(err error) (*Error, bool) {
	var named interface {
		error
		ErrorName() string
	}
	if !errors.As(err, &named) {
		return nil, false
	}
	e := fail(CodeConfiguration, named.Error())
	e.Data.Kind = named.ErrorName()
	return e, true
}

// detail copies what the framework's typed errors know.
func detail(e *Error, err error) {
	if b, ok := errors.AsType[*core.BudgetError](err); ok {
		e.Data.Budget, e.Data.Needed, e.Data.System, e.Data.Entry = b.Budget, b.Needed, b.System, b.Entry
	}
	if r, ok := errors.AsType[*capability.RequirementError](err); ok {
		e.Data.Operation, e.Data.Missing = r.Operation, r.Missing
	}
}

// codeOf finds the code of an error of the engine. That a part ran into a limit of its own is no deadline of the call.
func codeOf(ctx context.Context, err error) Code {
	for _, c := range []Code{
		CodeNeedTranscript, CodeQuarantined, CodeBudget, CodeMissingCapability, CodeClosed, CodeNotFound, CodeConflict, CodeNotAuthorized,
		CodeUnsupported, CodeInvalidParams,
	} {
		if errors.Is(err, kinds[c].is) {
			return c
		}
	}
	switch cause := ctx.Err(); {
	case errors.Is(cause, context.DeadlineExceeded):
		return CodeDeadline
	case cause != nil:
		return CodeCancelled
	}
	for _, is := range []error{core.ErrUnavailable, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, is) {
			return CodeUnavailable
		}
	}
	return CodeInternal
}
