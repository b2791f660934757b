package registry_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/registry"
)

// TestJSONSchema: what Load takes the schema takes, and the mistakes that people make it finds.
func TestJSONSchema(t *testing.T) {
	r := newRegistry(t, &shop{})
	text, err := r.JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	template, err := r.Template("json")
	if err != nil {
		t.Fatal(err)
	}
	store := r.Names(registry.KindStore)[0]
	for _, good := range []string{
		string(template), `{}`, `{"$schema": "schema.json"}`, fmt.Sprintf(`{"store": %q, "searchers": []}`, store), fmt.Sprintf(`{"store": {"type": %q}}`, store),
		`{"window": {"high": 0.8}, "agents": {"coder": {"recentMessages": 9}}, "arms": [{"name": "a", "agents": ["coder"], "override": {"window": {"high": 0.7}}}]}`,
	} {
		if _, err := r.Load(registry.Bytes("good", "json", []byte(good))); err != nil {
			t.Errorf("Load refuses %s: %v", good, err)
		}
		if text := refused(schema, schema, decoded(t, good)); text != "" {
			t.Errorf("the schema refuses %s: %s", good, text)
		}
	}
	for _, bad := range []string{
		`{"windov": {}}`, `{"window": {"hihg": 1}}`, `{"window": {"high": "much"}}`, `{"store": "nowhere"}`, `{"store": {"type": "nowhere"}}`, `{"recentMessages": 0.5}`,
		`{"agents": {"coder": {"recentMesages": 9}}}`, `{"arms": {"name": "a"}}`, `{"tokenizer": "words"}`, `{"searchers": ["nothing"]}`,
	} {
		if _, err := r.Load(registry.Bytes("bad", "json", []byte(bad))); err == nil {
			t.Errorf("Load takes %s", bad)
		}
		if refused(schema, schema, decoded(t, bad)) == "" {
			t.Errorf("the schema takes %s", bad)
		}
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// refused says why a schema does not take a value; it knows as much of the language as JSONSchema uses.
func refused(root, schema map[string]any, v any) string {
	if ref, ok := schema["$ref"].(string); ok {
		defs := root["$defs"].(map[string]any)
		return refused(root, defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any), v)
	}
	if forms, ok := schema["anyOf"].([]any); ok {
		var why []string
		for _, form := range forms {
			text := refused(root, form.(map[string]any), v)
			if text == "" {
				return ""
			}
			why = append(why, text)
		}
		return strings.Join(why, " and ")
	}
	if want, ok := schema["const"]; ok && want != v {
		return fmt.Sprintf("%v is not %v", v, want)
	}
	if list, ok := schema["enum"].([]any); ok && !slices.Contains(list, v) {
		return fmt.Sprintf("%v is none of %v", v, list)
	}
	right := true
	switch schema["type"] {
	case "object":
		_, right = v.(map[string]any)
	case "array":
		_, right = v.([]any)
	case "string":
		_, right = v.(string)
	case "boolean":
		_, right = v.(bool)
	case "number":
		_, right = v.(float64)
	case "integer":
		n, ok := v.(float64)
		right = ok && n == float64(int64(n))
	}
	if !right {
		return fmt.Sprintf("%v is no %v", v, schema["type"])
	}
	switch v := v.(type) {
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, e := range v {
			if text := refused(root, items, e); text != "" {
				return text
			}
		}
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		required, _ := schema["required"].([]any)
		for _, k := range required {
			if v[k.(string)] == nil {
				return fmt.Sprintf("%v is missing", k)
			}
		}
		for k, e := range v {
			p, known := properties[k].(map[string]any)
			if more, ok := schema["additionalProperties"].(map[string]any); !known && ok {
				p, known = more, true
			}
			if !known {
				return fmt.Sprintf("there is no key %q", k)
			}
			if text := refused(root, p, e); text != "" {
				return k + ": " + text
			}
		}
	}
	return ""
}
