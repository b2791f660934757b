package registry

import (
	"cmp"
	"encoding/json"
	"reflect"
)

// schemaKey may stand in a configuration file: editors look there for the schema.
const schemaKey = "$schema"

// JSONSchema returns a JSON Schema (draft 2020-12) of configuration files in the own form, with the parts of this registry. Editors complete and check with it what the key
// "$schema" of a file names. What Load refuses beyond it, such as values out of their range, it does not know.
func (r *Registry) JSONSchema() ([]byte, error) {
	defs := make(map[string]any)
	for _, kind := range kinds {
		if kind != KindSearcher && kind != KindTokenizer {
			defs[string(kind)] = r.choiceSchema(kind)
		}
	}
	override := r.objectSchema(overrideFields(), "")
	defs["override"] = override
	whole := r.objectSchema(configFields(), "")
	whole["properties"].(map[string]any)[schemaKey] = map[string]any{"type": "string"}
	whole["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	whole["title"] = "Configuration of a context engine"
	whole["$defs"] = defs
	return json.MarshalIndent(whole, "", "  ")
}

// objectSchema describes an object with these fields and no others.
func (r *Registry) objectSchema(fields []field, at string) map[string]any {
	docs := coreDocs()
	properties := make(map[string]any, len(fields))
	for _, f := range fields {
		s := r.typeSchema(f.typ, f.kind, at+f.key+".")
		if f.key == "tokenizer" && at == "" {
			s["enum"] = r.Names(KindTokenizer)
		}
		if doc := cmp.Or(f.doc, docs[at+f.key]); doc != "" {
			s["description"] = doc
		}
		properties[f.key] = s
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

// typeSchema describes what a file may hold for a type.
func (r *Registry) typeSchema(t reflect.Type, kind Kind, at string) map[string]any {
	switch t {
	case durationType:
		return map[string]any{"type": "string", "examples": []string{"2s", "1m30s"}}
	case choiceType:
		return map[string]any{"$ref": "#/$defs/" + string(kind)}
	case searchersType:
		return r.searchersSchema()
	case overrideType:
		return map[string]any{"$ref": "#/$defs/override"}
	case anyType:
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Pointer:
		return r.typeSchema(t.Elem(), kind, at)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": r.typeSchema(t.Elem(), kind, at)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": r.typeSchema(t.Elem(), kind, at)}
	case reflect.Struct:
		return r.objectSchema(fieldsOf(t), at)
	}
	return map[string]any{"type": "integer"}
}

// choiceSchema describes a part: its name, or an object with its options. The options of the part that is taken where nobody chose need no name.
func (r *Registry) choiceSchema(kind Kind) map[string]any {
	d := decoder{r: r}
	names := r.Names(kind)
	forms := []any{map[string]any{"type": "string", "enum": names}}
	for _, name := range names {
		s := r.objectSchema(fieldsOf(r.parts[kind][name].config), "."+string(kind)+".")
		s["description"] = r.parts[kind][name].doc
		s["properties"].(map[string]any)[typeKey] = map[string]any{"const": name}
		if name != d.preset(kind) {
			s["required"] = []string{typeKey}
		}
		forms = append(forms, s)
	}
	return map[string]any{"anyOf": forms}
}

// searchersSchema describes a list of names, or an object of options by name.
func (r *Registry) searchersSchema() map[string]any {
	names := r.Names(KindSearcher)
	properties := make(map[string]any, len(names))
	for _, name := range names {
		properties[name] = r.objectSchema(fieldsOf(r.parts[KindSearcher][name].config), ".searcher.")
	}
	return map[string]any{"anyOf": []any{
		map[string]any{"type": "array", "items": map[string]any{"enum": names}},
		map[string]any{"type": "object", "properties": properties, "additionalProperties": false},
	}}
}
