package rpc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/rpc"
)

// schema checks values against the part of JSON Schema that the protocol's uses. An unknown keyword is an error, so that nothing is
// silently unchecked.
type schema struct{ root map[string]any }

var theSchema = func() schema {
	var s schema
	if err := json.Unmarshal([]byte(rpc.Schema()), &s.root); err != nil {
		panic(err)
	}
	return s
}()

// check holds a frame against a definition.
func (s schema) check(definition string, frame []byte) error {
	dec := json.NewDecoder(bytes.NewReader(frame))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return err
	}
	return s.value(map[string]any{"$ref": "#/$defs/" + definition}, v, "frame")
}

func (s schema) value(rule map[string]any, v any, at string) error {
	for word, want := range rule {
		if err := s.word(rule, word, want, v, at); err != nil {
			return err
		}
	}
	return nil
}

func (s schema) word(rule map[string]any, word string, want, v any, at string) error {
	fail := func() error { return fmt.Errorf("%s: %s is %v", at, word, want) }
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	text, isText := v.(string)
	switch word {
	case "description", "title", "$schema", "$defs":
	case "$ref":
		name := strings.TrimPrefix(want.(string), "#/$defs/")
		def, ok := s.root["$defs"].(map[string]any)[name].(map[string]any)
		if !ok {
			return fmt.Errorf("%s: no definition %q", at, name)
		}
		return s.value(def, v, at)
	case "anyOf", "oneOf":
		var errs []error
		for _, r := range want.([]any) {
			err := s.value(r.(map[string]any), v, at)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	case "type":
		if !isType(want, v) {
			return fail()
		}
	case "const":
		if !reflect.DeepEqual(want, v) {
			return fail()
		}
	case "enum":
		for _, w := range want.([]any) {
			if reflect.DeepEqual(w, v) {
				return nil
			}
		}
		return fail()
	case "minimum":
		if n, ok := v.(json.Number); ok {
			if f, err := n.Float64(); err != nil || f < want.(float64) {
				return fail()
			}
		}
	case "maximum":
		if n, ok := v.(json.Number); ok {
			if f, err := n.Float64(); err != nil || f > want.(float64) {
				return fail()
			}
		}
	case "minLength":
		if isText && len(text) < int(want.(float64)) {
			return fail()
		}
	case "maxLength":
		if isText && len(text) > int(want.(float64)) {
			return fail()
		}
	case "minItems":
		if isList && len(list) < int(want.(float64)) {
			return fail()
		}
	case "items":
		for i := range list {
			if err := s.value(want.(map[string]any), list[i], fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case "required":
		for _, name := range want.([]any) {
			if _, ok := object[name.(string)]; isObject && !ok {
				return fmt.Errorf("%s: %s is missing", at, name)
			}
		}
	case "properties":
		for name, r := range want.(map[string]any) {
			if field, ok := object[name]; ok {
				if err := s.value(r.(map[string]any), field, at+"."+name); err != nil {
					return err
				}
			}
		}
	case "additionalProperties":
		known, _ := rule["properties"].(map[string]any)
		for name, field := range object {
			if _, ok := known[name]; ok {
				continue
			}
			r, ok := want.(map[string]any)
			if !ok {
				return fmt.Errorf("%s: %s is not listed", at, name)
			}
			if err := s.value(r, field, at+"."+name); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("%s: the test does not know the keyword %q", at, word)
	}
	return nil
}

func isType(want, v any) bool {
	if any, ok := want.([]any); ok {
		for _, w := range any {
			if isType(w, v) {
				return true
			}
		}
		return false
	}
	switch x := v.(type) {
	case nil:
		return want == "null"
	case bool:
		return want == "boolean"
	case string:
		return want == "string"
	case []any:
		return want == "array"
	case map[string]any:
		return want == "object"
	case json.Number:
		return want == "number" || want == "integer" && !strings.ContainsAny(x.String(), ".eE")
	}
	return false
}

// exampleFrames returns the frames of PROTOCOL.md by direction.
func exampleFrames(t *testing.T) (client, server []string) {
	t.Helper()
	text, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```json (c2s|s2c)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		frames := strings.Split(strings.TrimSpace(m[2]), "\n")
		if m[1] == "c2s" {
			client = append(client, frames...)
		} else {
			server = append(server, frames...)
		}
	}
	if len(client) < 20 || len(server) < 20 {
		t.Fatalf("found %d and %d example frames", len(client), len(server))
	}
	return client, server
}

func TestExamplesOfTheDocumentMatchTheSchema(t *testing.T) {
	t.Parallel()
	client, server := exampleFrames(t)
	for _, f := range client {
		if err := theSchema.check("clientFrame", []byte(f)); err != nil {
			t.Errorf("%.200s: %v", f, err)
		}
	}
	for _, f := range server {
		if err := theSchema.check("serverFrame", []byte(f)); err != nil {
			t.Errorf("%.200s: %v", f, err)
		}
	}
}

// Every answer in the document is of the form that its method has.
func TestExamplesOfTheDocumentAnswerTheirRequests(t *testing.T) {
	t.Parallel()
	client, server := exampleFrames(t)
	method := make(map[string]string)
	for _, f := range client {
		var r struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal([]byte(f), &r); err != nil {
			t.Fatal(err)
		}
		if r.ID != nil && r.Method != "" {
			method[string(r.ID)] = r.Method
		}
	}
	seen := make(map[string]bool)
	for _, f := range server {
		var r struct {
			ID             json.RawMessage
			Method         string
			Result, Error_ json.RawMessage
		}
		if err := json.Unmarshal([]byte(f), &r); err != nil {
			t.Fatal(err)
		}
		if r.Method != "" || r.Result == nil {
			continue
		}
		name := method[string(r.ID)]
		seen[name] = true
		if err := theSchema.check("result."+name, r.Result); err != nil {
			t.Errorf("%s: %.200s: %v", name, f, err)
		}
	}
	for _, name := range rpc.Methods() {
		if !seen[name] {
			t.Errorf("the document shows no answer of %s", name)
		}
	}
}

// The document's requests, sent to a real server, are answered in the form it says.
func TestExamplesOfTheDocumentAreServed(t *testing.T) {
	t.Parallel()
	host := rpc.NewHost()
	c := attach(t, newServer(t, one{composed(t, host)}, host))
	r := newReader(c)
	client, _ := exampleFrames(t)
	for _, f := range client {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal([]byte(f), &req); err != nil {
			t.Fatal(err)
		}
		if req.ID == nil || req.Method == "" {
			continue
		}
		c.send(f)
		got := r.next(t)
		if string(got.ID) != string(req.ID) {
			t.Fatalf("%.100s was answered with %s", f, got.line)
		}
		switch {
		case req.Method == rpc.MethodRollbackSpawn, req.Method == rpc.MethodExpand: // nobody has these ids
			if got.Error == nil || got.Error.Code != int(rpc.CodeNotFound) {
				t.Errorf("%.100s was answered with %s", f, got.line)
			}
		case string(req.ID) == "5": // d3 is no checkpoint
			if got.Error == nil || got.Error.Code != int(rpc.CodeNeedTranscript) {
				t.Errorf("%.100s was answered with %s", f, got.line)
			}
		case string(req.ID) == "6":
			if got.Error == nil || got.Error.Code != int(rpc.CodeInvalidParams) || got.Error.Data.Field != "tokenBudget" {
				t.Errorf("%.100s was answered with %s", f, got.line)
			}
		case got.Error != nil:
			t.Errorf("%.100s was answered with %s", f, got.line)
		default:
			if err := theSchema.check("result."+req.Method, got.Result); err != nil {
				t.Errorf("%s: %s: %v", req.Method, got.line, err)
			}
		}
	}
}

// Parameters that the schema describes and the server's own are the same fields.
func TestSchemaListsTheServersFields(t *testing.T) {
	t.Parallel()
	defs := theSchema.root["$defs"].(map[string]any)
	for name, params := range map[string]any{
		"initialize": rpc.InitializeParams{}, "info": rpc.InfoParams{}, "factory": rpc.FactoryParams{}, "bootstrap": rpc.BootstrapParams{}, "ingest": rpc.IngestParams{},
		"ingestBatch": rpc.IngestBatchParams{}, "commitTurn": rpc.CommitTurnParams{}, "afterTurn": rpc.AfterTurnParams{},
		"assemble": rpc.AssembleParams{}, "compact": rpc.CompactParams{}, "maintain": rpc.MaintainParams{},
		"prepareSubagentSpawn": rpc.SpawnParams{}, "rollbackSubagentSpawn": rpc.RollbackParams{},
		"onSubagentEnded": rpc.SubagentEndedParams{}, "dispose": rpc.DisposeParams{}, "retry": rpc.RetryParams{}, "ping": rpc.NoParams{},
		"search": rpc.SearchParams{}, "expand": rpc.ExpandParams{}, "describe": rpc.DescribeParams{}, "score": rpc.ScoreParams{},
		"host.compact": rpc.HostCompactParams{}, "host.complete": rpc.HostCompleteParams{}, "settings": rpc.Settings{},
		"transcriptScope": core.TranscriptScope{}, "facts": rpc.Facts{},
	} {
		def := "params." + name
		if _, ok := defs[def]; !ok {
			def = name // what several methods have
		}
		listed := defs[def].(map[string]any)["properties"].(map[string]any)
		fields := jsonFields(reflect.TypeOf(params))
		for f := range fields {
			if _, ok := listed[f]; !ok {
				t.Errorf("%s: the schema does not list %s", name, f)
			}
		}
		for f := range listed {
			if !fields[f] {
				t.Errorf("%s: the server does not know %s", name, f)
			}
		}
	}
}

func jsonFields(t reflect.Type) map[string]bool {
	out := make(map[string]bool)
	for f := range t.Fields() {
		if f.Anonymous {
			for name := range jsonFields(f.Type) {
				out[name] = true
			}
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out[name] = true
	}
	return out
}
